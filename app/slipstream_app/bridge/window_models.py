"""Loads the window's pair when a request comes and nothing is loaded. Imported with the server: it brings starlette."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from slipstream.errors import ModelNotFound, SlipstreamError
from slipstream.events import Empty, Faulted, Ready, Report, Status, Working
from slipstream.server.backend import Backend
from slipstream.server.model_host import ENGINE_END_S, ModelHost
from slipstream.service import Engine


class WindowModels(ModelHost):
    """The session owns the engine and how long it stays; this only says what is wanted, and waits."""

    def __init__(
        self, backend: Backend, pair: str, ask: Callable[[], None], hold: Callable[[float | None], None]
    ) -> None:
        """`ask`: says on any thread that `pair`, or whatever the window has now, is wanted. `hold`: for how many
        seconds without a request the model is to stay, as a client said; None: for ever."""
        super().__init__(backend, _nobody, pair)
        self._ask = ask
        self._say_hold = hold
        self._held: tuple[float | None] | None = None  # what requests under way said
        self._settled: asyncio.Future[Status] | None = None

    @property
    def loaded(self) -> str | None:
        match self._backend.status:
            case Ready(model) | Working(model):
                return model.name
            case _:
                return None

    def note(self, status: Status) -> None:
        """From any thread."""
        settled = self._settled
        if settled is not None and isinstance(status, Ready | Faulted | Empty):
            settled.get_loop().call_soon_threadsafe(_settle, settled, status)

    def hold(self, idle_s: float | None) -> None:
        self._held = (idle_s,)

    def _needed(self, name: str | None) -> str | None:
        """The window has one model at a time, whatever name a request gives it."""
        return None if self.loaded else self._wanted

    def _stop_timer(self) -> None:
        """Another request has come: what those before it said holds no more."""
        self._held = None

    def _start_timer(self) -> None:
        """The last answer under way has ended; the window counts the time."""
        held, self._held = self._held, None
        if held is not None:
            self._say_hold(held[0])

    async def _replace(self, name: str | None, *, unless_loaded: bool = False, end_s: float = ENGINE_END_S) -> None:
        async with self._turn:
            if name is None or self.loaded:
                return
            if isinstance(self._backend.status, Faulted):
                raise self._backend.status.error
            self._settled = asyncio.get_running_loop().create_future()
            try:
                self._ask()
                status = await self._settled
            finally:
                self._settled = None
            match status:
                case Faulted(error):
                    raise error
                case Empty():
                    raise ModelNotFound("the model was unloaded while it was loading; ask again")
                case _:
                    pass


def _settle(settled: asyncio.Future[Status], status: Status) -> None:
    if not settled.done():
        settled.set_result(status)


def _nobody(_: str, _report: Report) -> Engine:
    raise SlipstreamError("the window loads its models itself")
