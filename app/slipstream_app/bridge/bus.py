"""The one object with signals between threads. Lives on the main thread and stays there."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from slipstream.events import Event, Status
from slipstream.types import Request


class Bus(QObject):
    """What the engine and the server say, delivered on the main thread because this object lives there.

    Connect to methods of QObjects only: a plain function would run on the thread that emitted.
    """

    status_changed = Signal(object)  # Status: of the engine as a whole
    opened = Signal(int, str, object)  # job number, source ("chat", "race", "client", ...), Request
    measuring = Signal(int)  # job number of a calibration, before its first event
    said = Signal(int, object)  # job number, Event: of every job, the server's clients' too
    server_changed = Signal(object)  # ServerState
    pause_changed = Signal(bool)  # whether the server's clients are paused
    load_wanted = Signal()  # a request came, and nothing is loaded
    hold_wanted = Signal(object)  # a client's own idle time in seconds, until the next request; None: for ever

    def note(self, status: Status) -> None:
        """From any thread."""
        self.status_changed.emit(status)

    def open(self, job: int, source: str, request: Request) -> None:
        """From any thread, before the job's first event."""
        self.opened.emit(job, source, request)

    def measure(self, job: int) -> None:
        """From any thread, before the job's first event."""
        self.measuring.emit(job)

    def pause(self, are_paused: bool) -> None:
        """From any thread, once it is so."""
        self.pause_changed.emit(are_paused)

    def say(self, job: int, event: Event) -> None:
        """From any thread."""
        self.said.emit(job, event)
