"""A tool call: its name, its arguments, its result. Nothing here runs a tool; the user may say what it gave."""

from __future__ import annotations

import json

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QVBoxLayout, QWidget

from slipstream_app.messages import Call
from slipstream_app.theme import M, S, Theme
from slipstream_app.widgets.block import Part
from slipstream_app.widgets.code_card import CodeCard
from slipstream_app.widgets.panel import Words, button


class ToolCard(Part):
    answered = Signal(str, str)  # call id, result

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self.setProperty("role", "card")
        self._call = Call("", "", "")
        self.name = Words(theme, bold=True)
        self.state = Words(theme, role="muted")
        self.arguments = CodeCard(theme, "json")
        self.result = QLabel()
        self.result.setTextFormat(Qt.TextFormat.PlainText)
        self.result.setWordWrap(True)
        self.result.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.entry = QLineEdit()
        self.entry.setPlaceholderText(self.tr("What the tool gave. Nothing was run."))
        self.entry.setAccessibleName(self.tr("Result of the tool call"))
        self.entry.returnPressed.connect(self._on_answer)
        self.add = button(self.tr("Add result"))
        self.add.clicked.connect(self._on_answer)
        head = QHBoxLayout()
        head.addWidget(self.name)
        head.addStretch(1)
        head.addWidget(self.state)
        row = QHBoxLayout()
        row.setSpacing(S)
        row.addWidget(self.entry, 1)
        row.addWidget(self.add)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(M, S, M, M)
        self._column.setSpacing(S)
        self._column.addLayout(head)
        self._column.addWidget(self.arguments)
        self._column.addWidget(self.result)
        self._column.addLayout(row)
        self.arguments.resized.connect(self.resized)

    def set_call(self, call: Call, result: str | None, *, is_running: bool) -> None:
        self._call = call
        self.name.say(self.tr("Call of {0}").format(call.name))
        self.arguments.set_text(_pretty(call.arguments), is_whole=not is_running)
        has_result = result is not None
        self.state.say(
            self.tr("being written") if is_running else self.tr("answered") if has_result else self.tr("not run")
        )
        self.result.setVisible(has_result)
        self.result.setText(self.tr("Result: {0}").format(result))
        self.entry.setVisible(not is_running and not has_result)
        self.add.setVisible(not is_running and not has_result)

    def fit(self, width: int) -> int:
        inner = width - 2 * M
        self.arguments.setFixedSize(inner, self.arguments.fit(inner))
        return super().fit(width)

    @Slot()
    def _on_answer(self) -> None:
        if self.entry.text().strip():
            self.answered.emit(self._call.id, self.entry.text())


def _pretty(arguments: str) -> str:
    """Indented; as it is while it is no JSON yet."""
    try:
        return json.dumps(json.loads(arguments), indent=2, ensure_ascii=False)
    except ValueError:
        return arguments
