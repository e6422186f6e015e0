"""OpenAI's own Python client against the Responses routes."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import openai
import pytest
from openai import OpenAI
from pydantic import BaseModel

from fakes import FakeTokeniser, Script, Served, serving
from server.requests import client
from tiny_server import serving_tiny

TOOLS: Any = [
    {
        "type": "function",
        "name": "weather",
        "strict": False,
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
    }
]
CALL = '<tool_call>{"name": "weather", "arguments": {"place": "Oslo"}}</tool_call>'


@contextmanager
def sdk(served: Served | str) -> Generator[OpenAI]:
    base = f"{served if isinstance(served, str) else served.url}/v1"
    with client() as http, OpenAI(base_url=base, api_key="dummy", max_retries=0, http_client=http) as one:
        yield one


def test_response(served: Served) -> None:
    with sdk(served) as one:
        answer = one.responses.create(model="gpt-9", input="hi", instructions="Be brief.")
        again = one.responses.retrieve(answer.id)
        following = one.responses.create(model="m", input="And?", previous_response_id=answer.id)
        one.responses.delete(answer.id)
    assert answer.output_text == again.output_text == "Hello world" and answer.status == "completed"
    assert answer.usage is not None and answer.usage.output_tokens == 11
    assert following.previous_response_id == answer.id


def test_stream_helper_collects_thoughts_text_and_calls() -> None:
    """It refuses events that are out of order."""
    script = Script(pieces=tuple(f"let me see</think>I look.\n{CALL}"))
    with (
        serving(script, tokeniser=FakeTokeniser(opens_thinking=True)) as served,
        sdk(served) as one,
        one.responses.stream(model="m", input="hi", tools=TOOLS, reasoning={"summary": "auto"}) as stream,
    ):
        kinds = [event.type for event in stream]
        answer = stream.get_final_response()
    assert kinds[0] == "response.created" and kinds[-1] == "response.completed"
    thought, said, call = answer.output
    assert thought.type == "reasoning" and said.type == "message" and answer.output_text == "I look."
    assert call.type == "function_call" and call.arguments == '{"place": "Oslo"}'


def test_plain_stream(served: Served) -> None:
    with sdk(served) as one, one.responses.create(model="m", input="hi", stream=True) as stream:
        deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
    assert "".join(deltas) == "Hello world"


def test_errors_are_the_clients_own(served: Served) -> None:
    with sdk(served) as one:
        with pytest.raises(openai.BadRequestError) as refused:
            one.responses.create(model="m", input="x" * 9000)
        assert refused.value.code == "context_length_exceeded"
        with pytest.raises(openai.NotFoundError):
            one.responses.retrieve("resp_gone")


class Paint(BaseModel):
    colour: Literal["red", "green"]
    is_dry: bool


def test_parse_gives_objects_and_forced_tools_are_called(tmp_path: Path) -> None:
    """The real engine, on a model that by itself says nothing of sense."""
    quick: Any = {"model": "m", "input": "hi", "reasoning": {"effort": "none"}}
    with serving_tiny(tmp_path) as url, sdk(url) as one:
        assert isinstance(one.responses.parse(**quick, text_format=Paint).output_parsed, Paint)
        paint: Any = openai.pydantic_function_tool(Paint, name="paint")["function"]
        tool: Any = {"type": "function", **paint}
        (call,) = one.responses.create(**quick, tools=[tool], tool_choice="required").output
        assert call.type == "function_call"
        assert Paint.model_validate_json(call.arguments)
