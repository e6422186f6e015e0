"""The line above a message: who speaks, and what can be done with a question."""

from __future__ import annotations

from PySide6.QtCore import QSize, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QWidget

from slipstream_app.theme import S, Theme
from slipstream_app.widgets.block import Part
from slipstream_app.widgets.panel import Words, tool_button
from slipstream_app.widgets.shown import Ask
from slipstream_app.widgets.walker import Walker


class MessageHead(Part):
    asked = Signal(str, object)

    def __init__(self, theme: Theme, is_user: bool, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self.who = Words(theme, self.tr("You") if is_user else self.tr("Assistant"), bold=True)
        self.note = Words(theme, role="muted", scale=0.92)
        self.walk = Walker(theme)
        self.walk.stepped.connect(lambda step: self.asked.emit(Ask.WALK, step))
        self.edit = tool_button(theme, "pencil", "", self.tr("Edit and ask again"))
        self.edit.clicked.connect(lambda: self.asked.emit(Ask.EDIT, None))
        self.copy = tool_button(theme, "copy", "", self.tr("Copy this message"))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(S)
        row.addWidget(self.who)
        row.addWidget(self.note)
        row.addStretch(1)
        for tool in (self.walk, self.edit, self.copy):
            row.addWidget(tool)
            tool.setVisible(is_user)
        theme.changed.connect(self.refresh_theme)
        self.refresh_theme()

    @Slot()
    def refresh_theme(self) -> None:
        size = self.theme.px(15)
        for tool in (self.edit, self.copy):
            tool.setIconSize(QSize(size, size))
