"""Steps through the branches of a message."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QWidget

from slipstream_app.theme import Theme
from slipstream_app.widgets.panel import Words, tool_button


class Walker(QWidget):
    """ "< 2/3 >". Hidden where there is nothing beside."""

    stepped = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.back = tool_button(theme, "chevron-left", "", self.tr("Previous branch"))
        self.back.clicked.connect(lambda: self.stepped.emit(-1))
        self.on = tool_button(theme, "chevron-right", "", self.tr("Next branch"))
        self.on.clicked.connect(lambda: self.stepped.emit(1))
        self.label = Words(theme, role="muted", scale=0.92)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        for widget in (self.back, self.label, self.on):
            row.addWidget(widget)

    def set_place(self, number: int, count: int) -> None:
        self.setVisible(count > 1)
        self.label.say(f"{number}/{count}")
        self.label.setAccessibleName(self.tr("Branch {0} of {1}").format(number, count))
        self.back.setEnabled(number > 1)
        self.on.setEnabled(number < count)
