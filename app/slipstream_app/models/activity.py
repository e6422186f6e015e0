"""What the engine is doing, in one word: for the sidebar, the status bar and the menu bar."""

from __future__ import annotations

from enum import StrEnum

from PySide6.QtCore import QObject, Signal, Slot

from slipstream.errors import EngineFaulted
from slipstream.events import Delta, Done, Empty, Event, Failed, Faulted, Loading, Ready, Status, Working
from slipstream_app.bridge.bus import Bus


class Doing(StrEnum):
    NOTHING = "nothing"  # no model is loaded
    LOADING = "loading"
    READY = "ready"
    READING = "reading"  # prompts alone
    GENERATING = "generating"
    MEASURING = "measuring"  # a calibration
    STOPPED = "stopped"  # by a fault


BUSY = (Doing.READING, Doing.GENERATING, Doing.MEASURING)


class Activity(QObject):
    """`changed` whenever the word is another one, and when clients were paused or go on."""

    changed = Signal()

    def __init__(self, bus: Bus, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.doing = Doing.NOTHING
        self.are_clients_paused = False
        self._status: Status = Empty()
        self._reading: set[int] = set()  # numbers of jobs
        self._writing: set[int] = set()
        self._measuring: set[int] = set()
        bus.status_changed.connect(self._on_status)
        bus.opened.connect(self._on_opened)
        bus.measuring.connect(self._on_measuring)
        bus.said.connect(self._on_said)
        bus.pause_changed.connect(self._on_pause)

    @Slot(object)
    def _on_status(self, status: Status) -> None:
        self._status = status
        self._tend()

    @Slot(int, str, object)
    def _on_opened(self, job: int, source: str, request: object) -> None:
        self._reading.add(job)
        self._tend()

    @Slot(int)
    def _on_measuring(self, job: int) -> None:
        self._measuring.add(job)
        self._tend()

    @Slot(int, object)
    def _on_said(self, job: int, event: Event) -> None:
        match event:
            case Delta() if job in self._reading:
                self._reading.discard(job)
                self._writing.add(job)
            case Done() | Failed():
                for jobs in (self._reading, self._writing, self._measuring):
                    jobs.discard(job)
            case _:
                return
        self._tend()

    @Slot(bool)
    def _on_pause(self, are_paused: bool) -> None:
        if are_paused != self.are_clients_paused:
            self.are_clients_paused = are_paused
            self.changed.emit()

    def _tend(self) -> None:
        doing = self._now()
        if doing is not self.doing:
            self.doing = doing
            self.changed.emit()

    def _now(self) -> Doing:
        if isinstance(self._status, Faulted) and not isinstance(self._status.error, EngineFaulted):
            return Doing.NOTHING  # a pair that was refused never ran
        if not isinstance(self._status, Working):
            return _AT_REST[type(self._status)]
        if self._writing:
            return Doing.GENERATING
        if self._reading:
            return Doing.READING
        # The last job's end comes before the engine says that it is ready.
        return Doing.MEASURING if self._measuring else self.doing


_AT_REST: dict[type[Status], Doing] = {
    Empty: Doing.NOTHING,
    Loading: Doing.LOADING,
    Ready: Doing.READY,
    Faulted: Doing.STOPPED,
}
