"""Keeps the open chat and the Drafter menu alike."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QObject, Slot

from slipstream.types import Mode
from slipstream_app.models.chat import Chats
from slipstream_app.models.drafting import Drafting


class ChatMode(QObject):
    def __init__(self, chats: Chats, drafting: Drafting, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._chats = chats
        self._drafting = drafting
        chats.parameters_changed.connect(self._tell)
        drafting.changed.connect(self._tell)  # the defaults, which the chat may follow, may be others
        drafting.chosen.connect(self._on_chosen)
        self._tell()

    def close(self) -> None:
        """Nothing is asked of the chat any more: its history may be closed before the engine has ended."""
        self._chats.parameters_changed.disconnect(self._tell)
        self._drafting.changed.disconnect(self._tell)

    @Slot()
    def _tell(self) -> None:
        self._drafting.note_chat(self._chats.parameters.mode)

    @Slot(object)
    def _on_chosen(self, mode: Mode) -> None:
        if self._chats.parameters.mode is not mode:
            self._chats.set_parameters(replace(self._chats.parameters, mode=mode))
