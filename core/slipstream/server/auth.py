"""Who may talk to the server, and how much at once: Host, Origin, key, size and time of a body. Pure ASGI."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import logging
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from slipstream.server.errors import Refused, describe, respond
from slipstream.server.request_log import IGNORED

logger = logging.getLogger(__name__)

BODY_LIMIT = 32 * 1024 * 1024
BODY_S = 60.0  # for a whole body to arrive
HEADER_LIMIT = 64 * 1024
HEADER_S = 20.0  # for a request's head to arrive

_OPEN_PATHS = frozenset({"/", "/health"})  # answer without a key: they say that a server is here, and no more
_PREFLIGHT_AGE_S = "600"


@dataclass(frozen=True)
class Access:
    """Where the server listens and whom it lets in."""

    host: str = "127.0.0.1"
    key: str | None = None
    origins: tuple[str, ...] = ()  # web pages that may call it from a browser, such as https://chat.example

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.host)

    @cached_property
    def names(self) -> frozenset[str]:
        """Names besides IP addresses by which this machine may be called."""
        names = {"localhost"}
        if not self.is_loopback:
            own = socket.gethostname().lower()
            names |= {self.host.lower(), own, f"{own}.local", own.removesuffix(".local")}
        return frozenset(names)

    def allows_host(self, header: str) -> bool:
        """A page that rebinds its own name to this machine sends that name; an address cannot be rebound."""
        name = _name_of(f"//{header}")
        if name is None:
            return False
        if name in self.names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or not self.is_loopback

    def allows_origin(self, origin: str, host: str) -> bool:
        if origin in self.origins:
            return True
        # Pages of this very server.
        return origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}")

    def allows_key(self, headers: Headers) -> bool:
        if self.key is None:
            return True
        scheme, _, token = headers.get("authorization", "").partition(" ")
        given = token.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
        return hmac.compare_digest(given.encode("utf-8"), self.key.encode("utf-8"))


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_origins(origins: Iterable[str]) -> tuple[str, ...]:
    """Raises ValueError for what is not an origin; a path or a star would never match."""
    checked: list[str] = []
    for origin in origins:
        parts = urlsplit(origin)
        if not parts.scheme or not parts.netloc or parts.path or parts.query:
            raise ValueError(
                f"{origin!r} is not an origin; write it like https://chat.example or http://localhost:3000"
            )
        checked.append(origin.lower())
    return tuple(checked)


def _name_of(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises for what is no number
        return parts.hostname if not (parts.username or parts.path or parts.query) else None
    except ValueError:
        return None


class Edge:
    """The outermost layer: whatever goes wrong inside becomes an answer in the dialect of the path."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        has_started = False

        async def watched(message: Message) -> None:
            nonlocal has_started
            has_started = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Refused as refused:
            if has_started:
                raise
            await respond(describe(refused), scope["path"])(scope, receive, send)
        except Exception as error:
            # The message of an unforeseen error may quote a prompt: the log gets the place, not the words.
            logger.error("%s %s failed: %s", scope["method"], scope["path"], type(error).__name__, exc_info=error)
            if has_started:
                raise
            unforeseen = Refused(500, "internal_error", f"the server failed ({type(error).__name__}); see its log")
            await respond(describe(unforeseen), scope["path"])(scope, receive, send)


class Guard:
    """Host, Origin and key. Answers pre-flights, adds CORS headers for allowed origins and no others."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        # No browser leaves Host out, HTTP/1.0 tools do.
        if host and not self._access.allows_host(host):
            raise Refused(403, "host_not_allowed", "this server answers to its own address only; check the Host header")
        origin = headers.get("origin")
        if origin is not None:
            if not self._access.allows_origin(origin.lower(), host):
                raise Refused(403, "origin_not_allowed", "web pages of this origin are not allowed; see --allow-origin")
            if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
                await Response(status_code=204, headers=_preflight(headers, origin))(scope, receive, send)
                return
            send = _with_cors(send, origin)
        if scope["path"] not in _OPEN_PATHS and not self._access.allows_key(headers):
            message = "a valid key is required: Authorization: Bearer KEY, or x-api-key: KEY"
            problem = describe(Refused(401, "invalid_api_key", message, {"WWW-Authenticate": "Bearer"}))
            await respond(problem, scope["path"])(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _preflight(headers: Headers, origin: str) -> dict[str, str]:
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Methods": "GET, HEAD, POST, DELETE",
        "Access-Control-Allow-Headers": headers.get("access-control-request-headers", "content-type"),
        "Access-Control-Max-Age": _PREFLIGHT_AGE_S,
        "Vary": "Origin",
    }


def _with_cors(send: Send, origin: str) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["Access-Control-Allow-Origin"] = origin
            headers["Access-Control-Expose-Headers"] = IGNORED
            headers.add_vary_header("Origin")
        await send(message)

    return sending


class Limits:
    """Bounds the head; reads the whole body, within its bounds of size and time, before any route runs."""

    def __init__(self, app: ASGIApp, *, body_limit: int = BODY_LIMIT, body_s: float = BODY_S) -> None:
        self._app = app
        self._body_limit = body_limit
        self._body_s = body_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # The protocol's own bound is for a head that comes in pieces; one that came at once is measured here.
        if len(scope["query_string"]) + sum(len(name) + len(value) for name, value in scope["headers"]) > HEADER_LIMIT:
            raise Refused(431, "headers_too_large", f"the head is larger than {HEADER_LIMIT // 1024} KiB")
        said = Headers(scope=scope).get("content-length", "")
        if said.isdigit() and int(said) > self._body_limit:
            raise self._too_large()
        try:
            async with asyncio.timeout(self._body_s):
                body = await self._read(receive)
        except TimeoutError:
            message = f"the body did not arrive within {self._body_s:g} s"
            raise Refused(408, "request_timeout", message, {"Connection": "close"}) from None
        given = False

        async def replay() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        if body is not None:
            await self._app(scope, replay, send)

    async def _read(self, receive: Receive) -> bytes | None:
        """None when the client left. What is not read of a body that is too large, uvicorn reads and drops."""
        pieces: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            piece: bytes = message.get("body", b"")
            size += len(piece)
            if size > self._body_limit:
                raise self._too_large()
            pieces.append(piece)
            if not message.get("more_body", False):
                return b"".join(pieces)

    def _too_large(self) -> Refused:
        return Refused(413, "request_too_large", f"the body is larger than {self._body_limit // 2**20} MiB")
