"""Which model is loaded, on behalf of a server: loads and unloads around the answers under way, never through them."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from slipstream import service
from slipstream.errors import Closed
from slipstream.events import Empty, Faulted, Ready, Report, Status
from slipstream.jobs import DEFAULT_LIMIT, Inbox
from slipstream.server.backend import Backend
from slipstream.server.calibration import calibrate
from slipstream.service import Engine

logger = logging.getLogger(__name__)

MAX_KEEP_ALIVE_S = 365 * 86400.0
# For an engine's thread to end, once nothing is under way: a round or a prefill chunk, then freeing the device.
ENGINE_END_S = 10.0
HUNG_END_S = 0.5  # for one that hangs, before it is left behind
QUIT_S = 1.0  # for one that is in the middle of a forward pass or a load, which nobody can interrupt, when we quit


@dataclass(frozen=True, slots=True)
class Known:
    """A model that can be loaded by its name."""

    name: str
    bytes: int = 0  # 0: not known
    context: int = 0


class ModelHost:
    """One model at a time. On the server's loop, but for `close`.

    Requests run inside `use`. A load or unload waits until the last of them has ended, and those that come meanwhile
    wait for it; so no answer is lost, and two loads asked for at once happen one after the other.
    """

    def __init__(
        self,
        backend: Backend,
        open_engine: Callable[[str, Report], Engine],
        default: str,
        *,
        find: Callable[[str], object] = lambda _: None,
        models: Callable[[], list[Known]] = list,
        queue_limit: int = DEFAULT_LIMIT,
        keep_alive_s: float | None = None,
        pinned: bool = False,
    ) -> None:
        """`open_engine(name, report)` is called on a thread of the engine's own. `find(name)` raises when there is
        no such model, before the one that is loaded makes room for it.

        `models` lists what a request may ask for beside `default`. `keep_alive_s`: idle time after which the model
        is unloaded; None: never.
        """
        self.keep_alive_s = keep_alive_s
        self._idle_s = keep_alive_s  # the same, or what the latest request said
        self.pinned = pinned  # neither idle time nor a request's model name replaces it
        self._backend = backend
        self._open_engine = open_engine
        self._default = default
        self._find = find
        self._models = models
        self._queue_limit = queue_limit
        self._life: _Life | None = None
        self._wanted = default  # what is loaded when a request comes and nothing is
        self._using = 0
        self._coming = 0  # requests that wait for a load
        self._unused = asyncio.Event()
        self._unused.set()
        self._turn = asyncio.Lock()  # held while a load or unload is under way
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def loaded(self) -> str | None:
        """The name under which the model was asked for."""
        return self._life.name if self._life is not None and self._backend.is_loaded else None

    def known(self) -> list[Known]:
        """The default first."""
        return [Known(self._default), *(model for model in self._models() if model.name != self._default)]

    @asynccontextmanager
    async def use(self, name: str | None = None) -> AsyncGenerator[None]:
        """While a request is answered. Loads the model that it names, if that is one of ours; else any will do.

        Raises what loading raises.
        """
        self._coming += 1
        try:
            while True:
                async with self._turn:
                    pass  # what is being loaded may do
                if (model := self._needed(name)) is None:
                    break
                await self.load(model, unless_loaded=True)
        finally:
            self._coming -= 1
        self._using += 1
        self._unused.clear()
        self._stop_timer()
        self._idle_s = self.keep_alive_s
        try:
            yield
        finally:
            self._using -= 1
            if not self._using:
                self._unused.set()
                self._start_timer()

    async def calibrate(self, force: bool) -> Mapping[str, Any]:
        """Measure the model while nobody else is answered; those who come meanwhile wait. Raises what loading and
        measuring raise."""
        if self.loaded is None:
            await self.load(self._wanted, unless_loaded=True)
        async with self._turn:
            await self._unused.wait()
            self._stop_timer()
            try:
                return await calibrate(self._backend, force)
            finally:
                self._start_timer()

    def hold(self, idle_s: float | None) -> None:
        """Inside `use`: the idle time from now on, until the next request. None: for ever. A pin is stronger."""
        self._idle_s = idle_s

    def _needed(self, name: str | None) -> str | None:
        """What has to be loaded before a request for `name` can be answered."""
        loaded = self.loaded
        known = name is not None and name != loaded and any(model.name == name for model in self.known())
        if known and not (self.pinned and loaded):
            return name
        return None if loaded else self._wanted

    async def load(self, name: str, *, unless_loaded: bool = False) -> None:
        """Load a model in place of the one there, once no answer is under way. Goes on if its caller leaves.

        Raises what `find` raises, and what loading raises: then nothing is loaded.
        """
        await asyncio.to_thread(self._find, name)
        await self._undisturbed(self._replace(name, unless_loaded=unless_loaded))

    async def load_default(self) -> None:
        await self.load(self._default)

    async def unload(self) -> None:
        """Free the model once no answer is under way; the next request loads it again. One that is being loaded is
        given up: who asked for it gets Closed.
        """
        if self._life is not None:
            self._life.give_up()
        await self._undisturbed(self._replace(None))

    async def restart(self) -> None:
        """For an engine that hangs: its answers end with an error, and the same model is loaded on a new thread."""
        for stream in tuple(self._backend.streams):
            stream.abort()
            self._backend.streams.discard(stream)
        await self._undisturbed(self._replace(self._wanted, end_s=HUNG_END_S))

    async def _undisturbed(self, work: Coroutine[Any, Any, None]) -> None:
        await asyncio.shield(self._start(work))

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)  # the loop itself keeps no hold of it
        task.add_done_callback(self._tasks.discard)
        return task

    async def _replace(self, name: str | None, *, unless_loaded: bool = False, end_s: float = ENGINE_END_S) -> None:
        async with self._turn:
            if unless_loaded and name == self.loaded:
                return
            await self._unused.wait()
            self._stop_timer()
            await self._end(end_s)
            if name is not None:
                await self._begin(name)

    async def _begin(self, name: str) -> None:
        settled: asyncio.Future[Status] = asyncio.get_running_loop().create_future()
        life = self._life = _Life(name, Inbox(self._queue_limit), self._backend, settled)
        self._backend.inbox = life.inbox
        life.thread = service.start(life.inbox, lambda report: self._open_engine(name, report), life.note, name=name)
        status = await settled
        if isinstance(status, Faulted):
            await self._end(ENGINE_END_S)
            if not life.is_given_up:
                self._backend.note(status)
            raise status.error
        self._wanted = name
        self._start_timer()

    async def _end(self, end_s: float) -> None:
        life, self._life = self._life, None
        if life is None:
            return
        life.end()
        await asyncio.to_thread(life.join, end_s)
        self._backend.note(Empty())

    def _start_timer(self) -> None:
        self._stop_timer()
        if self._idle_s is not None and not self.pinned and self._life is not None:
            self._timer = asyncio.get_running_loop().call_later(self._idle_s, self._expire)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        if not self._using and not self._coming and not self.pinned and not self._turn.locked():
            logger.info("unloading %s: not used for %g s", self.loaded, self._idle_s)
            self._start(self._replace(None))

    def keep_alive(self, keep_alive_s: float | None) -> None:
        """Change the idle time, from now on."""
        self.keep_alive_s = self._idle_s = keep_alive_s
        if not self._using:
            self._start_timer()

    def pin(self, pinned: bool) -> None:
        self.pinned = pinned
        if not self._using:
            self._start_timer()

    def as_json(self) -> Mapping[str, Any]:
        models = [
            {"name": model.name, "bytes": model.bytes or None, "loaded": model.name == self.loaded}
            for model in self.known()
        ]
        return {"models": models, "pinned": self.pinned, "keep_alive_s": self.keep_alive_s}

    def close(self) -> bool:
        """From any thread, after the server has stopped. False when the engine's thread still runs."""
        life, self._life = self._life, None
        if life is None:
            return True
        life.end()
        return life.join(QUIT_S)


