"""One engine and its thread: started with the window, ended with the program."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QThread

from slipstream.jobs import Inbox, Job
from slipstream.service import Engine
from slipstream.types import Request
from slipstream_app.bridge.bus import Bus
from slipstream_app.bridge.worker import EngineWorker


class Session(QObject):
    def __init__(self, open_engine: Callable[[], Engine], name: str) -> None:
        super().__init__()
        self.bus = Bus(self)
        self._inbox = Inbox()
        self._thread = QThread(self)
        self._worker = EngineWorker(self._inbox, open_engine, self.bus, name)
        self._worker.moveToThread(self._thread)
        self._thread.started.connect(self._worker.run)

    def start(self) -> None:
        self._thread.start()

    def submit(self, request: Request) -> Job:
        """Queue a request; its events come by `bus.said` under the job's number. Raises Busy or Closed."""
        job = Job(request, lambda event: self.bus.say(job.number, event))
        self._inbox.put(job)
        return job

    def stop(self) -> None:
        """End the engine's thread. Every job gets its last event; returns when MLX is freed."""
        self._inbox.close()
        self._thread.quit()
        self._thread.wait()
