"""What became of an answer that did not end by itself, or how far its prompt is read."""

from __future__ import annotations

import time

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QVBoxLayout, QWidget

from slipstream_app.messages import State
from slipstream_app.models.chat_reply import Phase, Reply
from slipstream_app.numbers import count_text, number_text
from slipstream_app.theme import XS, S, Theme
from slipstream_app.widgets.block import Part
from slipstream_app.widgets.panel import button, wrapped
from slipstream_app.widgets.shown import Ask, Shown


class StateLine(Part):
    asked = Signal(str, object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self.words = wrapped(theme, role="muted")
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(self.tr("Prompt read"))
        self.go_on = button(self.tr("Continue"))
        self.go_on.clicked.connect(lambda: self.asked.emit(Ask.RESUME, None))
        self.cancel = button(self.tr("Cancel"))
        self.cancel.clicked.connect(lambda: self.asked.emit(Ask.STOP, None))
        row = QHBoxLayout()
        row.setSpacing(S)
        row.addWidget(self.words, 1)
        row.addWidget(self.go_on)
        row.addWidget(self.cancel)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, XS, 0, XS)
        column.setSpacing(XS)
        column.addLayout(row)
        column.addWidget(self.bar)
        theme.resized.connect(self.refresh_theme)
        self.refresh_theme()

    def show_state(self, shown: Shown) -> bool:
        """False when there is nothing to say."""
        message, role = shown.message, "muted"
        match message.state:
            case State.STOPPED:
                by_user = message.facts.get("stopped_by") != "engine"
                words = self.tr("Stopped by you") if by_user else self.tr("Stopped as the model was unloaded")
            case State.INTERRUPTED:
                words = self.tr("Interrupted: Slipstream ended while this was written")
            case State.FAILED:
                said = message.facts.get("error", {}).get("message", self.tr("The engine stopped"))
                words, role = _sentence(str(said)), "bad"
                if message.text:
                    words = self.tr("{0} The text until then is saved.").format(words)
            case State.DONE if message.facts.get("reason") == "length":
                words = self.tr("Cut at the length limit")
            case _:
                return False
        self.words.say(words, role)
        self.go_on.setVisible(shown.can_resume)
        self.cancel.hide()
        self.bar.hide()
        return True

    def show_progress(self, reply: Reply) -> bool:
        """False once there is text."""
        progress = reply.progress
        match reply.phase:
            case Phase.PREPARING:
                words = self.tr("Preparing…")
            case Phase.WAITING:
                words = self.tr("Waiting for its turn…")
            case Phase.READING:
                words = self.tr("Reading {0} of {1} tokens").format(
                    count_text(progress.done), count_text(progress.total)
                )
                left = progress.left_s(time.monotonic())
                if left is not None and left >= 1:
                    words = self.tr("{0}, about {1} s").format(words, number_text(left, 0))
            case _:
                return False
        self.words.say(words, "muted")
        self.go_on.hide()
        self.cancel.setVisible(reply.phase is Phase.READING)
        self.bar.setVisible(reply.phase is Phase.READING)
        self.bar.setRange(0, max(1, progress.total))
        self.bar.setValue(progress.done)
        return True

    @Slot()
    def refresh_theme(self) -> None:
        self.bar.setFixedHeight(self.theme.px(6))


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."
