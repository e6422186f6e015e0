"""One job seen from asyncio: events arrive on the loop, and a reader who leaves cancels the job."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from slipstream.errors import Closed
from slipstream.events import Done, Event, Failed, Queued
from slipstream.jobs import Job
from slipstream.server.backend import Backend
from slipstream.server.request_log import current
from slipstream.types import Request, Work

# How long a streaming route waits for the engine's first word, so that its refusal becomes a status. Short: clients
# want headers at once, and what comes later becomes an error event.
FIRST_WORD_S = 0.3


class Stream:
    """Iterate over it for the job's events, Queued to Done or Failed.

    Use it as a context, or give it to `reply`: either cancels the job when its reader leaves, for whatever reason.
    """

    def __init__(self, backend: Backend, work: Work) -> None:
        self.backend = backend
        self.info = backend.info()
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._held: list[Event] = []  # seen by `first`, not yet given out
        self._has_ended = False
        self.job = Job(work, self._sink)
        self._entry = current.get()

    @classmethod
    async def open(cls, backend: Backend, work: Work) -> Self:
        """Queue the job. Raises Busy, Closed, or what `Backend.info` raises."""
        stream = cls(backend, work)
        backend.touch()
        backend.inbox.put(stream.job)
        backend.streams.add(stream)
        if stream._entry is not None:
            stream._entry.add_job(stream.job.number)
        return stream

    @property
    def request(self) -> Request:
        return self.job.request

    def cancel(self) -> None:
        self.job.cancel()

    def abort(self) -> None:
        """The server ends it, not its reader, who is told so at once, even if the engine hangs. On the loop."""
        self.cancel()
        self._events.put_nowait(Failed(Closed("the server is shutting down")))

    @property
    def has_ended(self) -> bool:
        """Whether the last event was read."""
        return self._has_ended

    async def first(self, patience_s: float | None = None) -> Event | None:
        """The first event past Queued; it stays to be read. Raises what the job failed with.

        None when it did not come within `patience_s`.
        """
        try:
            async with asyncio.timeout(patience_s):
                while not self._held or isinstance(self._held[-1], Queued):
                    self._held.append(await self._events.get())
        except TimeoutError:
            return None
        except asyncio.CancelledError:
            self.cancel()
            raise
        event = self._held[-1]
        if isinstance(event, Failed):
            self._has_ended = True
            raise event.error
        return event

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        if self._has_ended:
            raise StopAsyncIteration
        event = self._held.pop(0) if self._held else await self._events.get()
        self._has_ended = isinstance(event, Done | Failed)
        return event

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cancel()

    def _sink(self, event: Event) -> None:
        """On the engine's thread."""
        self.backend.touch()
        try:
            self._loop.call_soon_threadsafe(self._arrive, event)
        except RuntimeError:  # the server has stopped and its loop is closed: nobody is left to read
            self.job.cancel()

    def _arrive(self, event: Event) -> None:
        self._events.put_nowait(event)
        self.backend.observe(self.job, event)
        if self._entry is not None:
            self._entry.observe(event)
        if isinstance(event, Done | Failed):
            self.backend.streams.discard(self)
