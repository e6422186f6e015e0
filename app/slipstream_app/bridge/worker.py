"""The engine's thread, as Qt sees it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Slot

from slipstream.jobs import Inbox
from slipstream.service import Engine, serve
from slipstream_app.bridge.bus import Bus


class EngineWorker(QObject):
    """Hosts the engine's loop on its thread. Knows nothing of widgets or of what a job says."""

    def __init__(self, inbox: Inbox, open_engine: Callable[[], Engine], bus: Bus, name: str) -> None:
        super().__init__()
        self._inbox = inbox
        self._open_engine = open_engine
        self._bus = bus
        self._name = name

    @Slot()
    def run(self) -> None:
        """Returns when the inbox is closed."""
        serve(self._inbox, self._open_engine, self._bus.note, name=self._name)
