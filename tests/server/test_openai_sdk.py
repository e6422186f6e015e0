"""OpenAI's own Python client against the server."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, cast

import openai
import pytest
from openai import OpenAI
from pydantic import BaseModel

from fakes import FakeTokeniser, Script, Served, serving
from server.requests import WEATHER, client
from slipstream.jobs import Job
from tiny_server import serving_tiny

CALL = '<tool_call>{"name": "weather", "arguments": {"place": "Oslo"}}</tool_call>'
ASK: Any = [{"role": "user", "content": "hi"}]
TOOLS: Any = [WEATHER]


@contextmanager
def sdk(served: Served | str, key: str = "dummy") -> Generator[OpenAI]:
    url = served if isinstance(served, str) else served.url
    with client() as http, OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0, http_client=http) as one:
        yield one


def test_chat(served: Served) -> None:
    with sdk(served) as one:
        answer = one.chat.completions.create(model="gpt-9", messages=ASK)
    assert answer.choices[0].message.content == "Hello world" and answer.model == "fake-model"
    assert answer.usage is not None and answer.usage.completion_tokens == 11
    extras = cast("dict[str, Any]", answer.model_extra)
    assert extras["slipstream"]["rounds"] == 1


def test_stream(served: Served) -> None:
    with (
        sdk(served) as one,
        one.chat.completions.create(
            model="m", messages=ASK, stream=True, stream_options={"include_usage": True}
        ) as stream,
    ):
        pieces = list(stream)
    assert "".join(piece.choices[0].delta.content or "" for piece in pieces[:-1]) == "Hello world"
    assert pieces[-1].choices == [] and pieces[-1].usage is not None


def test_stream_helper_collects_a_tool_call() -> None:
    with (
        serving(Script(pieces=tuple(CALL))) as served,
        sdk(served) as one,
        one.chat.completions.stream(model="m", messages=ASK, tools=TOOLS) as stream,
    ):
        answer = stream.get_final_completion()
    calls = answer.choices[0].message.tool_calls
    assert calls is not None and json.loads(calls[0].function.arguments) == {"place": "Oslo"}
    assert answer.choices[0].finish_reason == "tool_calls"


def test_a_tool_round() -> None:
    def script(job: Job) -> Script:
        return Script(pieces=("done",) if "rains" in FakeTokeniser.text_of(job) else (CALL,))

    with serving(script) as served, sdk(served) as one:
        first = one.chat.completions.create(model="m", messages=ASK, tools=TOOLS)
        message = first.choices[0].message
        assert message.tool_calls is not None
        result: Any = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "it rains in Oslo"}
        messages: Any = [*ASK, message.model_dump(exclude_none=True), result]
        second = one.chat.completions.create(model="m", messages=messages, tools=TOOLS)
    assert second.choices[0].message.content == "done"


def test_logprobs(served: Served) -> None:
    with sdk(served) as one:
        answer = one.chat.completions.create(model="m", messages=ASK, logprobs=True, top_logprobs=1)
    logprobs = answer.choices[0].logprobs
    assert logprobs is not None and logprobs.content is not None and logprobs.content[0].token == "H"


def test_completions_and_models(served: Served) -> None:
    with sdk(served) as one:
        assert one.completions.create(model="m", prompt="x").choices[0].text == "Hello world"
        pieces = list(one.completions.create(model="m", prompt="x", stream=True))
        assert "".join(piece.choices[0].text for piece in pieces) == "Hello world"
        assert [model.id for model in one.models.list()] == ["fake-model"]
        assert one.models.retrieve("fake-model").owned_by == "slipstream"


def test_errors_are_the_clients_own(served: Served) -> None:
    with sdk(served) as one:
        with pytest.raises(openai.BadRequestError, match="prompt is too long") as too_long:
            one.chat.completions.create(model="m", messages=[{"role": "user", "content": "x" * 9000}])
        assert too_long.value.code == "context_length_exceeded"
        with pytest.raises(openai.NotFoundError):
            one.models.retrieve("other")
    with serving(key="right") as keyed, sdk(keyed, "wrong") as one, pytest.raises(openai.AuthenticationError):
        one.models.list()
    with serving(Script(pieces=("a", "b"), breaks_after=1)) as broken, sdk(broken) as one:
        with pytest.raises(openai.APIError, match="forward pass broke"):
            list(one.chat.completions.create(model="m", messages=ASK, stream=True))
        with pytest.raises(openai.InternalServerError):
            one.chat.completions.create(model="m", messages=ASK)


class Paint(BaseModel):
    colour: Literal["red", "green"]
    is_dry: bool
    coats: Literal[1, 2] | None


def test_parse_gives_objects_and_forced_tools_are_called(tmp_path: Path) -> None:
    """The real engine, on a model that by itself says nothing of sense."""
    quick: Any = {"model": "m", "messages": ASK, "max_tokens": 300, "reasoning_effort": "none"}
    look: Any = openai.pydantic_function_tool(Paint, name="paint")
    with serving_tiny(tmp_path) as url, sdk(url) as one:
        parsed = one.chat.completions.parse(**quick, response_format=Paint).choices[0].message.parsed
        assert isinstance(parsed, Paint)
        message = one.chat.completions.parse(**quick, tools=[look], tool_choice="required").choices[0].message
        assert message.tool_calls is not None and isinstance(message.tool_calls[0].function.parsed_arguments, Paint)
        with one.chat.completions.stream(**quick, response_format=Paint) as stream:
            assert isinstance(stream.get_final_completion().choices[0].message.parsed, Paint)