class _Life:
    """One loaded model, from its loading to its end."""

    thread: threading.Thread | None = None
    is_given_up = False  # before it was loaded

    def __init__(self, name: str, inbox: Inbox, backend: Backend, settled: asyncio.Future[Status]) -> None:
        self.name = name
        self.inbox = inbox
        self._backend = backend
        self._settled = settled
        self._loop = settled.get_loop()
        self._is_over = False

    def note(self, status: Status) -> None:
        """On the engine's thread."""
        if self._is_over:
            return
        is_first = not self._settled.done()
        if is_first and isinstance(status, Ready):
            self._backend.warm_up(status.model)
        self._backend.note(status)
        if is_first and isinstance(status, Ready | Faulted):
            self._loop.call_soon_threadsafe(self._settle, status)

    def _settle(self, status: Status) -> None:
        if not self._settled.done():
            self._settled.set_result(status)

    def give_up(self) -> None:
        """On the loop. Nothing where it is loaded already."""
        if not self._settled.done():
            self.is_given_up = True
            self.end()
            self._settle(Faulted(Closed(f"{self.name} was unloaded while it was being loaded; load it again")))

    def end(self) -> None:
        self._is_over = True
        self.inbox.close()

    def join(self, end_s: float) -> bool:
        """Whether it ended."""
        if self.thread is None:
            return True
        self.thread.join(end_s)
        if self.thread.is_alive():
            logger.warning("the engine of %s does not end; it is left behind", self.name)
        return not self.thread.is_alive()
