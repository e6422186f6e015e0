"""The engine thread's loop: jobs in, events out. Knows nothing of MLX, Qt or HTTP."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from slipstream.errors import Closed, EngineFaulted, SlipstreamError
from slipstream.events import Done, Event, Failed, Faulted, Loading, Prefill, Ready, Report, Status, Working
from slipstream.jobs import Inbox, Job, cancelled_before_start
from slipstream.types import ModelInfo, Request, Tokens

logger = logging.getLogger(__name__)

MAX_ACTIVE = 4  # jobs that share the engine by turns; the others wait in the inbox
SHORT_PROMPT = 1024  # tokens: so short a prompt need not wait for long ones that have taken every place
SHORT_PLACES = 2  # beside MAX_ACTIVE
REST_AFTER_S = 2.0  # without a job: no turn of a conversation that runs by itself comes so late


class LoadGivenUp(Exception):
    """Out of a load whose inbox was closed meanwhile. Caught by `serve`; whoever loads frees the device on its way."""


class Engine(Protocol):
    """What the loop needs of an engine. Made, used and closed on one thread."""

    @property
    def info(self) -> ModelInfo: ...

    def run(self, job: Job) -> Iterator[Event]:
        """One event at each prefill chunk and each round, a Done at the end.

        Raises SlipstreamError when the request cannot be served. Stops early, with Done, when the job is cancelled.
        """
        ...

    def rest(self) -> None:
        """Nobody has asked for anything for a while: give back what is only kept to be fast."""
        ...

    def close(self) -> None: ...


def serve(
    inbox: Inbox,
    open_engine: Callable[[Report], Engine],
    emit: Callable[[Status], None],
    *,
    name: str = "model",
    max_active: int | None = None,
) -> None:
    """Open an engine and run jobs until the inbox is closed. Blocks; call it on the thread that is to own MLX.

    Up to `max_active` jobs (None: MAX_ACTIVE, or as many as the engine decodes together) take turns, one prefill chunk
    or one round each, so that a short one is not stuck behind a long prompt; two places more are there for short
    prompts alone. Where the engine decodes several together, one chunk of one prompt is read between two rounds. An
    error of a request fails its job alone. Any other exception means that a forward pass broke and the caches are
    lies: every job fails with EngineFaulted until the program opens a new engine. Closing the inbox while the engine
    opens gives the load up at its next piece. While the inbox holds jobs back, those of them that have begun go on to
    their end, and only then do others begin.
    """

    engine = _open(inbox, open_engine, emit, name)
    if engine is None:
        return
    places = max(MAX_ACTIVE, engine.info.max_batch) if max_active is None else max_active
    turns = _Turns(rounds_are_shared=engine.info.max_batch > 1)
    try:
        emit(Ready(engine.info))
        while True:
            if _admit(inbox, engine, turns, places):
                emit(Working(engine.info, tuple(turn.job.number for turn in turns)))
            if not turns:
                return  # the inbox is closed and empty
            if inbox.is_closed:
                for turn in turns:
                    turn.job.cancel()
            turn = turns.take()
            try:
                if turn.goes_on():
                    turns.put_back(turn)
                elif not turns:
                    emit(Ready(engine.info))
            except Exception as error:
                logger.exception("job %d failed", turn.job.number)
                fault = EngineFaulted(f"the model failed ({type(error).__name__}: {error}); reload it")
                for failed in (turn, *turns):
                    failed.job.sink(Failed(fault))
                emit(Faulted(fault))
                _refuse_all(inbox, fault)
                return
    finally:
        engine.close()


def _open(
    inbox: Inbox, open_engine: Callable[[Report], Engine], emit: Callable[[Status], None], name: str
) -> Engine | None:
    """None when it did not open, and every job of the inbox has been told so."""

    def report(done: int, total: int) -> None:
        if inbox.is_closed:
            raise LoadGivenUp
        emit(Loading(name, done, total))

    emit(Loading(name))
    try:
        return open_engine(report)
    except LoadGivenUp:
        logger.info("loading %s was given up", name)
        _refuse_all(inbox, Closed(f"{name} was not loaded; load it again"))
    except SlipstreamError as error:
        emit(Faulted(error))
        _refuse_all(inbox, error)
    except Exception as error:
        logger.exception("loading failed")
        fault = EngineFaulted(f"loading failed ({type(error).__name__}: {error}); choose another model or reload")
        emit(Faulted(fault))
        _refuse_all(inbox, fault)
    return None


def start(
    inbox: Inbox,
    open_engine: Callable[[Report], Engine],
    emit: Callable[[Status], None] = lambda _: None,
    *,
    name: str = "model",
) -> threading.Thread:
    """`serve` on a plain thread of its own. Close the inbox, then join it."""
    thread = threading.Thread(
        target=serve, args=(inbox, open_engine, emit), kwargs={"name": name}, name="slipstream-engine"
    )
    thread.start()
    return thread


@dataclass(slots=True)
class _Turn:
    """A job under way. What it says at its turns is its engine's iterator."""

    job: Job
    events: Iterator[Event]
    is_reading: bool = True  # its prompt; else it decodes
    was_short: bool = False  # the last turn: nothing was computed in it

    def goes_on(self) -> bool:
        """Take the turn: one event. True while there is more to come."""
        try:
            event = next(self.events)
        except SlipstreamError as error:
            self.job.sink(Failed(error))
            return False
        self.job.sink(event)
        self.is_reading = isinstance(event, Prefill)
        self.was_short = isinstance(event, Prefill) and event.done == event.reused
        return not isinstance(event, Done)


