"""OpenAI's Chat Completions: a conversation in, a message or its pieces out."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from starlette.requests import Request
from starlette.responses import Response

from slipstream import __version__
from slipstream.errors import SlipstreamError
from slipstream.prompt.output import Content, OutputParser, Part, Thinking, ToolArguments, ToolCut, ToolEnd, ToolStart
from slipstream.server import sse
from slipstream.server.choices import MAX_CHOICES, Choices, total, with_seeds
from slipstream.server.conversation import prepare_many
from slipstream.server.exchange import answer_unless_left, backend_of, read
from slipstream.server.metrics import extras
from slipstream.server.openai_messages import read_conversation
from slipstream.server.openai_shapes import Json, TokenTexts, error_event, new_id, now, reason_of, usage_of
from slipstream.server.reply import Chosen, Finished


@dataclasses.dataclass(frozen=True, slots=True)
class _Head:
    """What every piece of one answer repeats."""

    id: str
    created: int
    model: str

    def body(self, kind: str, choices: Sequence[Json], **more: object) -> Json:
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": f"slipstream-{__version__}",
            "service_tier": "default",
            "choices": list(choices),
            **more,
        }

    def chunk(self, index: int, delta: Json, *, logprobs: Json | None = None, reason: str | None = None) -> Json:
        choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
        return self.body("chat.completion.chunk", [choice])


async def create(request: Request) -> Response:
    backend = backend_of(request)
    fields = await read(request)
    info = backend.info()
    conversation = read_conversation(fields, info)
    count = fields.whole("n", 1, MAX_CHOICES) or 1
    stream_options = fields.object("stream_options")
    wants_usage = bool(stream_options and stream_options.flag("include_usage"))
    fields.note_unknown(request.url.path)

    asked, parsers = await prepare_many(backend, conversation, count)
    choices = await Choices.open(backend, with_seeds(asked, count))
    head = _Head(new_id("chatcmpl"), now(), info.name)
    texts = TokenTexts(backend, info)
    if conversation.stream:
        pieces = _pieces(head, choices, parsers, texts, wants_usage)
        return sse.EventStream(pieces, on_close=choices.cancel)
    return await answer_unless_left(request, _whole(head, choices, parsers, texts))


async def _pieces(
    head: _Head, choices: Choices, parsers: Sequence[OutputParser], texts: TokenTexts, wants_usage: bool
) -> AsyncGenerator[bytes, None]:
    finished: dict[int, Finished] = {}
    waiting: dict[int, list[Chosen]] = {}  # log-probabilities that go with the choice's next piece
    for index in range(len(parsers)):
        yield sse.event(head.chunk(index, {"role": "assistant", "content": "", "refusal": None}))
    try:
        async with aclosing(choices.items(parsers)) as items:
            async for index, item in items:
                if isinstance(item, Chosen):
                    waiting.setdefault(index, []).append(item)
                    continue
                if isinstance(item, Finished):
                    finished[index] = item
                    logprobs = await _logprobs(texts, waiting.pop(index, None))
                    last = head.chunk(index, {}, logprobs=logprobs, reason=reason_of(item))
                    yield sse.event(last | {"slipstream": extras(item.timings)})
                elif (delta := _delta(item)) is not None:
                    logprobs = await _logprobs(texts, waiting.pop(index, None))
                    yield sse.event(head.chunk(index, delta, logprobs=logprobs))
    except SlipstreamError as error:
        yield error_event(error)
        return
    if wants_usage:
        usage = total(item.usage for item in finished.values())
        yield sse.event(head.body("chat.completion.chunk", [], usage=usage_of(usage)))
    yield sse.DONE


def _delta(part: Part) -> Json | None:
    match part:
        case Content(text):
            return {"content": text}
        case Thinking(text):
            return {"reasoning_content": text}
        case ToolStart(index, call_id, name):
            call = {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
            return {"tool_calls": [call]}
        case ToolArguments(index, fragment):
            return {"tool_calls": [{"index": index, "function": {"arguments": fragment}}]}
        case ToolEnd() | ToolCut():
            return None  # all of it was said in pieces


async def _logprobs(texts: TokenTexts, chosen: list[Chosen] | None) -> Json | None:
    return None if chosen is None else {"content": await texts.entries(chosen), "refusal": None}


async def _whole(head: _Head, choices: Choices, parsers: Sequence[OutputParser], texts: TokenTexts) -> Json:
    messages = [_Message() for _ in parsers]
    finished: dict[int, Finished] = {}
    async with aclosing(choices.items(parsers)) as items:
        async for index, item in items:
            match item:
                case Finished():
                    finished[index] = item
                case Chosen():
                    messages[index].chosen.append(item)
                case _:
                    messages[index].add(item)
    made = [
        {
            "index": index,
            "message": message.body(),
            "logprobs": await _logprobs(texts, message.chosen or None),
            "finish_reason": reason_of(finished[index]),
        }
        for index, message in enumerate(messages)
    ]
    usage = total(item.usage for item in finished.values())
    return head.body("chat.completion", made, usage=usage_of(usage), slipstream=extras(finished[0].timings))


class _Message:
    """An answer as it adds up. A call that was cut off stays cut short, as it does in pieces."""

    def __init__(self) -> None:
        self.chosen: list[Chosen] = []
        self._content: list[str] = []
        self._thinking: list[str] = []
        self._calls: dict[int, tuple[ToolStart, list[str]]] = {}

    def add(self, part: Part) -> None:
        match part:
            case Content(text):
                self._content.append(text)
            case Thinking(text):
                self._thinking.append(text)
            case ToolStart():
                self._calls[part.index] = (part, [])
            case ToolArguments(index, fragment):
                self._calls[index][1].append(fragment)
            case ToolEnd() | ToolCut():
                pass

    def body(self) -> Json:
        content = "".join(self._content)
        body: Json = {"role": "assistant", "content": content, "refusal": None, "annotations": []}
        if self._thinking:
            body["reasoning_content"] = "".join(self._thinking)
        if self._calls:
            body["content"] = content or None
            body["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": "".join(pieces)}}
                for call, pieces in self._calls.values()
            ]
        return body
