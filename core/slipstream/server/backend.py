"""What the routes know of the engine: its inbox, its latest status, a tokeniser of their own. No HTTP in here."""

from __future__ import annotations

import asyncio
import functools
import logging
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from slipstream.errors import Closed, EngineFaulted, SlipstreamError
from slipstream.events import Empty, Event, Faulted, Loading, Ready, Status, Working
from slipstream.jobs import Inbox, Job
from slipstream.prompt import chat
from slipstream.prompt.abilities import Templated
from slipstream.prompt.output import ToolCall
from slipstream.server.errors import NotReady
from slipstream.server.metrics import Metrics
from slipstream.server.prompt_limit import PromptLimit
from slipstream.server.request_log import RequestLog
from slipstream.server.responses_store import ResponseStore
from slipstream.store.calls import KeptCalls
from slipstream.types import ModelInfo

if TYPE_CHECKING:
    from slipstream.server.stream import Stream

logger = logging.getLogger(__name__)

STALLED_AFTER_S = 30.0  # a job is active and nothing moved: not healthy

Result = TypeVar("Result")


class ServerTokeniser(Templated, Protocol):
    """What the server asks of a tokeniser. Used on one thread alone."""

    def decode(self, ids: Sequence[int]) -> str: ...


def open_tokeniser(info: ModelInfo) -> ServerTokeniser:
    from slipstream.server.tokenising import FolderTokeniser

    return FolderTokeniser(Path(info.path))


class Backend:
    """The engine as the routes see it. `note` and `touch` may be called from any thread; the rest is for the server's.

    A tokeniser is not made for several threads, so all work with it is done on one thread of its own: `tokenise`.
    """

    def __init__(
        self,
        inbox: Inbox,
        *,
        aliases: Iterable[str] = (),
        open_tokeniser: Callable[[ModelInfo], ServerTokeniser] = open_tokeniser,
        clock: Callable[[], float] = time.monotonic,
        calls: KeptCalls | None = None,
        prompt_limit: PromptLimit = PromptLimit.REFUSE,
    ) -> None:
        self.inbox = inbox
        self.aliases = tuple(aliases)  # names listed beside the model's own; any name at all is answered
        self.prompt_limit = prompt_limit  # for requests that do not say
        self.metrics = Metrics()
        self.requests = RequestLog()
        self.responses = ResponseStore()
        self.started_s = time.time()
        self.streams: set[Stream] = set()  # open now; the server's loop alone touches it
        self._status: Status = Empty()
        self._open_tokeniser = open_tokeniser
        self._tokeniser: tuple[ModelInfo, ServerTokeniser] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="slipstream-tokeniser")
        self._calls = calls or KeptCalls()
        self._clock = clock
        self._progress_s = clock()

    # The engine.

    def note(self, status: Status) -> None:
        """Give this to the engine's loop as its `emit`."""
        self._status = status
        self.touch()

    @property
    def status(self) -> Status:
        return self._status

    @property
    def is_loaded(self) -> bool:
        return isinstance(self._status, Ready | Working)

    def info(self) -> ModelInfo:
        """The loaded model, whatever name was asked for. Raises when there is none."""
        match self._status:
            case Ready(model) | Working(model):
                return model
            case Loading(model):
                raise NotReady(f"{model} is loading; try again in a moment")
            case Empty():
                raise NotReady("no model is loaded; load one in Slipstream")
            case Faulted(EngineFaulted() | Closed() as error):
                raise error
            case Faulted(error):
                raise NotReady(f"the model could not be loaded: {error.message}")

    # Progress.

    def touch(self) -> None:
        """Something moved. A program whose own jobs share the inbox calls this for their events too."""
        self._progress_s = self._clock()

    @property
    def seconds_since_progress(self) -> float:
        return self._clock() - self._progress_s

    @property
    def is_stalled(self) -> bool:
        """Jobs that are held back need not move."""
        return len(self.streams) > self.inbox.held and self.seconds_since_progress > STALLED_AFTER_S

    def observe(self, job: Job, event: Event) -> None:
        """On the server's loop, once for each event of its jobs."""
        self.metrics.observe(job, event)

    # The tokeniser.

    def warm_up(self, info: ModelInfo) -> None:
        """Read a model's tokeniser before its first request waits for it. Blocks; never raises: a request will."""
        self._thread.submit(self._warm_up, info).result()

    def _warm_up(self, info: ModelInfo) -> None:
        try:
            tokeniser = self._open_tokeniser(info)
            # Also tries out the chat template, once.
            chat.render(tokeniser, [{"role": "user", "content": "hello"}])
        except SlipstreamError as error:
            logger.warning("%s", error.message)
        else:
            self._tokeniser = (info, tokeniser)

    async def tokenise(self, work: Callable[[ServerTokeniser], Result]) -> Result:
        """Do `work` on the tokeniser's thread. It waits for no model, only for its turn there."""
        self.info()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, functools.partial(self._work, work))

    def tokeniser(self) -> ServerTokeniser:
        """The loaded model's tokeniser, read from its folder on first use. On the tokeniser's thread only."""
        info = self.info()
        if self._tokeniser is None or self._tokeniser[0] != info:
            self._tokeniser = (info, self._open_tokeniser(info))
        return self._tokeniser[1]

    def _work(self, work: Callable[[ServerTokeniser], Result]) -> Result:
        return work(self.tokeniser())

    # Tool calls, in the model's own words.

    def remember(self, call: ToolCall) -> None:
        """Clients send a call back in other words; the exact text lets the prompt prefix match (clients/README 6)."""
        self._calls.remember(call)

    def recall(self, call_id: str) -> ToolCall | None:
        return self._calls.recall(call_id)

    def close(self) -> None:
        """After the server has stopped. Waits for work on the tokeniser that is under way."""
        if "mlx.core" in sys.modules:
            self._thread.submit(_leave_mlx)
        self._thread.shutdown(wait=True, cancel_futures=False)


def _leave_mlx() -> None:
    """mlx-lm makes a stream on the thread that first imports it, which may be the tokeniser's. Left there, the process
    aborts ("terminate called without an active exception") when it ends right after the thread: seen with mlx 0.32.4.
    """
    import mlx.core as mx

    mx.synchronize()
    mx.clear_streams()
