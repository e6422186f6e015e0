"""The routes of Ollama that editors and chat clients look for. Streams are lines of JSON."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from slipstream import types
from slipstream.errors import InvalidRequest, SlipstreamError
from slipstream.events import Finish
from slipstream.prompt.output import Content, OutputParser, Part, Thinking, ToolEnd
from slipstream.server import sse
from slipstream.server.conversation import Conversation, Message, prepare, prepare_text
from slipstream.server.errors import describe, ollama_body
from slipstream.server.exchange import answer, answer_unless_left, backend_of, read
from slipstream.server.fields import Fields, wrong
from slipstream.server.formats import any_object_grammar, schema_grammar
from slipstream.server.metrics import extras
from slipstream.server.model_host import ModelHost
from slipstream.server.openai_messages import as_object, read_effort, read_message, read_tools
from slipstream.server.prompt_limit import PromptLimit
from slipstream.server.reply import Chosen, Finished, reply
from slipstream.server.sampling import make_options
from slipstream.server.stream import FIRST_WORD_S, Stream
from slipstream.server.times import read_time
from slipstream.types import Grammar, ModelInfo, Options, Text

Json = dict[str, Any]  # Any: a JSON document

# The API that these routes follow. Editors refuse servers that say less than they need (VS Code: 0.6.4).
API_VERSION = "0.12.0"


# Where a request asks for what is not done here, and what to do instead.
_NOT_GENERATED = {
    "images": "this model reads text only, no images",
    "suffix": "this model goes on from a text, it does not fill one; leave it out",
    "context": "send the conversation to /api/chat instead",
    "template": "the prompt is made by the model's own template; send raw: true to write it yourself",
}
# Ways of choosing tokens that other servers have, and the value that means off.
_NOT_SAMPLED = {"mirostat": 0, "typical_p": 1, "tfs_z": 1}
# How another server would use the machine. The context is the model's, whatever num_ctx says.
_OF_THE_MACHINE = (
    *("num_ctx", "num_batch", "num_gpu", "main_gpu", "num_thread", "num_keep", "numa", "low_vram", "f16_kv"),
    *("use_mmap", "use_mlock", "vocab_only", "mirostat_tau", "mirostat_eta"),
)


async def version(_: Request) -> Response:
    return answer({"version": API_VERSION})


async def tags(request: Request) -> Response:
    backend = backend_of(request)
    try:
        info = backend.info()
    except SlipstreamError:
        return answer({"models": []})
    size = sum(file.stat().st_size for file in Path(info.path).glob("*.safetensors"))
    made = datetime.fromtimestamp(backend.started_s, UTC).isoformat()
    listed = [
        {
            "name": name,
            "model": name,
            "modified_at": made,
            "size": size,
            "digest": hashlib.sha256(info.path.encode("utf-8", "surrogateescape")).hexdigest(),
            "details": _details(info),
        }
        for name in (info.name, *backend.aliases)
    ]
    return answer({"models": listed})


async def show(request: Request) -> Response:
    await read(request)  # any name is the loaded model's
    backend = backend_of(request)
    info = backend.info()
    template, style = await backend.tokenise(lambda tokeniser: (tokeniser.chat_template, tokeniser.style))
    capabilities = ["completion", *(["tools"] if style.tools else []), *(["thinking"] if style.think else [])]
    return answer(
        {
            "modelfile": "",
            "parameters": "",
            "template": template,
            "details": _details(info),
            "model_info": {
                "general.architecture": "slipstream",
                "general.basename": info.name,
                "slipstream.context_length": info.context,
            },
            "capabilities": capabilities,
        }
    )


def _details(info: ModelInfo) -> Json:
    return {
        "parent_model": "",
        "format": "mlx",
        "family": "slipstream",
        "families": ["slipstream"],
        "parameter_size": "",
        "quantization_level": info.quantisation,
    }


async def chat(request: Request) -> Response:
    backend = backend_of(request)
    fields = await read(request)
    info = backend.info()
    hold = _read_common(request, fields)
    messages = tuple(read_message(message) for message in fields.objects("messages"))
    if not messages:
        return _loaded(fields, _Shape(info.name, is_chat=True), hold)
    thinking, effort = _read_think(fields)
    conversation = Conversation(
        messages=messages,
        tools=tuple(read_tools(fields)),
        thinking=thinking,
        effort=effort,
        options=_read_options(fields, info),
        limit=_read_limit(fields),
    )
    asked, parser = await prepare(backend, conversation)
    return await _answer(request, fields, asked, parser, _Shape(info.name, is_chat=True))


async def generate(request: Request) -> Response:
    backend = backend_of(request)
    fields = await read(request)
    info = backend.info()
    hold = _read_common(request, fields)
    for name, instead in _NOT_GENERATED.items():
        if fields.raw(name):
            raise InvalidRequest(f"{name}: {instead}", path=name)
    shape = _Shape(info.name, is_chat=False)
    prompt = fields.text("prompt") or ""
    if not prompt:
        return _loaded(fields, shape, hold)
    options = _read_options(fields, info)
    thinking, effort = _read_think(fields)
    system = fields.text("system")
    if fields.flag("raw"):
        return await _answer(request, fields, await prepare_text(backend, Text(prompt), options), None, shape)
    messages: list[Message] = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": prompt})
    conversation = Conversation(
        tuple(messages), thinking=thinking, effort=effort, options=options, limit=_read_limit(fields)
    )
    asked, parser = await prepare(backend, conversation)
    return await _answer(request, fields, asked, parser, shape)


def _read_limit(fields: Fields) -> PromptLimit | None:
    """Ollama itself cuts where nothing is said; here the server's own setting holds then."""
    match fields.flag("truncate"):
        case None:
            return None
        case is_cut:
            return PromptLimit.DROP_OLDEST if is_cut else PromptLimit.REFUSE


