"""Requests that need a model have one loaded for them, and keep it until they are answered. Pure ASGI."""

from __future__ import annotations

import json
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from slipstream.errors import SlipstreamError
from slipstream.server.errors import describe, respond
from slipstream.server.model_host import ModelHost

PATHS = frozenset(
    (
        *("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/v1/messages/count_tokens"),
        *("/v1/v1/messages", "/v1/v1/messages/count_tokens", "/api/chat", "/api/generate", "/api/show"),
    )
)


class OnRequest:
    """Expects the body in one piece, and answers itself where loading fails."""

    def __init__(self, app: ASGIApp, models: ModelHost) -> None:
        self._app = app
        self._models = models

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] not in PATHS:
            await self._app(scope, receive, send)
            return
        messages: list[Message] = [await receive()]

        async def replay() -> Message:
            return messages.pop() if messages else await receive()

        is_loaded = False
        try:
            async with self._models.use(_model_of(messages[0].get("body", b""))):
                is_loaded = True
                await self._app(scope, replay, send)
        except SlipstreamError as error:
            if is_loaded:
                raise
            await respond(describe(error), scope["path"])(scope, receive, send)


def _model_of(body: bytes) -> str | None:
    """The model that a request names; the route says what is wrong with a body that cannot be read."""
    try:
        asked: Any = json.loads(body)  # Any: whatever the client sent
    except (ValueError, RecursionError):
        return None
    name = asked.get("model") if isinstance(asked, dict) else None
    return name if isinstance(name, str) else None
