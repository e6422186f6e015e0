"""Why this speed: finds the tokens of an answer, says what each was owed to, and shows it."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QWidget

from slipstream_app.bridge.session import Session
from slipstream_app.history import History
from slipstream_app.messages import Message
from slipstream_app.models import chat_prompt
from slipstream_app.models.chat_prompt import Prompter
from slipstream_app.models.chat_speed import explain
from slipstream_app.theme import Theme
from slipstream_app.widgets.speed_popover import SpeedPopover


class WhySpeed(QObject):
    refused = Signal(str)

    def __init__(self, theme: Theme, session: Session, history: History, prompter: Prompter, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._window = parent
        self._session = session
        self._history = history
        self._prompter = prompter
        self._message: Message | None = None  # whose tokens are being spelt
        self._ticket = 0
        self.popover: SpeedPopover | None = None  # made when it is first asked for
        prompter.answered.connect(self._on_pieces)

    def show(self, message: Message) -> None:
        info, trace = self._session.info, self._history.trace(message.id)
        if trace is None:
            self.refused.emit(self.tr("This answer's tokens were not kept, so its speed cannot be explained."))
        elif info is None:
            self.refused.emit(self.tr("Load the model to see the tokens of this answer."))
        else:
            tokens = [token for segment in trace["segments"] for token in segment["tokens"]]
            self._message = message
            self._ticket = self._prompter.ask(info, lambda tokeniser: chat_prompt.pieces(tokeniser, tokens))

    @Slot(int, object)
    def _on_pieces(self, ticket: int, pieces: object) -> None:
        message = self._message
        if ticket != self._ticket or message is None or not isinstance(pieces, list):
            return
        self._message = None
        trace = self._history.trace(message.id)
        if trace is None:
            return
        speed = explain(trace, str(message.facts.get("mode", "auto")), list(message.facts.get("drafters", ())))
        if self.popover is None:
            self.popover = SpeedPopover(self._theme, self._window)
        self.popover.show_speed(speed, [str(piece) for piece in pieces])
        self.popover.show()
        self.popover.raise_()
