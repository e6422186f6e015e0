"""The one inbox: who asks for work, in what order, and how they take it back. Standard library only."""

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator

from slipstream.errors import Busy, Closed
from slipstream.events import Done, Event, Failed, Finish, Queued, Timings
from slipstream.types import Request, Work

Sink = Callable[[Event], None]  # called on the engine thread; must not block

DEFAULT_LIMIT = 64

_numbers = itertools.count(1)


class Job:
    """A piece of work, where its events go, and whether it is still wanted."""

    def __init__(self, work: Work, sink: Sink) -> None:
        self.number = next(_numbers)
        self.work = work
        self.sink = sink
        self.queued_s = time.monotonic()
        self.cancelled_s: float | None = None  # when it was first taken back
        self._cancelled = threading.Event()

    @property
    def request(self) -> Request:
        """Of a job that answers one."""
        assert isinstance(self.work, Request)
        return self.work

    def cancel(self) -> None:
        """From any thread. Takes effect within one round or one prefill chunk; the job still ends with Done."""
        if self.cancelled_s is None:
            self.cancelled_s = time.monotonic()
        self._cancelled.set()

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()


class Inbox:
    """A bounded first-in, first-out queue of jobs, closed once."""

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self._limit = limit
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._is_closed = False

    def put(self, job: Job) -> None:
        """Queue a job. Raises Busy when `limit` are waiting, Closed after `close`."""
        with self._changed:
            if self._is_closed:
                raise Closed("the engine is shutting down")
            if len(self._jobs) >= self._limit:
                self._drop_cancelled()
            if len(self._jobs) >= self._limit:
                raise Busy(len(self._jobs))
            # Said before the engine can take the job, so that Queued is always a job's first event.
            job.sink(Queued(len(self._jobs)))
            self._jobs.append(job)
            self._changed.notify()

    def get(self, *, wait: bool = True, only: Callable[[Job], bool] = lambda _: True) -> Job | None:
        """The next job of those that `only` lets pass.

        None when there is none and `wait` is off, or once the inbox is closed and empty.
        """
        with self._changed:
            while wait and not self._jobs and not self._is_closed:
                self._changed.wait()
            found = next((index for index, job in enumerate(self._jobs) if only(job)), None)
            if found is None:
                return None
            job = self._jobs[found]
            del self._jobs[found]
            return job

    def wait(self, timeout_s: float) -> bool:
        """Until there is a job or the inbox is closed. False when neither came in time."""
        with self._changed:
            return self._changed.wait_for(lambda: bool(self._jobs) or self._is_closed, timeout_s)

    def drop_cancelled(self) -> None:
        """End the waiting jobs that nobody wants any more, with the Done that each must have."""
        with self._changed:
            self._drop_cancelled()

    def _drop_cancelled(self) -> None:
        gone = [job for job in self._jobs if job.is_cancelled]
        if not gone:
            return
        self._jobs = deque(job for job in self._jobs if not job.is_cancelled)
        for job in gone:
            job.sink(cancelled_before_start(job))

    def close(self) -> None:
        """No more jobs. Those waiting and the one running are cancelled; each still ends with its own event."""
        with self._changed:
            self._is_closed = True
            for job in self._jobs:
                job.cancel()
            self._changed.notify_all()

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    def __len__(self) -> int:
        return len(self._jobs)


def cancelled_before_start(job: Job) -> Done:
    now = time.monotonic()
    return Done(Finish.CANCELLED, Timings(job.queued_s, now, now, now, 0, 0, 0, 0), ())


class Waiting:
    """A job seen from a thread that may wait: iterate over its events to the last.

    Interrupted (Ctrl-C), it can be cancelled and iterated further. Raises Busy or Closed when the inbox is.
    """

    def __init__(self, inbox: Inbox, work: Work) -> None:
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._is_over = False
        self.job = Job(work, self._events.put)
        inbox.put(self.job)

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        if self._is_over:
            raise StopIteration
        event = self._events.get()
        self._is_over = isinstance(event, Done | Failed)
        return event


def events_of(inbox: Inbox, work: Work) -> Iterator[Event]:
    """Run one job and hand out its events. Leaving early cancels the job. Raises Busy or Closed."""
    waiting = Waiting(inbox, work)
    try:
        yield from waiting
    finally:
        waiting.job.cancel()
