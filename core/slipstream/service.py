"""The engine thread's loop: jobs in, events out. Knows nothing of MLX, Qt or HTTP."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol

from slipstream.errors import EngineFaulted, SlipstreamError
from slipstream.events import Done, Event, Failed, Faulted, Loading, Ready, Status, Working
from slipstream.jobs import Inbox, Job, cancelled_before_start
from slipstream.types import ModelInfo, Tokens

logger = logging.getLogger(__name__)

MAX_ACTIVE = 4  # jobs that share the engine by turns; the others wait in the inbox
SHORT_PROMPT = 1024  # tokens: so short a prompt need not wait for long ones that have taken every place
SHORT_PLACES = 2  # beside MAX_ACTIVE


class Engine(Protocol):
    """What the loop needs of an engine. Made, used and closed on one thread."""

    @property
    def info(self) -> ModelInfo: ...

    def run(self, job: Job) -> Iterator[Event]:
        """One event at each prefill chunk and each round, a Done at the end.

        Raises SlipstreamError when the request cannot be served. Stops early, with Done, when the job is cancelled.
        """
        ...

    def close(self) -> None: ...


def serve(
    inbox: Inbox,
    open_engine: Callable[[], Engine],
    emit: Callable[[Status], None],
    *,
    name: str = "model",
    max_active: int | None = None,
) -> None:
    """Open an engine and run jobs until the inbox is closed. Blocks; call it on the thread that is to own MLX.

    Up to `max_active` jobs (None: MAX_ACTIVE, or as many as the engine decodes together) take turns, one prefill chunk
    or one round each, so that a short one is not stuck behind a long prompt; two places more are there for short
    prompts alone. An error of a request fails its job alone. Any
    other exception means that a forward pass broke and the caches are lies: every job fails with EngineFaulted until
    the program opens a new engine.
    """
    emit(Loading(name))
    try:
        engine = open_engine()
    except SlipstreamError as error:
        emit(Faulted(error))
        _refuse_all(inbox, error)
        return
    except Exception as error:
        logger.exception("loading failed")
        fault = EngineFaulted(f"loading failed ({type(error).__name__}: {error}); choose another model or reload")
        emit(Faulted(fault))
        _refuse_all(inbox, fault)
        return
    places = max(MAX_ACTIVE, engine.info.max_batch) if max_active is None else max_active
    turns: deque[tuple[Job, Iterator[Event]]] = deque()
    try:
        emit(Ready(engine.info))
        while True:
            if _admit(inbox, engine, turns, places):
                emit(Working(engine.info, tuple(job.number for job, _ in turns)))
            if not turns:
                return  # the inbox is closed and empty
            if inbox.is_closed:
                for job, _ in turns:
                    job.cancel()
            job, events = _take(turns)
            try:
                if _turn(job, events):
                    turns.append((job, events))
                elif not turns:
                    emit(Ready(engine.info))
            except Exception as error:
                logger.exception("job %d failed", job.number)
                fault = EngineFaulted(f"the model failed ({type(error).__name__}: {error}); reload it")
                for failed in (job, *(job for job, _ in turns)):
                    failed.sink(Failed(fault))
                emit(Faulted(fault))
                _refuse_all(inbox, fault)
                return
    finally:
        engine.close()


def start(
    inbox: Inbox,
    open_engine: Callable[[], Engine],
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


def _admit(inbox: Inbox, engine: Engine, turns: deque[tuple[Job, Iterator[Event]]], places: int) -> bool:
    """Give waiting jobs a turn, waiting for one when there is nothing else to do. True when somebody came in."""
    came_in = False
    inbox.drop_cancelled()
    while len(turns) < places + SHORT_PLACES:
        job = inbox.get(wait=not turns, only=_anybody if len(turns) < places else _is_short)
        if job is None:
            break
        # A newcomer goes first: its prompt is short, or it will step aside after one chunk.
        turns.appendleft((job, engine.run(job)))
        came_in = True
    return came_in


def _anybody(_: Job) -> bool:
    return True


def _is_short(job: Job) -> bool:
    return isinstance(job.request.prompt, Tokens) and len(job.request.prompt.ids) <= SHORT_PROMPT


def _take(turns: deque[tuple[Job, Iterator[Event]]]) -> tuple[Job, Iterator[Event]]:
    """Whose turn it is. A cancelled job goes first: it has only to end, and its client's next request may wait."""
    index = next((index for index, (job, _) in enumerate(turns) if job.is_cancelled), 0)
    taken = turns[index]
    del turns[index]
    return taken


def _turn(job: Job, events: Iterator[Event]) -> bool:
    """One event of one job. True while it has more to say."""
    try:
        event = next(events)
    except SlipstreamError as error:
        job.sink(Failed(error))
        return False
    job.sink(event)
    return not isinstance(event, Done)


def _refuse_all(inbox: Inbox, error: SlipstreamError) -> None:
    """Fail each job as it comes, so that nobody waits for an engine that is not there."""
    while (job := inbox.get()) is not None:
        job.sink(cancelled_before_start(job) if job.is_cancelled else Failed(error))
