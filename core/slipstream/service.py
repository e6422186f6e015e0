"""The engine thread's loop: jobs in, events out. Knows nothing of MLX, Qt or HTTP."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from slipstream.errors import EngineFaulted, SlipstreamError
from slipstream.events import Done, Event, Failed, Faulted, Finish, Loading, Ready, Status, Timings, Working
from slipstream.jobs import Inbox, Job

logger = logging.getLogger(__name__)


class Engine(Protocol):
    """What the loop needs of an engine. Made, used and closed on one thread."""

    @property
    def model(self) -> str: ...
    @property
    def drafters(self) -> tuple[str, ...]: ...
    def run(self, job: Job) -> Iterator[Event]: ...  # ends with one Done; raises SlipstreamError for a bad request
    def close(self) -> None: ...


def serve(
    inbox: Inbox, open_engine: Callable[[], Engine], emit: Callable[[Status], None], *, name: str = "model"
) -> None:
    """Open an engine and run jobs until the inbox is closed. Blocks; call it on the thread that is to own MLX.

    An error of a request fails its job alone. Any other exception means that a forward pass broke and the caches
    are lies: the job fails with EngineFaulted, the status says so, and every later job fails the same way until
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
        fault = EngineFaulted(f"loading failed: {type(error).__name__}; see the log, then reload", cause=str(error))
        emit(Faulted(fault))
        _refuse_all(inbox, fault)
        return
    try:
        emit(Ready(engine.model, engine.drafters))
        while (job := inbox.get()) is not None:
            emit(Working(engine.model, job.number))
            fault = _run(engine, job, inbox)
            if fault is not None:
                emit(Faulted(fault))
                _refuse_all(inbox, fault)
                return
            emit(Ready(engine.model, engine.drafters))
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


def _run(engine: Engine, job: Job, inbox: Inbox) -> EngineFaulted | None:
    """Run one job to its last event. Returns the fault when the engine cannot go on."""
    if job.is_cancelled:
        job.sink(_never_started(job))
        return None
    try:
        for event in engine.run(job):
            if inbox.is_closed:
                job.cancel()
            job.sink(event)
    except SlipstreamError as error:
        job.sink(Failed(error))
    except Exception as error:
        logger.exception("job %d failed", job.number)
        fault = EngineFaulted(
            f"the engine stopped after an error in the model ({type(error).__name__}); reload the model",
            cause=str(error),
        )
        job.sink(Failed(fault))
        return fault
    return None


def _refuse_all(inbox: Inbox, error: SlipstreamError) -> None:
    """Fail each job as it comes, so that nobody waits for an engine that is not there."""
    while (job := inbox.get()) is not None:
        job.sink(_never_started(job) if job.is_cancelled else Failed(error))


def _never_started(job: Job) -> Done:
    now = time.monotonic()
    return Done(Finish.CANCELLED, Timings(job.queued_s, now, now, now, 0, 0, 0, 0), ())


