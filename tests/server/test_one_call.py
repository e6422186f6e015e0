"""`parallel_tool_calls: false`: an answer ends with its first call, and the engine stops there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fakes import Script, serving
from prompt.pieces import TOOLS, brief, cuttings
from prompt.test_tools import A, B
from server.requests import FIND_TEXT, chat, chat_body, post, streamed
from slipstream.events import Finish
from slipstream.prompt.output import OutputParser, OutputStyle


def call(pattern: str) -> str:
    return f'<tool_call>\n{{"name": "find_text", "arguments": {{"pattern": "{pattern}"}}}}\n</tool_call>'


LONG = Script(pieces=("Look: ", call("a"), "\n", call("b"), *(" more" for _ in range(200))), round_s=0.005)


@pytest.mark.parametrize("between", ["\n", "", " and ", "<think>"])
def test_nothing_comes_behind_the_first_call(between: str) -> None:
    text = f"{call('a')}{between}{call('b')}"
    for pieces in ([text], *cuttings(text)):
        parser = OutputParser(OutputStyle("json_tools"), TOOLS, is_single=True)
        parts = [part for piece in pieces for part in parser.feed(piece)] + parser.finish()
        assert brief(parts) == [A]
        assert parser.is_over and parser.called
    both = OutputParser(OutputStyle("json_tools"), TOOLS)
    assert brief([*both.feed(f"{call('a')}\n{call('b')}"), *both.finish()]) == [A, B]
    assert not both.is_over


@pytest.mark.parametrize("is_stream", [False, True])
def test_chat(is_stream: bool) -> None:
    with serving(LONG) as served:
        asked: dict[str, Any] = {"tools": [FIND_TEXT], "parallel_tool_calls": False}
        if is_stream:
            pieces = streamed(served.url, **asked)
            starts = [
                call for piece in pieces for call in piece["choices"][0]["delta"].get("tool_calls", ()) if "id" in call
            ]
            reason = pieces[-1]["choices"][0]["finish_reason"]
        else:
            choice = chat(served.url, **asked)["choices"][0]
            starts, reason = choice["message"]["tool_calls"], choice["finish_reason"]
        assert len(starts) == 1 and reason == "tool_calls"
        (done,) = served.engine.ended
        assert done.reason is Finish.CANCELLED and done.timings.rounds < 100


def test_the_other_dialects() -> None:
    tool = FIND_TEXT["function"]
    with serving(LONG) as served:
        answer = post(
            served.url,
            "/v1/messages",
            chat_body(
                max_tokens=2000,
                tools=[{"name": tool["name"], "input_schema": tool["parameters"]}],
                tool_choice={"type": "auto", "disable_parallel_tool_use": True},
            ),
        ).json()
        assert [block["type"] for block in answer["content"]] == ["text", "tool_use"]
        assert answer["stop_reason"] == "tool_use"
        answer = post(
            served.url,
            "/v1/responses",
            {"model": "m", "input": "x", "tools": [{"type": "function", **tool}], "parallel_tool_calls": False},
        ).json()
        assert [item["type"] for item in answer["output"]] == ["message", "function_call"]
        assert answer["status"] == "completed" and answer["parallel_tool_calls"] is False
        assert json.loads(answer["output"][1]["arguments"]) == {"pattern": "a"}
