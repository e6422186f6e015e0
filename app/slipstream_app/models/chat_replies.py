"""The answers being written, in whatever chat."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from slipstream.types import ModelInfo
from slipstream_app.bridge.session import Session
from slipstream_app.history import History
from slipstream_app.messages import Json, Message
from slipstream_app.models.chat_prompt import Prompter, Work
from slipstream_app.models.chat_reply import Reply


class Replies(QObject):
    """By message. A chat has one at a time."""

    changed = Signal(int)  # message
    ended = Signal(object)  # Message, as it is now

    def __init__(self, session: Session, history: History, prompter: Prompter, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._history = history
        self._prompter = prompter
        self._running: dict[int, Reply] = {}

    def to(self, message: int) -> Reply | None:
        return self._running.get(message)

    def of_chat(self, chat: int) -> Reply | None:
        return next((reply for reply in self._running.values() if reply.message.chat == chat), None)

    def begin(
        self,
        message: Message,
        facts: Json,
        info: ModelInfo,
        work: Work,
        trace: Json | None = None,
    ) -> None:
        """`work` gives the prompt, on the prompter's thread; `trace`: what a resumed answer has already."""
        reply = self._running[message.id] = Reply(self._history, message, facts, self)
        reply.changed.connect(self._on_changed)
        reply.ended.connect(self._on_ended)
        reply.start(self._session, self._prompter, info, work, trace)

    def abandon_all(self) -> None:
        """Each is kept as it is."""
        for reply in list(self._running.values()):
            reply.abandon()

    @Slot()
    def _on_changed(self) -> None:
        reply = self.sender()
        assert isinstance(reply, Reply)
        self.changed.emit(reply.message.id)

    @Slot()
    def _on_ended(self) -> None:
        reply = self.sender()
        assert isinstance(reply, Reply)
        del self._running[reply.message.id]
        reply.deleteLater()
        self.ended.emit(reply.message)