def _read_common(request: Request, fields: Fields) -> float | None:
    """What chat and generation share. How long the model stays, in seconds; None where nothing is said of that."""
    fields.text("model")  # any name is the loaded model's
    fields.ignore("shift")  # an answer ends where the context does
    if fields.flag("logprobs"):
        raise InvalidRequest("logprobs: ask for them at /v1/chat/completions", path="logprobs")
    models: ModelHost | None = request.app.state.models
    if models is None:
        return None  # the window's own affair; `note_unknown` says so
    hold = read_time(fields, "keep_alive")
    if hold is not None:
        models.hold(hold if hold >= 0 else None)
    return hold


def _loaded(fields: Fields, shape: _Shape, hold: float | None) -> Response:
    fields.note_unknown("an empty request")
    return answer(shape.loaded("unload" if hold == 0 else "load"))


def _read_options(fields: Fields, info: ModelInfo) -> Options:
    given = fields.object("options") or Fields({}, "options")
    for name, off in _NOT_SAMPLED.items():
        if (value := given.number(name)) is not None and value != off:
            message = f"options.{name} is not offered here; leave it out, or set it to {off}"
            raise InvalidRequest(message, path=given.at(name))
    if given.whole("repeat_last_n") == 0:
        given = Fields({**given.values, "repeat_penalty": 1.0}, "options")
    limit = given.whole("num_predict")  # below 0: no limit
    options = make_options(
        info,
        temperature=given.number("temperature", 0, 100),
        top_p=given.number("top_p", 0, 1),
        top_k=given.whole("top_k", 0, 2**31),
        min_p=given.number("min_p", 0, 1),
        repetition_penalty=given.number("repeat_penalty", 1e-3, 1e3),
        presence_penalty=given.number("presence_penalty", -2, 2),
        frequency_penalty=given.number("frequency_penalty", -2, 2),
        seed=given.whole("seed"),
        stop=given.texts("stop") or None,
        max_tokens=limit if limit is not None and limit > 0 else None,
        grammar=_read_format(fields),
    )
    given.ignore(*_OF_THE_MACHINE, *_NOT_SAMPLED, "repeat_last_n")
    given.note_unknown("options")
    return options


