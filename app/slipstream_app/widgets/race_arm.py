"""One arm of a race: what it says and how fast, live or played again."""

from __future__ import annotations

from PySide6.QtCore import QSize, Slot
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QWidget

from slipstream_app.theme import M, Theme
from slipstream_app.widgets.panel import Figure, Panel, Words


class RaceArm(Panel):
    def __init__(self, theme: Theme, name: str, colour: str, parent: QWidget | None = None) -> None:
        super().__init__(theme, name, parent)
        self.colour = colour
        self.badge = Words(theme, "", "ok", bold=True)
        self.head.addWidget(self.badge)
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setUndoRedoEnabled(False)
        self.text.setFrameShape(QPlainTextEdit.Shape.NoFrame)
        self.text.setAccessibleName(self.tr("{0}: its answer").format(name))
        self.text.setTabChangesFocus(True)
        self.speed = Figure(theme, self.tr("tok/s"), "0000.0")
        self.against = Figure(theme, self.tr("against plain"), "00.00× (00.00–00.00)")
        self.against.hide()
        self.state = Words(theme, "", "muted")
        foot = QHBoxLayout()
        foot.setSpacing(M)
        foot.addWidget(self.speed)
        foot.addWidget(self.against)
        foot.addStretch(1)
        self.body.addWidget(self.text, 1)
        self.body.addWidget(self.state)
        self.body.addLayout(foot)
        self._shown = ""
        theme.changed.connect(self._on_theme)
        self._on_theme()

    def sizeHint(self) -> QSize:
        return QSize(self.theme.px(260), self.theme.px(250))

    def minimumSizeHint(self) -> QSize:
        return QSize(self.theme.px(200), self.theme.px(210))

    def show_text(self, text: str) -> None:
        """Appends where `text` goes on from what stands there."""
        if text == self._shown:
            return
        if self._shown and text.startswith(self._shown):
            cursor = QTextCursor(self.text.document())
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText(text[len(self._shown) :])
        else:
            self.text.setPlainText(text)
        self._shown = text
        bar = self.text.verticalScrollBar()
        bar.setValue(bar.maximum())

    @property
    def shown(self) -> str:
        return self._shown

    @Slot()
    def _on_theme(self) -> None:
        self.text.setFont(self.theme.code_font(0.9))
        # A line in the arm's colour, so that three of them are told apart at a glance; the name says it too.
        self.setStyleSheet(f"RaceArm {{ border-top: 3px solid {self.theme.css(self.colour)}; }}")
