"""The HTTP server: which route is where, and the thread it all runs on."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import socket
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from slipstream.errors import SlipstreamError
from slipstream.server import (
    admin,
    anthropic,
    ollama,
    openai_chat,
    openai_completions,
    openai_models,
    openai_responses,
    openapi,
)
from slipstream.server.auth import HEADER_LIMIT, HEADER_S, Access, Edge, Guard, Limits
from slipstream.server.backend import Backend
from slipstream.server.departures import Departures
from slipstream.server.errors import CannotListen, Problem, describe, respond
from slipstream.server.model_host import ModelHost
from slipstream.server.on_request import OnRequest
from slipstream.server.request_log import Logged
from slipstream.store.preferences import DEFAULT_PORT

logger = logging.getLogger(__name__)

TICKS = 10  # of uvicorn's, in a second
STOP_S = 1  # for answers under way to end, once they were cancelled
START_S = 30.0
OFFERED = "/v1/chat/completions, /v1/responses, /v1/messages and /v1/models"

Result = TypeVar("Result")


def routes() -> list[Route]:
    return [
        Route("/", admin.root, methods=["GET"]),
        Route("/health", admin.health, methods=["GET"]),
        Route("/metrics", admin.metrics, methods=["GET"]),
        Route("/metrics.json", admin.metrics_json, methods=["GET"]),
        Route("/events", admin.events, methods=["GET"]),
        Route("/admin/status", admin.status, methods=["GET"]),
        Route("/openapi.json", openapi.document, methods=["GET"]),
        Route("/v1/models", openai_models.listing, methods=["GET"]),
        Route("/v1/models/{id:path}", openai_models.one, methods=["GET"]),
        Route("/v1/chat/completions", openai_chat.create, methods=["POST"]),
        Route("/v1/completions", openai_completions.create, methods=["POST"]),
        *openai_responses.routes,
        *anthropic.routes,
        Route("/api/version", ollama.version, methods=["GET"]),
        Route("/api/tags", ollama.tags, methods=["GET"]),
        Route("/api/show", ollama.show, methods=["POST"]),
        Route("/api/chat", ollama.chat, methods=["POST"]),
        Route("/api/generate", ollama.generate, methods=["POST"]),
    ]


def make_app(
    backend: Backend, access: Access, hooks: admin.Hooks | None = None, models: ModelHost | None = None
) -> Starlette:
    hooks = hooks or (admin.hooks_of(models) if models else admin.Hooks())
    app = Starlette(
        routes=[*routes(), *admin.routes(hooks)],
        middleware=[
            Middleware(Logged, backend.requests),
            Middleware(Edge),
            Middleware(Guard, access),
            Middleware(Limits),
            Middleware(Departures),
            *([Middleware(OnRequest, models)] if models else []),
        ],
        exception_handlers={SlipstreamError: _refuse, HTTPException: _refuse_route},
    )
    app.state.backend = backend
    app.state.hooks = hooks
    app.state.models = models
    return app


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, SlipstreamError)
    problem = describe(error)
    logger.info("%s %s: %d %s", request.method, request.url.path, problem.status, problem.code)
    return respond(problem, request.url.path)


async def _refuse_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    words = {
        404: f"there is nothing at {request.url.path[:80]}; GET /openapi.json lists what there is, such as {OFFERED}",
        405: f"this address does not take {request.method}; use {(error.headers or {}).get('Allow', 'another method')}",
    }
    code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "invalid_request")
    message = words.get(error.status_code, str(error.detail))
    return respond(Problem(error.status_code, code, message, dict(error.headers or {})), request.url.path)


class HttpServer:
    """Listens from the moment it is made, answers from `start` to `stop`, on a thread of its own."""

    def __init__(
        self,
        backend: Backend,
        host: str = "127.0.0.1",
        port: int = DEFAULT_PORT,
        key: str | None = None,
        *,
        origins: tuple[str, ...] = (),
        hooks: admin.Hooks | None = None,
        models: ModelHost | None = None,
    ) -> None:
        """`models` loads what requests need; without it the program itself sees to that.

        Binds the socket. Raises CannotListen, with what to do, when the address cannot be had.
        """
        access = Access(host, key or None, origins)
        if access.key is None and not access.is_loopback:
            raise CannotListen(
                f"listening on {access.host} lets other machines in; set a key first", host=access.host, reason="key"
            )
        self._backend = backend
        self._socket = _bind(access.host, port)
        self.host = access.host
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            make_app(backend, access, hooks, models),
            loop="asyncio",
            http=_Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=STOP_S,
            timeout_keep_alive=int(HEADER_S),  # with 5 s clients meet a closed connection between two turns
            h11_max_incomplete_event_size=HEADER_LIMIT,
        )
        self._server = _Server(config, self._end_answers)
        self._thread = threading.Thread(target=self._run, name="slipstream-http")

    @property
    def url(self) -> str:
        """Where clients on this machine find it; without `/v1`."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    def start(self) -> None:
        self._thread.start()
        if not self._server.is_up.wait(START_S):
            raise CannotListen("the HTTP server did not start; see the log")
        logger.info("listening on %s", self.url)

    def call(self, work: Coroutine[Any, Any, Result]) -> concurrent.futures.Future[Result]:
        """Run something on the server's loop, once it has started. From any thread."""
        assert self._server.loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._server.loop)

    def stop(self) -> None:
        """Ends open answers with an error the client can read, then the thread. Returns within two seconds."""
        self._server.leave()
        if self._thread.is_alive():
            self._thread.join()
        self._socket.close()

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])

    def _end_answers(self) -> None:
        for stream in tuple(self._backend.streams):
            stream.abort()
        self._backend.metrics.end_followers()


def _bind(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:  # the latter for what can be no name: "a..b"
        raise CannotListen(
            f"{host!r} is not an address of this machine; choose one that is, such as 127.0.0.1",
            host=host,
            reason="host",
        ) from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)  # now, so that a second server on the port is refused at once
    except OSError as error:
        listener.close()
        raise CannotListen(
            f"port {port} on {host} cannot be used ({error.strerror}); stop what uses it, or choose another",
            host=host,
            port=port,
            reason="port",
        ) from error
    listener.setblocking(False)
    return listener


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, before_shutdown: Callable[[], None]) -> None:
        super().__init__(config)
        self.is_up = threading.Event()
        self.loop: asyncio.AbstractEventLoop | None = None
        self._leaving = asyncio.Event()
        self._before_shutdown = before_shutdown

    def leave(self) -> None:
        """From any thread."""
        self.should_exit = True
        if self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._leaving.set)

    async def main_loop(self) -> None:
        """Wakes up once a second, for the Date header; uvicorn's own does ten times, with nothing to do."""
        second = 0
        while not await self.on_tick(TICKS * second):
            second += 1
            with suppress(TimeoutError):
                await asyncio.wait_for(self._leaving.wait(), 1.0)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.loop = asyncio.get_running_loop()
        self.is_up.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._before_shutdown()
        await super().shutdown(sockets)


class _Protocol(H11Protocol):
    """Also closes a connection whose request head does not arrive in time; uvicorn has no such limit."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._late is not None:
            self._late.cancel()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def _watch(self) -> None:
        if self._late is not None:
            self._late.cancel()
        self._late = self.loop.call_later(HEADER_S, self._close_if_idle, self.cycle)

    def _close_if_idle(self, before: Any) -> None:
        if self.cycle is before and not self.transport.is_closing():
            self.transport.close()
