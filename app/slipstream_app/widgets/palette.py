"""The command palette: every action, pair, chat and setting by a few letters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QDialog, QVBoxLayout, QWidget

from slipstream_app.theme import M, Theme
from slipstream_app.widgets.entry import Entry
from slipstream_app.widgets.filter_list import FilterList


class Palette(QDialog):
    """An entry runs after the palette has closed."""

    def __init__(self, theme: Theme, find: Callable[[str], Sequence[Entry]], parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup | Qt.WindowType.FramelessWindowHint)
        self._theme = theme
        self.setAccessibleName(self.tr("Command palette"))
        self.found = FilterList(theme, find, self.tr("Nothing has that name."))
        self.found.search.setPlaceholderText(self.tr("Do, open or find…"))
        self.found.search.setAccessibleName(self.tr("What to do"))
        self.found.list.setAccessibleName(self.tr("Found"))
        self.found.chosen.connect(self._run)
        column = QVBoxLayout(self)
        column.setContentsMargins(M, M, M, M)
        column.addWidget(self.found)

    def open_over(self, window: QWidget) -> None:
        width = min(self._theme.px(560), window.width() - 2 * M)
        height = min(self._theme.px(400), window.height() - 4 * M)
        self.resize(width, height)
        corner = window.mapToGlobal(window.rect().topLeft())
        self.move(corner.x() + (window.width() - width) // 2, corner.y() + self._theme.px(64))
        self.show()
        self.found.open()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self)
        painter.setPen(self._theme.color("border"))
        painter.drawRect(self.rect().adjusted(0, 0, -1, -1))

    @Slot(object)
    def _run(self, entry: Entry) -> None:
        self.hide()
        entry.run()
