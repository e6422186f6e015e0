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
        self.source = ""  # who asks, where askers are told apart: `Inbox.hold`
        self.waits_in: Inbox | None = None
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
        if (inbox := self.waits_in) is not None:
            inbox.stir()

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()


class Inbox:
    """A bounded first-in, first-out queue of jobs, closed once. Jobs of one source can be held back for a while."""

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self._limit = limit
        self._jobs: deque[Job] = deque()
        self._holds: dict[object, str] = {}  # sources
        self._changed = threading.Condition()
        self._is_closed = False

    def put(self, job: Job) -> None:
        """Queue a job. Raises Busy when `limit` are waiting, Closed after `close`.

        Jobs that are held back have a limit of their own, and are ahead of nobody who is not.
        """
        with self._changed:
            if self._is_closed:
                raise Closed("the engine is shutting down")
            if self._ahead_of(job) >= self._limit:
                self._drop_cancelled()
            if (ahead := self._ahead_of(job)) >= self._limit:
                raise Busy(ahead)
            # Said before the engine can take the job, so that Queued is always a job's first event.
            job.sink(Queued(ahead))
            job.waits_in = self
            self._jobs.append(job)
            self._changed.notify()

    def _ahead_of(self, job: Job) -> int:
        is_held = self.holds_back(job)
        return sum(self.holds_back(other) == is_held for other in self._jobs)

    def get(self, *, wait: bool = True, only: Callable[[Job], bool] = lambda _: True) -> Job | None:
        """The next job of those that `only` lets pass and nobody holds back.

        None when there is none and `wait` is off, or once the inbox is closed.
        """
        with self._changed:
            while (found := self._first(only)) is None:
                if not wait or self._is_closed:
                    return None
                self._drop_taken_back()  # first: who was taken back before we wait wakes nobody
                self._changed.wait()
            job = self._jobs[found]
            del self._jobs[found]
            job.waits_in = None
            return job

    def _first(self, only: Callable[[Job], bool]) -> int | None:
        return next((at for at, job in enumerate(self._jobs) if only(job) and not self.holds_back(job)), None)

    def wait(self, timeout_s: float) -> bool:
        """Until there is a job that may begin or the inbox is closed. False when neither came in time."""

        def has_work() -> bool:
            self._drop_taken_back()
            return self._is_closed or self._first(lambda _: True) is not None

        with self._changed:
            return self._changed.wait_for(has_work, timeout_s)

    def stir(self) -> None:
        """From any thread: a job that waits was taken back. It ends now, although nothing may be there to begin."""
        with self._changed:
            self._changed.notify_all()

    # Holding back.

    def hold(self, source: str) -> Callable[[], None]:
        """From now on jobs of `source` wait here, until the returned function is called: from any thread, and once
        more does no harm. A closed inbox holds nobody back. What of them has begun ends first (`service.serve`).
        """
        hold = object()

        def release() -> None:
            with self._changed:
                self._holds.pop(hold, None)
                self._changed.notify_all()

        with self._changed:
            self._holds[hold] = source
        return release

    def let_go(self) -> None:
        """End every hold. From any thread."""
        with self._changed:
            self._holds.clear()
            self._changed.notify_all()

    def holds_back(self, job: Job) -> bool:
        """Whether jobs of its source are held: those that wait, and those that have begun."""
        with self._changed:
            return not self._is_closed and job.source in self._holds.values()

    @property
    def is_holding(self) -> bool:
        return bool(self._holds) and not self._is_closed

    @property
    def held(self) -> int:
        """Jobs that wait because they are held back."""
        with self._changed:
            return sum(self.holds_back(job) for job in self._jobs)

    def _drop_taken_back(self) -> None:
        """While it waits. Whoever finds the inbox closed empties it."""
        if not self._is_closed:
            self._drop_cancelled()

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
