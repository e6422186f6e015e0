"""OpenAI's Responses: items in, items or their events out; and answers kept for requests that go on from them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from slipstream.errors import InvalidRequest, SlipstreamError
from slipstream.prompt.output import Content, OutputParser
from slipstream.server import sse
from slipstream.server.conversation import Conversation, Message, prepare
from slipstream.server.errors import Refused
from slipstream.server.exchange import answer, answer_unless_left, backend_of, read
from slipstream.server.fields import Fields
from slipstream.server.formats import read_form
from slipstream.server.openai_messages import WITHOUT_MEANING, read_effort
from slipstream.server.openai_shapes import TokenTexts
from slipstream.server.prompt_limit import PromptLimit, read_limit
from slipstream.server.reply import Chosen, Finished, reply
from slipstream.server.responses_events import Writer
from slipstream.server.responses_items import answer_messages, read_input
from slipstream.server.responses_object import Json, make_head
from slipstream.server.responses_store import Kept, ResponseStore
from slipstream.server.responses_tools import Offer, read_choice, read_tools
from slipstream.server.sampling import make_options, read_sampling
from slipstream.server.stream import FIRST_WORD_S, Stream
from slipstream.types import ModelInfo

# As those of Chat Completions, known, and without a meaning for a model on this machine.
_WITHOUT_MEANING = ("client_metadata", "include", "max_tool_calls", "generate", "context_management")
_LOGPROBS = "message.output_text.logprobs"
_SEALED = "reasoning.encrypted_content"
_SILENCE = b"silence"  # stands for a pause between the items of an answer


@dataclass(frozen=True, slots=True)
class _Turn:
    """One request and what its answer is kept with."""

    conversation: Conversation
    writer: Writer
    offer: Offer
    store: ResponseStore
    history: tuple[Message, ...]  # without instructions
    is_kept: bool
    bytes: int


def store_of(request: Request) -> ResponseStore:
    return backend_of(request).responses


async def create(request: Request) -> Response:
    backend = backend_of(request)
    fields = await read(request)
    info = backend.info()
    limit = _read_limit(fields) or backend.prompt_limit
    turn = _read(fields, info, store_of(request), len(await request.body()), limit)
    fields.note_unknown(request.url.path)
    asked, parser = await prepare(backend, turn.conversation)
    stream = await Stream.open(backend, asked)
    await stream.first(FIRST_WORD_S)
    response_id = turn.writer.response["id"]
    turn.store.begin(response_id, lambda: turn.writer.response, stream.cancel)

    def close() -> None:
        stream.cancel()
        turn.store.end(response_id)

    if turn.conversation.stream:
        return sse.EventStream(_events(stream, parser, turn), heartbeat=b"", on_close=close)
    try:
        return await answer_unless_left(request, _whole(stream, parser, turn))
    finally:
        close()


def _read_limit(fields: Fields) -> PromptLimit | None:
    """Our own field for it, which only who means it sends, else OpenAI's, which some clients always do."""
    own = read_limit(fields)
    match fields.one_of("truncation", "auto", "disabled"):
        case None:
            return own
        case truncation:
            return own or (PromptLimit.DROP_OLDEST if truncation == "auto" else PromptLimit.REFUSE)


def _read(fields: Fields, info: ModelInfo, store: ResponseStore, size: int, prompt_limit: PromptLimit) -> _Turn:
    fields.ignore(*WITHOUT_MEANING, *_WITHOUT_MEANING)
    fields.need("model", fields.text("model"))
    for name in ("conversation", "prompt"):
        if fields.has(name):
            raise InvalidRequest(f"{name}: nothing of that kind is kept here; send the input itself", path=name)
    if fields.flag("background"):
        raise InvalidRequest("background: answers are given while the client waits, or streamed", path="background")
    offer = read_tools(fields)
    reasoning = fields.object("reasoning") or Fields({}, "reasoning")
    thinking, effort = read_effort(reasoning.text("effort"), reasoning.at("effort"))
    limit = fields.whole("max_output_tokens", 1)
    include = fields.texts("include")
    best = fields.whole("top_logprobs", 0, 20)
    text = fields.object("text")
    options = make_options(
        info,
        max_tokens=limit,
        logprobs=best or 0 if best or _LOGPROBS in include else None,
        grammar=read_form(text.object("format") if text else None),
        **read_sampling(fields),
    )
    history = (*_previous(fields, store), *read_input(fields, offer, store.item))
    if not history:
        raise InvalidRequest("input is required", path="input")
    instructions = fields.text("instructions")
    rules: tuple[Message, ...] = ({"role": "system", "content": instructions},) if instructions else ()
    conversation = Conversation(
        messages=(*rules, *history),
        tools=offer.tools,
        tool_choice=read_choice(fields, offer),
        thinking=thinking,
        effort=effort,
        options=options,
        stream=fields.flag("stream") or False,
        parallel=fields.flag("parallel_tool_calls"),
        limit=prompt_limit,
    )
    head = make_head(fields, info.name, options, limit, prompt_limit)
    writer = Writer(head, offer, seals=_SEALED in include)
    return _Turn(conversation, writer, offer, store, history, fields.flag("store") is not False, size)


