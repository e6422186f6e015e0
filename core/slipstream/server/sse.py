"""Server-sent events: framing, heartbeats while the model reads, and noticing that the client has left."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

logger = logging.getLogger(__name__)

HEARTBEAT_S = 10.0  # Codex, pi and opencode give up after 300 s of silence, browsers' proxies after 30 to 60
COMMENT = b": still working\n\n"
DONE = b"data: [DONE]\n\n"

Result = TypeVar("Result")


def event(data: Mapping[str, Any], name: str | None = None) -> bytes:
    """One event. JSON never contains a line break, so one data line is enough."""
    body = dump(data)
    return b"event: %s\ndata: %s\n\n" % (name.encode(), body) if name else b"data: %s\n\n" % body


def dump(data: Any) -> bytes:  # Any: a JSON document
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


class EventStream(Response):
    """Sends headers at once, then each piece as it comes, then `heartbeat` whenever `every_s` pass without one.

    `pieces` must be an async generator: it is closed when the client leaves, which cancels the job behind it.
    `on_close` runs in any case, also when nothing was ever asked of `pieces`.
    An error inside it must be turned into an event by the dialect: here it only ends the stream.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        pieces: AsyncGenerator[bytes, None],
        *,
        heartbeat: bytes = COMMENT,
        every_s: float | None = None,
        on_close: Callable[[], None] | None = None,
        media_type: str | None = None,
    ) -> None:
        super().__init__(
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}, media_type=media_type or self.media_type
        )
        del self.headers["content-length"]
        self._pieces = pieces
        self._heartbeat = heartbeat
        self._every_s = HEARTBEAT_S if every_s is None else every_s
        self._on_close = on_close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        work = asyncio.create_task(self._send(send))
        try:
            await finish_or_leave(work, receive)
        finally:
            if self._on_close is not None:
                self._on_close()

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async with aclosing(with_heartbeats(self._pieces, self._heartbeat, self._every_s)) as pieces:
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def with_heartbeats(
    pieces: AsyncGenerator[bytes, None], heartbeat: bytes, every_s: float
) -> AsyncGenerator[bytes, None]:
    """The pieces, with `heartbeat` between those that are further apart. An empty heartbeat: none."""
    following: asyncio.Future[bytes] | None = None
    try:
        while True:
            following = asyncio.ensure_future(anext(pieces))
            while not (await asyncio.wait({following}, timeout=every_s))[0]:
                if heartbeat:
                    yield heartbeat
            try:
                piece = following.result()
            except StopAsyncIteration:
                return
            yield piece
    finally:
        if following is not None:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)  # it may have ended by itself meanwhile
        await pieces.aclose()


async def finish_or_leave(work: asyncio.Task[Result], receive: Receive) -> Result | None:
    """Wait for `work`, and cancel it when the client leaves first: None then. The request's body must be read."""
    left = asyncio.create_task(_client_left(receive))
    try:
        await asyncio.wait({work, left}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            return work.result()
        logger.info("client left")
        return None
    finally:
        for task in (work, left):
            task.cancel()
        await asyncio.gather(work, left, return_exceptions=True)


async def _client_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
