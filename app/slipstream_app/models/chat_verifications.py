"""The answers that are being verified, by message, and where their verdicts are kept."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal

from slipstream.measure.verdict import Comparison
from slipstream.types import ModelInfo
from slipstream_app.bridge.session import Session
from slipstream_app.history import History
from slipstream_app.messages import Json, Message
from slipstream_app.models.chat_parameters import Parameters
from slipstream_app.models.chat_prompt import Prompter
from slipstream_app.models.chat_verify import Verification, verdict_json


class Verifications(QObject):
    progressed = Signal(int, int, int)  # message, tokens done, tokens in all
    judged = Signal(int)  # message: its verdict is kept
    ended = Signal(int, object)  # message, Comparison or SlipstreamError or None

    def __init__(self, session: Session, history: History, prompter: Prompter, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._history = history
        self._prompter = prompter
        self._running: dict[int, Verification] = {}

    def __contains__(self, message: int) -> bool:
        return message in self._running

    def start(
        self, info: ModelInfo, answer: Message, before: Sequence[Message], parameters: Parameters, trace: Json
    ) -> None:
        """`before`: what the answer was given; `trace`: its tokens and options."""
        message = answer.id
        verification = Verification(self._session, info, self)
        self._running[message] = verification
        verification.progressed.connect(lambda done, total: self.progressed.emit(message, done, total))
        tokens = sum(len(segment["tokens"]) for segment in trace["segments"])

        def compared(comparison: Comparison) -> None:
            facts = {**self._history.message(message).facts, "verdict": verdict_json(comparison, tokens)}
            self._history.save(message, facts=facts)
            self.judged.emit(message)
            ended(comparison)

        def ended(outcome: object) -> None:
            del self._running[message]
            verification.deleteLater()
            self.ended.emit(message, outcome)

        verification.compared.connect(compared)
        verification.failed.connect(ended)
        verification.start(self._prompter, [*before, answer], parameters, trace)
        self.progressed.emit(message, 0, tokens)

    def cancel(self, message: int) -> None:
        if (verification := self._running.get(message)) is not None:
            verification.cancel()

    def cancel_all(self) -> None:
        for verification in list(self._running.values()):
            verification.cancel()
