"""What new chats have before anybody changed anything: from the settings, and from what was measured here."""

from __future__ import annotations

from slipstream.types import Mode
from slipstream_app.bridge.session import Session
from slipstream_app.models.chat_parameters import Parameters
from slipstream_app.models.speedups import Speedups
from slipstream_app.settings import Settings

KEYS = ("chat/max_tokens", "performance/mode", "performance/max_draft")  # of the settings that it depends on


class ChatDefaults:
    def __init__(self, session: Session, settings: Settings, speedups: Speedups) -> None:
        self._session = session
        self._settings = settings
        self._speedups = speedups

    def parameters(self) -> Parameters:
        """Automatic drafting is off where it was measured to be slower; a chat can still ask for it."""
        mode = Mode(self._settings.text("performance/mode"))
        info = self._session.info
        if info is not None and mode not in (Mode.LOOKUP, Mode.BASELINE, *info.drafters):
            mode = Mode.AUTO  # the loaded pair has no such drafter
        if mode is Mode.AUTO and self.slower() is not None:
            mode = Mode.BASELINE
        return Parameters(
            max_tokens=self._settings.number("chat/max_tokens"),
            mode=mode,
            max_draft=self._settings.number("performance/max_draft") or None,
        )

    def slower(self) -> float | None:
        """The loaded pair's best measured speed as a share of plain decoding's, where that is the faster one."""
        choice = self._session.choice
        return None if choice is None else self._speedups.slower(choice.title)
