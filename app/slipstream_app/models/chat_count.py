"""How many tokens would be sent, and which turns to drop where they are too many. Counted on the prompter's thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from slipstream.errors import SlipstreamError
from slipstream_app.bridge.session import Session
from slipstream_app.messages import Message
from slipstream_app.models import chat_prompt
from slipstream_app.models.chat_parameters import Parameters
from slipstream_app.models.chat_prompt import Count, Prompter, Shortened

COUNT_MS = 200  # after the last key, tokens are counted

WouldSend = Callable[[], tuple[Sequence[Message], Parameters] | None]


class TokenCount(QObject):
    counted = Signal(object)  # Count; None when it is not known
    shortened = Signal(object)  # Shortened
    refused = Signal(object)  # SlipstreamError: the turns to drop cannot be found

    def __init__(
        self, session: Session, prompter: Prompter, would_send: WouldSend, parent: QObject | None = None
    ) -> None:
        """`would_send`: what would be sent now; None while an answer comes, whose own tokens are counted."""
        super().__init__(parent)
        self._session = session
        self._prompter = prompter
        self._would_send = would_send
        self._count_ticket = self._shorten_ticket = 0
        self._timer = QTimer(self, singleShot=True, interval=COUNT_MS)
        self._timer.timeout.connect(self._count)
        prompter.answered.connect(self._answered)

    def soon(self) -> None:
        """`counted` comes."""
        self._timer.start()

    def rest(self) -> None:
        self._timer.stop()

    def preview_drop(self) -> None:
        """Find out which oldest turns to drop so that a quarter of the context is free; `shortened` comes."""
        info, would = self._session.info, self._would_send()
        if info is None or would is None:
            return
        (path, parameters), room = would, info.context * 3 // 4
        self._shorten_ticket = self._prompter.ask(
            info, lambda tokeniser: chat_prompt.shorten(tokeniser, path, parameters, room)
        )

    @Slot()
    def _count(self) -> None:
        info, would = self._session.info, self._would_send()
        if info is None or would is None:
            self.counted.emit(None)
            return
        path, parameters = would
        self._count_ticket = self._prompter.ask(
            info, lambda tokeniser: chat_prompt.count(tokeniser, path, parameters, info.context)
        )

    @Slot(int, object)
    def _answered(self, ticket: int, answer: object) -> None:
        match answer:
            case Count() if ticket == self._count_ticket:
                self.counted.emit(answer)
            case SlipstreamError() if ticket == self._count_ticket:
                self.counted.emit(None)
            case Shortened() if ticket == self._shorten_ticket:
                self.shortened.emit(answer)
            case SlipstreamError() if ticket == self._shorten_ticket:
                self.refused.emit(answer)
            case _:
                pass
