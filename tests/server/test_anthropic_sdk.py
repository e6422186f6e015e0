"""Anthropic's own Python client against the server."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import anthropic
import pytest
from anthropic import Anthropic

from fakes import FakeTokeniser, Script, Served, serving
from server.requests import client
from slipstream.jobs import Job
from slipstream.types import Tokens

TOOLS: Any = [
    {
        "name": "weather",
        "description": "The weather of a place.",
        "input_schema": {"type": "object", "properties": {"place": {"type": "string"}}},
    }
]
CALL = '<tool_call>{"name": "weather", "arguments": {"place": "Oslo"}}</tool_call>'
ASK: Any = [{"role": "user", "content": "hi"}]


@contextmanager
def sdk(served: Served) -> Generator[Anthropic]:
    with client() as http, Anthropic(base_url=served.url, api_key="dummy", max_retries=0, http_client=http) as one:
        yield one


def test_message(served: Served) -> None:
    with sdk(served) as one:
        answer = one.messages.create(model="claude-x", max_tokens=100, messages=ASK, system="Be brief.")
    (block,) = answer.content
    assert block.type == "text" and block.text == "Hello world"
    assert answer.stop_reason == "end_turn" and answer.model == "fake-model" and answer.usage.output_tokens == 11


def test_stream_helper_collects_thoughts_text_and_calls() -> None:
    script = Script(pieces=tuple(f"let me see</think>I look.\n{CALL}"))
    with (
        serving(script, tokeniser=FakeTokeniser(opens_thinking=True)) as served,
        sdk(served) as one,
        one.messages.stream(
            model="m",
            max_tokens=2000,
            messages=ASK,
            tools=TOOLS,
            thinking={"type": "enabled", "budget_tokens": 1024},
        ) as stream,
    ):
        text = "".join(stream.text_stream)
        answer = stream.get_final_message()
    assert text == "I look." and answer.stop_reason == "tool_use"
    thought, said, call = answer.content
    assert thought.type == "thinking" and thought.thinking == "let me see" and thought.signature
    assert said.type == "text" and call.type == "tool_use" and call.input == {"place": "Oslo"}
    assert answer.usage.input_tokens > 0 and answer.usage.output_tokens > 0


def test_tool_round() -> None:
    def script(job: Job) -> Script:
        assert isinstance(job.request.prompt, Tokens)
        prompt = "".join(map(chr, job.request.prompt.ids))
        return Script(pieces=("It rains.",) if "rain" in prompt else (CALL,))

    with serving(script) as served, sdk(served) as one:
        first = one.messages.create(model="m", max_tokens=1000, messages=ASK, tools=TOOLS)
        (call,) = first.content
        assert call.type == "tool_use"
        messages: Any = [
            *ASK,
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "rain"}]},
        ]
        second = one.messages.create(model="m", max_tokens=1000, messages=messages, tools=TOOLS)
        prompts = [job.request.prompt for job in served.engine.jobs]
    assert second.content[0].type == "text" and second.content[0].text == "It rains."
    one_ids, two_ids = (prompt.ids for prompt in prompts if isinstance(prompt, Tokens))
    assert two_ids[: len(one_ids)] == one_ids
    assert two_ids[len(one_ids) :][: len(CALL)] == tuple(map(ord, CALL)), "the call stands there as it was sampled"


def test_count_tokens(served: Served) -> None:
    with sdk(served) as one:
        counted = one.messages.count_tokens(model="m", messages=ASK, tools=TOOLS).input_tokens
        answer = one.messages.create(model="m", max_tokens=10, messages=ASK, tools=TOOLS)
    usage = answer.usage
    assert counted == usage.input_tokens + (usage.cache_read_input_tokens or 0)


def test_models(served: Served) -> None:
    with sdk(served) as one:
        (model,) = one.models.list(limit=1000).data
        assert model.id == "fake-model" and model.type == "model" and one.models.retrieve(model.id).id == model.id


def test_errors_are_the_clients_own(served: Served) -> None:
    with sdk(served) as one:
        with pytest.raises(anthropic.BadRequestError, match="prompt is too long: 9017 tokens > 8192 maximum"):
            one.messages.create(model="m", max_tokens=10, messages=[{"role": "user", "content": "x" * 9000}])
        with pytest.raises(anthropic.NotFoundError):
            one.models.retrieve("gone")


def test_a_broken_stream_raises() -> None:
    from slipstream.errors import EngineFaulted

    with (
        serving(Script(fails_after=(1, EngineFaulted("it broke")))) as served,
        sdk(served) as one,
        pytest.raises(anthropic.APIStatusError, match="it broke"),
        one.messages.stream(model="m", max_tokens=10, messages=ASK) as stream,
    ):
        stream.until_done()
