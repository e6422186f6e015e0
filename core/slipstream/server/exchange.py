"""What every route does with a request and its answer, whatever the dialect."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from slipstream.server import sse
from slipstream.server.backend import Backend
from slipstream.server.fields import Fields, parse

CLIENT_LEFT = 499  # nobody reads it


def backend_of(request: Request) -> Backend:
    return request.app.state.backend


async def read(request: Request) -> Fields:
    """The body's JSON object. Raises InvalidRequest."""
    return parse(await request.body())


async def read_or_empty(request: Request) -> Fields:
    """The same where the body may be left out."""
    body = await request.body()
    return parse(body or b"{}")


def answer(data: Mapping[str, Any], status: int = 200) -> Response:  # Any: a JSON document
    return Response(sse.dump(data), status, media_type="application/json")


async def answer_unless_left(request: Request, work: Coroutine[Any, Any, Mapping[str, Any]]) -> Response:
    """The answer of `work`, which is cancelled when the client hangs up before it is done."""
    data = await sse.finish_or_leave(asyncio.create_task(work), request.receive)
    return Response(status_code=CLIENT_LEFT) if data is None else answer(data)
