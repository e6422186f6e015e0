"""Who drafts the next answer, and who could: for the model pill and the Drafter menu. Chats keep their own word."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from slipstream.events import Status
from slipstream.types import Mode
from slipstream_app.bridge.session import Session
from slipstream_app.models.chat_defaults import ChatDefaults
from slipstream_app.models.speedups import Speedups
from slipstream_app.settings import Settings

KEY = "performance/mode"


class Drafting(QObject):
    """`changed` when another one drafts or can; `chosen` when somebody chose one for the chat that is open too."""

    changed = Signal()
    chosen = Signal(object)  # Mode

    def __init__(self, session: Session, settings: Settings, speedups: Speedups, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._settings = settings
        self._defaults = ChatDefaults(session, settings, speedups)
        self._of_chat: Mode | None = None
        session.bus.status_changed.connect(self._on_status)
        settings.changed.connect(self._on_setting)

    @property
    def active(self) -> Mode:
        """Of the open chat's next answer; before a chat was opened, of new chats."""
        return self._defaults.parameters().mode if self._of_chat is None else self._of_chat

    @property
    def offered(self) -> tuple[Mode, ...]:
        """Automatic, what is loaded beside the target, and what needs nothing."""
        info = self._session.info
        return (Mode.AUTO, *(() if info is None else info.drafters), Mode.LOOKUP, Mode.BASELINE)

    def choose(self, mode: Mode) -> None:
        """From the next answer on, and for new chats."""
        self._settings.set(KEY, mode.value)
        self.chosen.emit(mode)

    def note_chat(self, mode: Mode) -> None:
        """The open chat's own, whatever it comes from."""
        if mode is not self._of_chat:
            self._of_chat = mode
            self.changed.emit()

    @Slot(object)
    def _on_status(self, _: Status) -> None:
        self.changed.emit()

    @Slot(str)
    def _on_setting(self, key: str) -> None:
        if key == KEY:
            self.changed.emit()
