"""The last requests: who asked, what came of it, what was ignored. On the server's loop alone; never a text unless
the owner of this machine asked for it.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from slipstream.events import Done, Event, Failed, Timings

KEPT = 200
MAX_TEXT = 256 * 1024  # bytes of a request's body, where bodies are kept
UNAUTHORISED = (401, 403)
IGNORED = "x-slipstream-ignored"  # names to the client the fields that nobody read
DROPPED = "x-slipstream-dropped-messages"  # says how many did not fit

# By how the product in `User-Agent` begins; others go by that product's own name.
_CLIENTS = {"claude-cli": "claude-code", "codex": "codex", "opencode": "opencode", "pi/": "pi", "pi-": "pi"}


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One HTTP request as it stands. Figures are None until, and unless, a job of it has ended."""

    number: int
    at_s: float  # wall clock
    client: str
    agent: str  # `User-Agent` as sent
    address: str
    method: str
    path: str
    status: int | None = None  # None: not answered yet
    seconds: float | None = None  # None: not over
    jobs: tuple[int, ...] = ()
    timings: Timings | None = None  # of the last job that ended; a request with several choices has several
    reason: str = ""  # how that job ended, or its error's code
    error: str = ""  # its sentence
    ignored: tuple[str, ...] = ()
    dropped: int = 0  # messages at the beginning that did not fit and were not given to the model
    text: str | None = None

    @property
    def cached_share(self) -> float | None:
        """Of the prompt, 0 to 1."""
        if self.timings is None or not self.timings.prompt_tokens:
            return None
        return self.timings.reused_tokens / self.timings.prompt_tokens


class RequestLog:
    """`follow` is called with each record whenever it changes, on the server's loop: it must not block."""

    def __init__(self, follow: Callable[[RequestRecord], None] = lambda _: None) -> None:
        self.keeps_text = False
        self.unauthorised = 0
        self.last_refused = ""  # the address of whoever was turned away last
        self.follow = follow
        self._numbers = itertools.count(1)
        self._entries: deque[Entry] = deque(maxlen=KEPT)

    @property
    def records(self) -> tuple[RequestRecord, ...]:
        """Oldest first."""
        return tuple(entry.record for entry in self._entries)

    def open(self, scope: Scope) -> Entry:
        headers = Headers(scope=scope)
        agent = headers.get("user-agent", "")[:200]
        address = scope["client"][0] if scope.get("client") else ""
        record = RequestRecord(
            next(self._numbers), time.time(), client_name(agent), agent, address, scope["method"], scope["path"]
        )
        entry = Entry(self, record)
        self._entries.append(entry)
        self.follow(record)
        return entry


class Entry:
    """A record under change."""

    def __init__(self, log: RequestLog, record: RequestRecord) -> None:
        self._log = log
        self._began = time.monotonic()
        self.record = record

    def _change(self, **values: object) -> None:
        self.record = dataclasses.replace(self.record, **values)
        self._log.follow(self.record)

    def ignore(self, names: tuple[str, ...]) -> None:
        self._change(ignored=(*self.record.ignored, *names))

    def drop(self, messages: int) -> None:
        self._change(dropped=messages)

    def add_job(self, number: int) -> None:
        self._change(jobs=(*self.record.jobs, number))

    def observe(self, event: Event) -> None:
        """May come after the request is over, when its client has left."""
        match event:
            case Done(reason, timings):
                self._change(timings=timings, reason=reason.value)
            case Failed(error):
                self._change(reason=error.code, error=error.message)
            case _:
                pass

    def answer(self, status: int) -> None:
        if status in UNAUTHORISED:
            self._log.unauthorised += 1
            self._log.last_refused = self.record.address
        self._change(status=status)

    def end(self, body: bytes | None) -> None:
        text = None if body is None else body.decode("utf-8", "replace")
        self._change(seconds=time.monotonic() - self._began, text=text)


current: ContextVar[Entry | None] = ContextVar("current", default=None)


def client_name(agent: str) -> str:
    """A short name for whoever sends this `User-Agent`."""
    product = agent.split(maxsplit=1)[0] if agent.strip() else ""
    known = next((name for start, name in _CLIENTS.items() if product.lower().startswith(start)), None)
    return known or product.partition("/")[0] or "?"


class Logged:
    """Keeps a record of each request. Outermost, so that what is turned away is seen too. Pure ASGI."""

    def __init__(self, app: ASGIApp, log: RequestLog) -> None:
        self._app = app
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        entry = self._log.open(scope)
        body: bytearray | None = bytearray() if self._log.keeps_text else None

        async def received() -> Message:
            message = await receive()
            if body is not None and message["type"] == "http.request":
                body.extend(message.get("body", b"")[: MAX_TEXT - len(body)])
            return message

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                entry.answer(message["status"])
                if entry.record.ignored:
                    MutableHeaders(scope=message)[IGNORED] = ", ".join(entry.record.ignored)
                if entry.record.dropped:
                    MutableHeaders(scope=message)[DROPPED] = str(entry.record.dropped)
            await send(message)

        token = current.set(entry)
        try:
            await self._app(scope, received, sent)
        finally:
            current.reset(token)
            entry.end(None if body is None else bytes(body))