class _Turns:
    """Jobs under way, in the order of their turns."""

    def __init__(self, *, rounds_are_shared: bool) -> None:
        self._turns: deque[_Turn] = deque()
        self._rounds_are_shared = rounds_are_shared
        self._decode_first: set[int] = set()  # numbers of jobs that have a turn before the next chunk of a prompt

    def __len__(self) -> int:
        return len(self._turns)

    def __iter__(self) -> Iterator[_Turn]:
        return iter(self._turns)

    def add(self, turn: _Turn) -> None:
        """A newcomer goes first: its prompt is short, or it will step aside after one chunk."""
        self._turns.appendleft(turn)

    def put_back(self, turn: _Turn) -> None:
        """After its turn."""
        if self._rounds_are_shared and turn.is_reading:
            if turn.was_short:
                self._turns.appendleft(turn)
                return
            self._decode_first = {other.job.number for other in self._turns if not other.is_reading}
        self._turns.append(turn)

    def take(self) -> _Turn:
        """Whose turn it is. A cancelled job goes first: it has only to end, and its client's next request may wait."""
        index = self._index(lambda turn: turn.job.is_cancelled)
        if index is None and self._rounds_are_shared:
            # Once a chunk of a prompt was read, all that decode have their turn, and so a round, before the next one.
            index = self._index(lambda turn: turn.job.number in self._decode_first)
            if index is None:
                index = self._index(lambda turn: turn.is_reading)
        index = index or 0
        taken = self._turns[index]
        del self._turns[index]
        self._decode_first.discard(taken.job.number)
        return taken

    def _index(self, of: Callable[[_Turn], bool]) -> int | None:
        return next((index for index, turn in enumerate(self._turns) if of(turn)), None)


def _admit(inbox: Inbox, engine: Engine, turns: _Turns, places: int) -> bool:
    """Give waiting jobs a turn, waiting for one when there is nothing else to do. True when somebody came in."""
    came_in = False
    if not turns and not inbox.wait(REST_AFTER_S):
        engine.rest()
    inbox.drop_cancelled()
    if any(inbox.holds_back(turn.job) for turn in turns):
        return False  # whoever holds them back wants the engine alone: what had begun ends first
    while len(turns) < places + SHORT_PLACES:
        job = inbox.get(wait=not turns, only=_anybody if len(turns) < places else _is_short)
        if job is None:
            break
        turns.add(_Turn(job, engine.run(job)))
        came_in = True
    return came_in


def _anybody(_: Job) -> bool:
    return True


def _is_short(job: Job) -> bool:
    work = job.work
    return isinstance(work, Request) and isinstance(work.prompt, Tokens) and len(work.prompt.ids) <= SHORT_PROMPT


def _refuse_all(inbox: Inbox, error: SlipstreamError) -> None:
    """Fail each job as it comes, so that nobody waits for an engine that is not there."""
    inbox.let_go()
    while (job := inbox.get()) is not None:
        job.sink(cancelled_before_start(job) if job.is_cancelled else Failed(error))
