"""The API server inside the app: its switch, its state, and the thread that starts and stops it."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from slipstream.errors import SlipstreamError
from slipstream.events import Empty, Status
from slipstream.jobs import Inbox
from slipstream_app.bridge.bus import Bus

if TYPE_CHECKING:  # they import starlette and uvicorn, and that must not delay the window
    from slipstream.server.app import HttpServer
    from slipstream.server.backend import Backend
    from slipstream_app.bridge.window_models import WindowModels

logger = logging.getLogger(__name__)

DEFAULT_PORT = 8765


@dataclass(frozen=True, slots=True)
class ServerOff:
    pass


@dataclass(frozen=True, slots=True)
class ServerStarting:
    pass


@dataclass(frozen=True, slots=True)
class ServerOn:
    url: str  # without /v1
    key: str | None


@dataclass(frozen=True, slots=True)
class ServerRefused:
    """It could not be switched on, with what to do instead."""

    error: SlipstreamError


ServerState = ServerOff | ServerStarting | ServerOn | ServerRefused


@dataclass(frozen=True, slots=True)
class ServerOptions:
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    key: str | None = None
    origins: tuple[str, ...] = ()
    prompt_limit: str = "refuse"  # of `slipstream.server.prompt_limit`, whose import must not delay the window
    loads: str = ""  # the pair that a request has loaded where none is; empty: such a request is refused


class ServerHost(QObject):
    """The embedded server. `start` and `stop` return at once; `bus.server_changed` says what became of them."""

    def __init__(self, bus: Bus, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bus = bus
        self._state: ServerState = ServerOff()
        self._status: Status = Empty()
        self._inbox: Inbox = Inbox()
        self._inbox.close()  # nothing is loaded yet
        self._backend: Backend | None = None
        self._server: HttpServer | None = None
        self._models: WindowModels | None = None
        self._is_closed = False
        # Importing starlette, binding and waiting for uvicorn take too long for the window's thread.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="slipstream-server-switch")
        bus.server_changed.connect(self._keep)

    @property
    def state(self) -> ServerState:
        """As of the last `bus.server_changed`."""
        return self._state

    @property
    def backend(self) -> Backend | None:
        """Figures and open answers of the running server; None while it is off."""
        return self._backend

    @property
    def clients(self) -> int:
        """Answers that clients are waiting for now."""
        return 0 if self._backend is None else len(self._backend.streams)

    def start(self, options: ServerOptions) -> None:
        self._bus.server_changed.emit(ServerStarting())
        self._thread.submit(self._start, options)

    def limit_prompts(self, limit: str) -> None:
        """What happens to prompts that do not fit, from the next request on; no answer under way is disturbed."""
        if self._backend is not None:
            from slipstream.server.prompt_limit import PromptLimit

            self._backend.prompt_limit = PromptLimit(limit)

    def stop(self) -> None:
        """Open answers end with an error that the client can read."""
        self._thread.submit(self._stop)

    def close(self) -> None:
        """Stop for good. Waits, two seconds at most."""
        if not self._is_closed:
            self._is_closed = True
            self._thread.submit(self._stop)
            self._thread.shutdown(wait=True)

    # From the engine's side, on any thread.

    def note(self, status: Status) -> None:
        self._status = status
        if self._backend is not None:
            self._backend.note(status)
        if self._models is not None:
            self._models.note(status)

    def touch(self) -> None:
        """A job of the window moved on."""
        if self._backend is not None:
            self._backend.touch()

    def use(self, inbox: Inbox) -> None:
        """Where requests go from now on."""
        self._inbox = inbox
        if self._backend is not None:
            self._backend.inbox = inbox

    # On the switch's thread.

    def _start(self, options: ServerOptions) -> None:
        from slipstream.server.admin import Hooks
        from slipstream.server.app import HttpServer
        from slipstream.server.backend import Backend
        from slipstream.server.prompt_limit import PromptLimit

        self._end()
        backend = Backend(self._inbox, prompt_limit=PromptLimit(options.prompt_limit))
        backend.note(self._status)
        models = None
        if options.loads:
            from slipstream_app.bridge.window_models import WindowModels

            models = WindowModels(backend, options.loads, self._bus.load_wanted.emit, self._bus.hold_wanted.emit)
        try:
            server = HttpServer(
                backend,
                options.host,
                options.port,
                options.key,
                origins=options.origins,
                hooks=Hooks(),  # loading and unloading are the window's
                models=models,
            )
            server.start()
        except SlipstreamError as error:
            backend.close()
            logger.warning("the server did not start: %s", error.message)
            self._bus.server_changed.emit(ServerRefused(error))
            return
        self._backend, self._server, self._models = backend, server, models
        backend.inbox = self._inbox  # it may have changed meanwhile
        backend.note(self._status)
        self._bus.server_changed.emit(ServerOn(server.url, options.key))

    def _stop(self) -> None:
        self._end()
        self._bus.server_changed.emit(ServerOff())

    def _end(self) -> None:
        if self._server is not None:
            self._server.stop()
        if self._backend is not None:
            self._backend.close()
        self._server = self._backend = self._models = None

    @Slot(object)
    def _keep(self, state: ServerState) -> None:
        self._state = state
