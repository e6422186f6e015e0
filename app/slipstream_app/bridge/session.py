"""The engine and its server as the screens see them: load, ask, cancel, unload, restart, stop."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QThread, Slot

from slipstream.engine.costs import Depth
from slipstream.errors import EngineFaulted, ModelNotFound
from slipstream.events import Empty, Event, Faulted, Loading, Ready, Report, Status, Working
from slipstream.jobs import Job
from slipstream.service import Engine
from slipstream.types import ModelInfo, Request
from slipstream_app.bridge.bus import Bus
from slipstream_app.bridge.pair import PairChoice, open_choice
from slipstream_app.bridge.server import ServerHost
from slipstream_app.bridge.watched import CLIENT, WatchedInbox
from slipstream_app.bridge.worker import EngineWorker, OpenPair, Wish

if TYPE_CHECKING:
    from slipstream.engine.held import Held
    from slipstream.store.reuse import CacheDesk

logger = logging.getLogger(__name__)

QUIT_S = 1.5  # for the engine to end: a round or a prefill chunk, then freeing the device


class Session(QObject):
    """Lives on the main thread; nothing here waits for the engine but `stop`."""

    def __init__(self, open_pair: OpenPair | None = None, parent: QObject | None = None) -> None:
        """`open_pair`: instead of the real engine, for tests."""
        super().__init__(parent)
        self.prompts: CacheDesk | None = None  # what is kept of earlier prompts; made with the first pair
        self.bus = Bus(self)
        self.server = ServerHost(self.bus, self)
        self.kv_bits = 0  # of the context's memory, from the next load on; 0: full precision
        self.max_batch = 1  # answers written together, from the next load on
        self._open_pair = open_pair or self._open_choice
        self._status: Status = Empty()
        self._choice: PairChoice | None = None
        self._inbox: WatchedInbox | None = None
        self._abandoned: list[_Life] = []
        self._life = _Life(self._open_pair, self._note)
        self.bus.status_changed.connect(self._keep)

    # The pair.

    @property
    def status(self) -> Status:
        """As of the last `bus.status_changed`."""
        return self._status

    @property
    def choice(self) -> PairChoice | None:
        """What is loaded, or being loaded, or has faulted."""
        return self._choice

    @property
    def info(self) -> ModelInfo | None:
        match self._status:
            case Ready(model) | Working(model):
                return model
            case _:
                return None

    @property
    def costs(self) -> dict[str, list[tuple[int, float]]]:
        """What rounds of the loaded pair cost here so far: by source, (drafts verified, milliseconds)."""
        costs = self._life.worker.costs
        return {} if costs is None else costs.rounds()

    @property
    def depth(self) -> Depth:
        """How far it pays to draft with the loaded pair here, and how far is drafted now."""
        costs = self._life.worker.costs
        return Depth() if costs is None else costs.depth()

    @property
    def held(self) -> Held | None:
        """What the loaded pair holds of the memory; None where nothing is loaded, or it does not say."""
        ledger = self._life.worker.ledger
        return None if ledger is None else ledger.now

    def load(self, choice: PairChoice) -> None:
        """Load a pair in place of the one there; running jobs are cancelled. Jobs may be submitted at once."""
        self._close_inbox()
        self._choice = choice = replace(choice, kv_bits=self.kv_bits, max_batch=self.max_batch)
        self._inbox = WatchedInbox(self.bus, self.server.touch)
        self.server.use(self._inbox)
        self._life.start()
        self._life.worker.wish(Wish(choice, self._inbox))
        self.bus.note(Loading(choice.title))

    def unload(self) -> None:
        """Free the model, or give up loading it. Running jobs are cancelled."""
        self._close_inbox()
        self._inbox = None
        self._choice = None

    def reload(self, *, safe: bool = False) -> None:
        """The pair again, after a fault; `safe`: no drafter and a short context."""
        if self._choice is not None:
            self.load(self._choice.safe if safe else self._choice)

    def restart(self, *, safe: bool = False) -> None:
        """`reload` when the engine does not answer: its thread is left behind, its jobs fail, a new thread begins."""
        choice = self._choice
        if choice is None:
            return
        logger.warning("the engine does not answer; starting another")
        old, inbox = self._life, self._inbox
        self._close_inbox()
        self._abandoned.append(old)
        old.abandon()
        if inbox is not None:
            inbox.give_up(EngineFaulted("the model stopped answering and was restarted; ask again"))
        self._life = _Life(self._open_pair, self._note)
        self.load(choice.safe if safe else choice)

    # Jobs.

    def submit(self, request: Request, source: str = "chat", sink: Callable[[Event], None] | None = None) -> Job:
        """Queue a request; its events come by `bus.said` under the job's number.

        `sink` hears them too, on the engine's thread. Raises Busy, Closed, or ModelNotFound when nothing is loaded.
        """
        job = Job(request, sink or _ignore)
        self.put(job, source)
        return job

    def put(self, job: Job, source: str) -> None:
        """Queue a job that somebody else made, such as a race. From any thread; raises as `submit`."""
        inbox = self._inbox
        if inbox is None:
            raise ModelNotFound("no model is loaded; load one first")
        inbox.put_from(job, source)

    def cancel(self, job: Job) -> None:
        """Takes effect within one round or one prefill chunk; the job still ends with Done."""
        job.cancel()

    # The clients.

    def pause_clients(self) -> Callable[[], None]:
        """New requests of the server's clients wait; what is being answered goes on to its end, and nothing else
        begins before. Until the returned function is called (from any thread, and any number of times), or
        `resume_clients`, or the pair goes. Raises ModelNotFound when nothing is loaded.
        """
        if (inbox := self._inbox) is None:
            raise ModelNotFound("no model is loaded; load one first")
        release = inbox.hold(CLIENT)

        def go_on() -> None:
            release()
            with suppress(RuntimeError):  # the window is gone already
                self.bus.pause(inbox.is_holding)

        self.bus.pause(True)
        return go_on

    def resume_clients(self) -> None:
        """Whoever paused them."""
        if self._inbox is not None:
            self._inbox.let_go()
        self.bus.pause(False)

    @property
    def are_clients_paused(self) -> bool:
        return self._inbox is not None and self._inbox.is_holding

    @property
    def paused_requests(self) -> int:
        """Of clients, that wait because they are paused."""
        return 0 if self._inbox is None else self._inbox.held

    # The end.

    def stop(self) -> bool:
        """End the server and the engine's thread. Every job gets its last event.

        False when a thread could not be ended in time: then the process must leave without waiting for it.
        """
        self._close_inbox()
        self._inbox = None
        self.server.close()
        ended = self._life.end(QUIT_S)
        for life in self._abandoned:
            ended = life.end(0) and ended
        return ended

    def _close_inbox(self) -> None:
        if self._inbox is not None:
            self._inbox.close()

    def _open_choice(self, choice: PairChoice, report: Report) -> Engine:
        """On the engine's thread: what it imports takes too long for the window's."""
        from slipstream.store.reuse import CacheDesk

        self.prompts = self.prompts or CacheDesk()
        return open_choice(choice, report, self.prompts)

    def _note(self, status: Status) -> None:
        """On the engine's thread."""
        self.server.note(status)
        self.bus.note(status)

    @Slot(object)
    def _keep(self, status: Status) -> None:
        self._status = status
        if isinstance(status, Faulted | Empty):
            logger.info("engine: %s", status)


class _Life:
    """An engine thread and the worker on it."""

    def __init__(self, open_pair: OpenPair, emit: Callable[[Status], None]) -> None:
        self._emit = emit
        self._is_abandoned = False
        self.worker = EngineWorker(open_pair, self._pass_on)
        self._thread = QThread()
        self._thread.setObjectName("slipstream-engine")
        self.worker.moveToThread(self._thread)
        self._thread.started.connect(self.worker.run)

    def start(self) -> None:
        if not self._thread.isRunning():
            self._thread.start()

    def abandon(self) -> None:
        """Nothing it says from now on counts; it ends by itself should it ever come back."""
        self._is_abandoned = True
        self.worker.wish(None)
        self._thread.quit()

    def end(self, seconds: float) -> bool:
        self.worker.wish(None)
        self._thread.quit()
        return self._thread.wait(int(seconds * 1000))

    def _pass_on(self, status: Status) -> None:
        if not self._is_abandoned:
            self._emit(status)


def _ignore(_: Event) -> None:
    pass