def _previous(fields: Fields, store: ResponseStore) -> tuple[Message, ...]:
    previous = fields.text("previous_response_id")
    if previous is None:
        return ()
    kept = store.find(previous)
    if kept is None:
        message = f"previous_response_id: {previous[:80]!r} is not kept here (any more); send the whole input"
        raise Refused(400, "previous_response_not_found", message)
    return kept.messages


async def _events(stream: Stream, parser: OutputParser, turn: _Turn) -> AsyncGenerator[bytes, None]:
    writer = turn.writer
    yield writer.state("created")
    yield writer.state("in_progress")
    steps = _steps(stream, parser, turn)
    # Codex counts events alone as life, not comments.
    async with aclosing(sse.with_heartbeats(steps, _SILENCE, sse.HEARTBEAT_S)) as pieces:
        async for piece in pieces:
            yield writer.state("in_progress") if piece is _SILENCE else piece


async def _whole(stream: Stream, parser: OutputParser, turn: _Turn) -> Json:
    async with aclosing(_steps(stream, parser, turn, raises=True)) as pieces:
        async for _ in pieces:
            pass
    return turn.writer.response


async def _steps(
    stream: Stream, parser: OutputParser, turn: _Turn, *, raises: bool = False
) -> AsyncGenerator[bytes, None]:
    """The events from the first part on. Keeps the answer when it is whole."""
    writer = turn.writer
    texts = TokenTexts(stream.backend, stream.info)
    waiting: list[Chosen] = []  # log-probabilities that go with the next text
    try:
        async with aclosing(reply(stream, parser)) as items:
            async for item in items:
                if isinstance(item, Chosen):
                    waiting.append(item)
                elif isinstance(item, Finished):
                    ending = list(writer.finish(item))
                    _keep(turn)  # before the client, who has read the last event, asks to go on from it
                    for piece in ending:
                        yield piece
                else:
                    logprobs: list[Json] = []
                    if isinstance(item, Content) and waiting:
                        logprobs, waiting = await texts.entries(waiting), []
                    for piece in writer.add(item, logprobs):
                        yield piece
    except SlipstreamError as error:
        if raises:
            raise
        yield writer.fail(error)


def _keep(turn: _Turn) -> None:
    response = turn.writer.response
    if turn.is_kept:
        messages = (*turn.history, *answer_messages(response["output"], turn.offer))
        turn.store.keep(Kept(response, messages, turn.bytes + len(sse.dump(response))))


async def one(request: Request) -> Response:
    return answer(_found(request))


async def cancel(request: Request) -> Response:
    """One that has ended is given as it is."""
    response = _found(request)
    if store_of(request).cancel(response["id"]):
        response = response | {"status": "cancelled"}
    return answer(response)


async def delete(request: Request) -> Response:
    response_id = _found(request)["id"]
    store_of(request).forget(response_id)
    return answer({"id": response_id, "object": "response", "deleted": True})


def _found(request: Request) -> dict[str, Any]:
    response_id = request.path_params["id"]
    response = store_of(request).response(response_id)
    if response is None:
        raise Refused(404, "not_found", f"response {response_id[:80]!r} is not kept here (any more)")
    return response


async def upgrade(request: Request) -> Response:
    """Codex tries a WebSocket first. After a 426 it falls back at once, after a 404 it tries seven times."""
    if request.headers.get("upgrade", "").lower() == "websocket":
        raise Refused(426, "upgrade_not_offered", "responses are streamed over HTTP here", {"Connection": "close"})
    raise HTTPException(405, headers={"Allow": "POST"})


async def unknown(_: Request) -> Response:
    raise HTTPException(404)  # such as /compact; not 405, which would say that the address is a response


routes = [
    Route("/v1/responses", create, methods=["POST"]),
    Route("/v1/responses", upgrade, methods=["GET"]),
    Route("/v1/responses/{id}", one, methods=["GET"]),
    Route("/v1/responses/{id}", delete, methods=["DELETE"]),
    Route("/v1/responses/{id}", unknown, methods=["POST"]),
    Route("/v1/responses/{id}/cancel", cancel, methods=["POST"]),
]
