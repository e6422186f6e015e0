"""OpenAI's plain completions: text in, text out, without a chat template."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from slipstream import __version__, types
from slipstream.errors import InvalidRequest, SlipstreamError
from slipstream.prompt.output import Content
from slipstream.server import sse
from slipstream.server.choices import MAX_CHOICES, Choices, total, with_seeds
from slipstream.server.conversation import prepare_text
from slipstream.server.exchange import answer_unless_left, backend_of, read
from slipstream.server.fields import Fields, wrong
from slipstream.server.metrics import extras
from slipstream.server.openai_messages import read_common
from slipstream.server.openai_shapes import Json, TokenTexts, error_event, new_id, now, reason_of, usage_of
from slipstream.server.prompt_limit import PromptLimit, read_limit
from slipstream.server.reply import Chosen, Finished, Usage
from slipstream.server.sampling import make_options
from slipstream.types import Text, Tokens

DEFAULT_MAX_TOKENS = 16  # OpenAI's


@dataclass(slots=True)
class _Answer:
    """The head that all pieces repeat, and what each choice needs to be told."""

    id: str
    created: int
    model: str
    texts: TokenTexts
    offsets: dict[int, int]  # characters of each choice so far

    def body(self, choices: list[Json], **more: object) -> Json:
        head = {"id": self.id, "object": "text_completion", "created": self.created, "model": self.model}
        return {**head, "system_fingerprint": f"slipstream-{__version__}", "choices": choices, **more}

    async def logprobs(self, index: int, chosen: list[Chosen]) -> Json | None:
        """OpenAI's older form: four lists side by side."""
        if not chosen:
            return None
        form: Json = {"tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []}
        for one in chosen:
            for token, choice in await self.texts.of(one):
                text = self.texts[token]
                form["tokens"].append(text)
                form["token_logprobs"].append(choice.logprob)
                form["top_logprobs"].append({self.texts[other]: value for other, value in choice.top})
                form["text_offset"].append(self.offsets.get(index, 0))
                self.offsets[index] = self.offsets.get(index, 0) + len(text)
        return form


async def create(request: Request) -> Response:
    backend = backend_of(request)
    fields = await read(request)
    info = backend.info()
    fields.need("model", fields.text("model"))
    fields.ignore("user", "stream_options")
    for name in ("echo", "suffix"):
        if fields.raw(name):
            raise InvalidRequest(f"{name} is not supported", path=name)
    if read_limit(fields) is PromptLimit.DROP_OLDEST:
        raise InvalidRequest(
            "slipstream.prompt_limit: a prompt without messages has no turns to drop; use /v1/chat/completions",
            path="slipstream.prompt_limit",
        )
    prompts = _read_prompts(fields, info.vocabulary)
    count = fields.whole("n", 1, MAX_CHOICES) or 1
    if (best_of := fields.whole("best_of", 1)) is not None and best_of != count:
        raise InvalidRequest("best_of: as many answers are given as are made; leave it out, or set n", path="best_of")
    if count * len(prompts) > MAX_CHOICES:
        raise InvalidRequest(f"at most {MAX_CHOICES} answers to one request", path="prompt")
    limit = fields.whole("max_tokens", 1) or DEFAULT_MAX_TOKENS
    logprobs = fields.whole("logprobs", 0, 20)
    options = make_options(info, **read_common(fields, info), max_tokens=limit, logprobs=logprobs)
    is_stream = fields.flag("stream") or False
    stream_options = fields.object("stream_options")
    wants_usage = bool(stream_options and stream_options.flag("include_usage"))
    fields.note_unknown(request.url.path)

    asked: list[types.Request] = []
    for prompt in prompts:
        asked += with_seeds(await prepare_text(backend, prompt, options), count)
    choices = await Choices.open(backend, asked)
    head = _Answer(new_id("cmpl"), now(), info.name, TokenTexts(backend, info), {})
    if is_stream:
        return sse.EventStream(_pieces(head, choices, count, wants_usage), on_close=choices.cancel)
    return await answer_unless_left(request, _whole(head, choices, count))


async def _pieces(head: _Answer, choices: Choices, count: int, wants_usage: bool) -> AsyncGenerator[bytes, None]:
    finished: dict[int, Finished] = {}
    waiting: dict[int, list[Chosen]] = {}
    try:
        async with aclosing(choices.items([None] * len(choices.streams))) as items:
            async for index, item in items:
                match item:
                    case Chosen():
                        waiting.setdefault(index, []).append(item)
                    case Content(text):
                        logprobs = await head.logprobs(index, waiting.pop(index, []))
                        yield sse.event(head.body([_choice(index, text, logprobs, None)]))
                    case Finished():
                        finished[index] = item
                        logprobs = await head.logprobs(index, waiting.pop(index, []))
                        last = head.body([_choice(index, "", logprobs, reason_of(item))])
                        yield sse.event(last | {"slipstream": extras(item.timings)})
                    case _:
                        pass
    except SlipstreamError as error:
        yield error_event(error)
        return
    if wants_usage:
        yield sse.event(head.body([], usage=usage_of(_usage(finished, count))))
    yield sse.DONE


async def _whole(head: _Answer, choices: Choices, count: int) -> Json:
    texts: list[list[str]] = [[] for _ in choices.streams]
    chosen: list[list[Chosen]] = [[] for _ in choices.streams]
    finished: dict[int, Finished] = {}
    async with aclosing(choices.items([None] * len(choices.streams))) as items:
        async for index, item in items:
            match item:
                case Chosen():
                    chosen[index].append(item)
                case Content(text):
                    texts[index].append(text)
                case Finished():
                    finished[index] = item
                case _:
                    pass
    made = [
        _choice(i, "".join(text), await head.logprobs(i, chosen[i]), reason_of(finished[i]))
        for i, text in enumerate(texts)
    ]
    usage = usage_of(_usage(finished, count))
    return head.body(made, usage=usage, slipstream=extras(finished[0].timings))


def _choice(index: int, text: str, logprobs: Mapping[str, Any] | None, reason: str | None) -> Json:
    return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": reason}


def _usage(finished: Mapping[int, Finished], count: int) -> Usage:
    """Each prompt once, each answer."""
    usages = [finished[index].usage for index in sorted(finished)]
    groups = [total(usages[start : start + count]) for start in range(0, len(usages), count)]
    return Usage(
        sum(group.prompt for group in groups),
        sum(group.cached for group in groups),
        sum(group.completion for group in groups),
        0,
    )


def _read_prompts(fields: Fields, vocabulary: int) -> list[Text | Tokens]:
    value = fields.raw("prompt")
    if isinstance(value, str):
        return [Text(value)]
    items = fields.need("prompt", fields.items("prompt"))
    if items and all(isinstance(item, str) for item in items):
        return [Text(item) for item in items]
    lists = [items] if not any(isinstance(item, list) for item in items) else list(items)
    if not lists or not all(isinstance(one, list) and _are_ids(one, vocabulary) for one in lists):
        raise wrong("prompt", f"text, token ids below {vocabulary}, or a list of either", value)
    return [Tokens(tuple(itertools.chain(one))) for one in lists]


def _are_ids(items: list[Any], vocabulary: int) -> bool:
    return bool(items) and all(type(item) is int and 0 <= item < vocabulary for item in items)