def _read_format(fields: Fields) -> Grammar | None:
    value = fields.raw("format")
    if value in (None, ""):
        return None
    if value == "json":
        return any_object_grammar()
    if not isinstance(value, dict):
        raise wrong("format", '"json" or a JSON schema', value)
    return schema_grammar(fields.mapping("format") or {}, "format")


def _read_think(fields: Fields) -> tuple[bool | None, str | None]:
    value = fields.raw("think")
    return (value, None) if isinstance(value, bool) else read_effort(fields.text("think"), "think")


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a piece looks like: /api/chat has messages, /api/generate has responses."""

    model: str
    is_chat: bool

    def piece(self, *, text: str = "", thinking: str = "", calls: list[Json] | None = None, **more: object) -> Json:
        head = {"model": self.model, "created_at": datetime.now(UTC).isoformat()}
        thought = {"thinking": thinking} if thinking else {}
        if not self.is_chat:
            return {**head, "response": text, **thought, "done": False, **more}
        message = {"role": "assistant", "content": text, **thought, **({"tool_calls": calls} if calls else {})}
        return {**head, "message": message, "done": False, **more}

    def part(self, part: Part) -> Json | None:
        match part:
            case Content(text):
                return self.piece(text=text)
            case Thinking(text):
                return self.piece(thinking=text)
            case ToolEnd():
                return self.piece(calls=[_call(part)])
            case _:
                return None  # calls come whole, and one that was cut off is none

    def loaded(self, reason: str) -> Json:
        """The answer to an empty request, which asks for the model to be loaded, or to go."""
        return self.piece(done=True, done_reason=reason)


def _call(part: ToolEnd) -> Json:
    function = {"index": part.index, "name": part.call.name, "arguments": as_object(part.call.arguments_json)}
    return {"id": part.call.id, "function": function}


def _ending(finished: Finished) -> Json:
    timings = finished.timings

    def ns(seconds: float) -> int:
        return max(0, round(seconds * 1e9))

    return {
        "done": True,
        "done_reason": "length" if finished.reason is Finish.LENGTH else "stop",
        "total_duration": ns(timings.last_token_s - timings.queued_s),
        "load_duration": 0,
        "prompt_eval_count": finished.usage.prompt,
        "prompt_eval_duration": ns(timings.first_token_s - timings.started_s),
        "eval_count": finished.usage.completion,
        "eval_duration": ns(timings.last_token_s - timings.first_token_s),
        "slipstream": extras(timings),
    }


async def _answer(
    request: Request, fields: Fields, asked: types.Request, parser: OutputParser | None, shape: _Shape
) -> Response:
    is_whole = fields.flag("stream") is False
    fields.note_unknown(request.url.path)
    stream = await Stream.open(backend_of(request), asked)
    await stream.first(FIRST_WORD_S)
    if is_whole:
        return await answer_unless_left(request, _whole(stream, parser, shape))
    pieces = _pieces(stream, parser, shape)
    # These clients read every line as JSON: there is no heartbeat they would bear.
    return sse.EventStream(pieces, heartbeat=b"", on_close=stream.cancel, media_type="application/x-ndjson")


async def _pieces(stream: Stream, parser: OutputParser | None, shape: _Shape) -> AsyncGenerator[bytes, None]:
    try:
        async with aclosing(reply(stream, parser)) as items:
            async for item in items:
                if isinstance(item, Finished):
                    yield sse.dump(shape.piece() | _ending(item)) + b"\n"
                elif not isinstance(item, Chosen) and (piece := shape.part(item)) is not None:
                    yield sse.dump(piece) + b"\n"
    except SlipstreamError as error:
        yield sse.dump(ollama_body(describe(error))) + b"\n"


async def _whole(stream: Stream, parser: OutputParser | None, shape: _Shape) -> Json:
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[Json] = []
    ending: Json = {}
    async with aclosing(reply(stream, parser)) as items:
        async for item in items:
            match item:
                case Content(text):
                    texts.append(text)
                case Thinking(text):
                    thoughts.append(text)
                case ToolEnd():
                    calls.append(_call(item))
                case Finished():
                    ending = _ending(item)
                case _:
                    pass
    return shape.piece(text="".join(texts), thinking="".join(thoughts), calls=calls) | ending
