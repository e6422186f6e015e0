"""The shortcut sheet: every key of the table, by menu."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QGridLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from slipstream_app.shortcuts import CONTEXT, MENUS, TABLE, Menu
from slipstream_app.strings import shown
from slipstream_app.theme import XL, L, M, S, Theme
from slipstream_app.windows.actions import written


class ShortcutSheet(QDialog):
    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Keyboard Shortcuts"))
        page = QWidget()
        grid = QGridLayout(page)
        grid.setContentsMargins(XL, L, XL, L)
        grid.setHorizontalSpacing(XL)
        grid.setVerticalSpacing(S)
        sides = [[menu for number, menu in enumerate(Menu) if number % 2 == side] for side in (0, 1)]
        for side, menus in enumerate(sides):
            row = 0
            for menu in menus:
                actions = [action for action in TABLE if action.menu is menu and action.keys]
                if not actions:
                    continue
                heading = QLabel(shown(CONTEXT, MENUS[menu]))
                heading.setFont(theme.font(bold=True))
                grid.addWidget(heading, row, 2 * side, 1, 2)
                for action in actions:
                    row += 1
                    grid.addWidget(QLabel(shown(CONTEXT, action.text)), row, 2 * side)
                    keys = QLabel(written(action.keys))
                    keys.setProperty("role", "muted")
                    grid.addWidget(keys, row, 2 * side + 1, Qt.AlignmentFlag.AlignRight)
                row += 2
        area = QScrollArea(widgetResizable=True)
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        area.setWidget(page)
        area.setAccessibleName(self.tr("Keyboard Shortcuts"))
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, M, M)
        column.addWidget(area)
        column.addWidget(buttons)
        self.resize(theme.px(760), theme.px(560))
