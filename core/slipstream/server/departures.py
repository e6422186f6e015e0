"""What happens to a request whose client hangs up before it is answered. Pure ASGI."""

from __future__ import annotations

import asyncio
import logging

from starlette.types import ASGIApp, Message, Receive, Scope, Send

logger = logging.getLogger(__name__)


class Departures:
    """Tells the route that listens for it (`http.disconnect`), and cancels one that is busy with something else.

    So a client may leave while its prompt is tokenised, waits for a load or for its turn: nothing is done for it any
    more. Expects the body in one piece.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        messages: list[Message] = [await receive()]
        left = asyncio.Event()
        listeners = 0
        is_answered = False

        async def listen() -> Message:
            nonlocal listeners
            if messages:
                return messages.pop()
            listeners += 1
            try:
                await left.wait()
            finally:
                listeners -= 1
            return {"type": "http.disconnect"}

        async def watched(message: Message) -> None:
            nonlocal is_answered
            await send(message)
            is_answered = message["type"] == "http.response.body" and not message.get("more_body", False)

        work = asyncio.ensure_future(self._app(scope, listen, watched))
        departure = asyncio.create_task(_departure(receive))
        try:
            await asyncio.wait({work, departure}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done() and not is_answered:
                left.set()
                if not listeners:
                    logger.info("client left")
                    work.cancel()
                    await asyncio.gather(work, return_exceptions=True)
                    return
            await work
        finally:
            departure.cancel()
            work.cancel()
            await asyncio.gather(work, departure, return_exceptions=True)


async def _departure(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
