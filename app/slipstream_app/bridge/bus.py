"""The one object with signals between threads. Lives on the main thread and stays there."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from slipstream.events import Event, Status


class Bus(QObject):
    """What the engine says, delivered on the main thread because this object lives there."""

    status_changed = Signal(object)  # Status
    said = Signal(int, object)  # job number, Event

    def note(self, status: Status) -> None:
        """From any thread."""
        self.status_changed.emit(status)

    def say(self, job: int, event: Event) -> None:
        """From any thread."""
        self.said.emit(job, event)
