"""Anthropic's Messages: a conversation in, content blocks or their events out; and counting without answering."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from slipstream.errors import ContextFull, SlipstreamError
from slipstream.events import Prefill
from slipstream.prompt.output import OutputParser
from slipstream.server import sse
from slipstream.server.anthropic_events import PING, Blocks, Json, ending, event, message, usage, usage_of
from slipstream.server.anthropic_messages import read_conversation
from slipstream.server.conversation import prepare, render
from slipstream.server.errors import anthropic_body, describe
from slipstream.server.exchange import answer, answer_unless_left, backend_of, read
from slipstream.server.metrics import extras
from slipstream.server.reply import Chosen, Finished, reply
from slipstream.server.stream import FIRST_WORD_S, Stream
from slipstream.types import Tokens


async def create(request: Request) -> Response:
    backend = backend_of(request)
    fields = await read(request)
    conversation = read_conversation(fields, backend.info())
    fields.note_unknown(request.url.path)
    try:
        asked, parser = await prepare(backend, conversation)
    except ContextFull as error:
        # In Anthropic's words to the letter: Claude Code then compacts the conversation and goes on.
        facts = error.facts
        error.message = f"prompt is too long: {facts['prompt_tokens']} tokens > {facts['context']} maximum"
        raise
    stream = await Stream.open(backend, asked)
    first = await stream.first(FIRST_WORD_S)
    fills_context = asked.options.max_tokens < conversation.options.max_tokens
    if not conversation.stream:
        return await answer_unless_left(request, _whole(stream, parser, fills_context))
    cached = first.reused if isinstance(first, Prefill) else 0
    return sse.EventStream(_events(stream, parser, cached, fills_context), heartbeat=PING, on_close=stream.cancel)


async def count_tokens(request: Request) -> Response:
    """Beside the engine: Claude Code asks for 25 counts at once, while it waits for an answer."""
    backend = backend_of(request)
    fields = await read(request)
    conversation = read_conversation(fields, backend.info(), is_count=True)
    fields.note_unknown(request.url.path)
    rendered = await render(backend, conversation)
    return answer({"input_tokens": len(rendered.ids)})


async def hello(_: Request) -> Response:
    """Claude Code looks here whether there is a network."""
    return answer({})


async def _events(
    stream: Stream, parser: OutputParser, cached: int, fills_context: bool
) -> AsyncGenerator[bytes, None]:
    prompt = stream.request.prompt
    assert isinstance(prompt, Tokens)
    counted = usage(len(prompt.ids), cached, 0)
    yield event("message_start", message=message(stream.info.name, usage=counted))
    yield PING
    blocks = Blocks()
    try:
        async with aclosing(reply(stream, parser)) as items:
            async for item in items:
                if isinstance(item, Finished):
                    for piece in blocks.close():
                        yield piece
                    delta = ending(item, fills_context=fills_context)
                    yield event("message_delta", delta=delta, usage=usage_of(item), slipstream=extras(item.timings))
                elif not isinstance(item, Chosen):
                    for piece in blocks.add(item):
                        yield piece
    except SlipstreamError as error:
        yield event("error", error=anthropic_body(describe(error))["error"])
        return
    yield event("message_stop")


async def _whole(stream: Stream, parser: OutputParser, fills_context: bool) -> Json:
    blocks = Blocks()
    end: Json = {}
    async with aclosing(reply(stream, parser)) as items:
        async for item in items:
            if isinstance(item, Finished):
                end = ending(item, fills_context=fills_context)
                end |= {"usage": usage_of(item), "slipstream": extras(item.timings)}
            elif not isinstance(item, Chosen):
                for _ in blocks.add(item):
                    pass
    for _ in blocks.close():
        pass
    return message(stream.info.name) | {"content": blocks.content} | end


routes = [
    Route("/v1/messages", create, methods=["POST"]),
    Route("/v1/messages/count_tokens", count_tokens, methods=["POST"]),
    # For a base URL that was given with /v1, to which these clients add theirs.
    Route("/v1/v1/messages", create, methods=["POST"]),
    Route("/v1/v1/messages/count_tokens", count_tokens, methods=["POST"]),
    Route("/api/hello", hello, methods=["GET"]),
]
