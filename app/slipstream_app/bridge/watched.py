"""An inbox whose jobs are also seen by the bus, and which can be given up when its engine no longer answers."""

from __future__ import annotations

import threading
from collections.abc import Callable

from slipstream.errors import SlipstreamError
from slipstream.events import Done, Event, Failed, Queued
from slipstream.jobs import Inbox, Job, Sink
from slipstream.types import Calibrate, Request
from slipstream_app.bridge.bus import Bus

CLIENT = "client"  # the source of jobs that came over HTTP


class WatchedInbox(Inbox):
    """Tells the bus what its jobs say, after their own sinks. One inbox belongs to one loaded pair."""

    def __init__(self, bus: Bus, progressed: Callable[[], None]) -> None:
        super().__init__()
        self._bus = bus
        self._progressed = progressed
        self._lock = threading.Lock()
        self._open: dict[int, Sink] = {}  # by job number, until its last event

    def put(self, job: Job) -> None:
        """A job from the server. Raises Busy or Closed."""
        self.put_from(job, CLIENT)

    def put_from(self, job: Job, source: str) -> None:
        """Raises Busy or Closed; then the bus has heard of no job."""
        own = job.sink
        job.source = source

        def deliver(event: Event) -> None:
            if isinstance(event, Queued):
                match job.work:
                    case Request():
                        self._bus.open(job.number, source, job.work)
                    case Calibrate():
                        self._bus.measure(job.number)
            self._progressed()
            own(event)
            self._bus.say(job.number, event)

        def hear(event: Event) -> None:
            with self._lock:
                if isinstance(event, Queued):
                    self._open[job.number] = deliver
                elif job.number not in self._open:
                    return  # it was given up, and has had its last event
                if isinstance(event, Done | Failed):
                    del self._open[job.number]
            deliver(event)

        job.sink = hear
        super().put(job)

    def give_up(self, error: SlipstreamError) -> None:
        """End every open job with `error` now; what a stuck engine says later is dropped."""
        with self._lock:
            open_jobs = list(self._open.values())
            self._open.clear()
        for deliver in open_jobs:
            deliver(Failed(error))

    @property
    def open_jobs(self) -> tuple[int, ...]:
        with self._lock:
            return tuple(self._open)
