"""Answers kept to a schema and forced calls, through every dialect and the real engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from server.events import read_events
from server.requests import Json, chat, chat_body, joined, post, streamed
from slipstream.types import Mode
from tiny_runs import chain_of
from tiny_server import serving_tiny

SCHEMA: Json = {
    "type": "object",
    "properties": {
        "colour": {"enum": ["red", "green", "grey"]},
        "number": {"type": "integer", "minimum": 0, "maximum": 99},
    },
    "required": ["colour", "number"],
    "additionalProperties": False,
}
FORM: Json = {"type": "json_schema", "name": "paint", "schema": SCHEMA}
LOOK: Json = {
    "type": "function",
    "function": {
        "name": "look",
        "parameters": {"type": "object", "properties": {"deep": {"type": "boolean"}}, "required": ["deep"]},
    },
}
BLINK: Json = {"type": "function", "function": {"name": "blink", "parameters": {"type": "object", "properties": {}}}}
TOOLS = [LOOK, BLINK]
FLAT = [{"type": "function", **tool["function"]} for tool in TOOLS]
ANTHROPIC = [{"name": tool["function"]["name"], "input_schema": tool["function"]["parameters"]} for tool in TOOLS]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving_tiny(tmp_path_factory.mktemp("model")) as one:
        chat(one, max_tokens=1, response_format={"type": "json_schema", "json_schema": FORM})  # all threads are there
        yield one


def ok(url: str, path: str, body: Json) -> Json:
    response = post(url, path, body)
    assert response.status_code == 200, response.text
    return response.json()


def fits(text: str) -> None:
    jsonschema.validate(json.loads(text), SCHEMA)


@pytest.mark.parametrize("seed", range(3))
def test_chat_keeps_to_a_schema(url: str, seed: int) -> None:
    asked: Json = {"seed": seed, "temperature": 1, "max_tokens": 400, "reasoning_effort": "none"}
    asked["response_format"] = {"type": "json_schema", "json_schema": FORM}
    answer = chat(url, **asked)["choices"][0]
    fits(answer["message"]["content"])
    assert answer["finish_reason"] == "stop"
    for mode in (Mode.BASELINE, Mode.LOOKUP, Mode.AUTO):
        again = streamed(url, **asked, slipstream={"mode": mode.value})
        assert joined(again) == answer["message"]["content"]


def test_responses_keep_to_a_schema(url: str) -> None:
    body = {"model": "m", "input": "hi", "text": {"format": FORM}, "reasoning": {"effort": "none"}}
    answer = ok(url, "/v1/responses", body)
    fits(answer["output"][0]["content"][0]["text"])
    assert answer["text"]["format"] == FORM
    events = read_events(post(url, "/v1/responses", body | {"stream": True}).text)
    fits("".join(event["delta"] for event in events if event["type"] == "response.output_text.delta"))


@pytest.mark.parametrize("place", ["output_config", "output_format"])
def test_messages_keep_to_a_schema(url: str, place: str) -> None:
    form = {"type": "json_schema", "schema": SCHEMA}
    body = chat_body(max_tokens=400) | {place: {"format": form} if place == "output_config" else form}
    answer = ok(url, "/v1/messages", body)
    (block,) = answer["content"]
    fits(block["text"])
    assert answer["stop_reason"] == "end_turn"


def test_ollama_keeps_to_a_schema(url: str) -> None:
    body = {"model": "m", "format": SCHEMA, "stream": False, "think": False}
    fits(ok(url, "/api/chat", body | {"messages": [{"role": "user", "content": "hi"}]})["message"]["content"])
    fits(ok(url, "/api/generate", body | {"prompt": "hi"})["response"])
    fits(ok(url, "/api/generate", body | {"prompt": "hi", "raw": True})["response"])


def test_any_object(url: str) -> None:
    loose = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
    for form in ({"type": "json_object"}, loose):
        cut = chat(url, max_tokens=8, response_format=form, reasoning_effort="none")["choices"][0]
        assert cut["message"]["content"].startswith("{") and cut["finish_reason"] in ("length", "stop")


@pytest.mark.parametrize(
    ("choice", "names"),
    [("required", {"look", "blink"}), ({"type": "function", "function": {"name": "blink"}}, {"blink"})],
)
def test_chat_calls_where_it_must(url: str, choice: Any, names: set[str]) -> None:
    asked: Json = {"tools": TOOLS, "tool_choice": choice, "max_tokens": 400, "temperature": 1}
    asked["reasoning_effort"] = "none"
    for seed in range(3):
        answer = chat(url, **asked, seed=seed)["choices"][0]
        (call,) = answer["message"]["tool_calls"]
        assert call["function"]["name"] in names
        assert answer["message"]["content"] is None and answer["finish_reason"] == "tool_calls"
        check_arguments(call["function"]["name"], call["function"]["arguments"])
        pieces = streamed(url, **asked, seed=seed)
        deltas = [one for piece in pieces for one in piece["choices"][0]["delta"].get("tool_calls") or ()]
        assert deltas[0]["function"]["name"] == call["function"]["name"]
        assert "".join(delta["function"]["arguments"] for delta in deltas) == call["function"]["arguments"]


def check_arguments(name: str, arguments: str) -> None:
    found = json.loads(arguments)
    assert (set(found) == {"deep"} and isinstance(found["deep"], bool)) if name == "look" else found == {}


def test_responses_call_where_they_must(url: str) -> None:
    body: Json = {"model": "m", "input": "hi", "tools": FLAT, "tool_choice": "required"}
    body["reasoning"] = {"effort": "none"}
    (call,) = ok(url, "/v1/responses", body)["output"]
    check_arguments(call["name"], call["arguments"])
    (call,) = ok(url, "/v1/responses", body | {"tool_choice": {"type": "function", "name": "look"}})["output"]
    assert call["name"] == "look"
    custom = [{"type": "custom", "name": "note", "format": {"type": "text"}}]
    answer = ok(url, "/v1/responses", body | {"tools": custom, "max_output_tokens": 120})
    assert answer["output"][0]["type"] == "custom_tool_call"


@pytest.mark.parametrize(
    ("choice", "names"), [({"type": "any"}, {"look", "blink"}), ({"type": "tool", "name": "look"}, {"look"})]
)
def test_messages_call_where_they_must(url: str, choice: Json, names: set[str]) -> None:
    body = chat_body(max_tokens=400, tools=ANTHROPIC, tool_choice=choice)
    answer = ok(url, "/v1/messages", body)
    (block,) = answer["content"]
    assert block["type"] == "tool_use" and block["name"] in names and answer["stop_reason"] == "tool_use"
    check_arguments(block["name"], json.dumps(block["input"]))
    deferred = [ANTHROPIC[0], ANTHROPIC[1] | {"defer_loading": True}]
    found = ok(url, "/v1/messages", chat_body(max_tokens=400, tools=deferred, tool_choice={"type": "any"}))
    assert found["content"][0]["name"] == "look"


BARE_FORM = {"type": "json_schema", "schema": 0}  # 0 stands for the schema
CHAT_FORM = {"type": "json_schema", "json_schema": {"name": "x", "schema": 0}}


@pytest.mark.parametrize(
    ("path", "fields", "where"),
    [
        ("/v1/chat/completions", {"response_format": CHAT_FORM}, "response_format.json_schema.schema"),
        ("/v1/responses", {"input": "x", "text": {"format": BARE_FORM}}, "text.format.schema"),
        ("/v1/messages", {"max_tokens": 9, "output_config": {"format": BARE_FORM}}, "output_config.format.schema"),
        ("/api/chat", {"format": 0}, "format"),
    ],
)
def test_what_cannot_be_kept_to_is_refused_with_its_place(url: str, path: str, fields: Json, where: str) -> None:
    unsupported = {"type": "object", "properties": {"tags": {"type": "array", "uniqueItems": True}}}
    body = json.loads(json.dumps(chat_body(**fields)).replace(": 0", f": {json.dumps(unsupported)}"))
    response = post(url, path, body)
    assert response.status_code == 400
    error: Any = response.json()["error"]
    message: str = error if path == "/api/chat" else error["message"]
    assert message.startswith(f'{where}: schema at "/properties/tags/uniqueItems": ')
    if path in ("/v1/chat/completions", "/v1/responses"):
        assert error["param"] == where


def test_strict_tools_are_refused_with_the_place_too(url: str) -> None:
    bad = {**LOOK["function"], "strict": True, "parameters": {"type": "object", "not": {}}}
    asked: list[tuple[str, Json]] = [
        ("/v1/chat/completions", {"tools": [{"type": "function", "function": bad}]}),
        ("/v1/responses", {"input": "x", "tools": [{"type": "function", **bad}]}),
        ("/v1/messages", {"tools": [{"name": "look", "strict": True, "input_schema": bad["parameters"]}]}),
    ]
    for path, fields in asked:
        response = post(url, path, chat_body(max_tokens=9, **fields))
        assert response.status_code == 400
        assert 'tool look: schema at "/not"' in response.json()["error"]["message"]
        loose = json.loads(json.dumps(chat_body(**fields)).replace('"strict": true', '"strict": false'))
        limit = "max_output_tokens" if path == "/v1/responses" else "max_tokens"
        assert post(url, path, loose | {limit: 1}).status_code == 200


def test_an_answer_that_is_begun_cannot_be_kept_to_a_schema(url: str) -> None:
    begun = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "{"}]
    body = {
        "model": "m",
        "max_tokens": 9,
        "messages": begun,
        "output_format": {"type": "json_schema", "schema": SCHEMA},
    }
    response = post(url, "/v1/messages", body)
    assert response.status_code == 400 and "begun already" in response.json()["error"]["message"]


OPEN = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[assistant]<think> {# </think> #}"


def test_json_comes_behind_the_thoughts(tmp_path: Path) -> None:
    """The template opens a thought and has no switch; the model closes it, and would only ever repeat itself."""
    with serving_tiny(tmp_path, links=chain_of(*b" zy</think>", ord(" ")), template=OPEN) as url:
        asked: Json = {"response_format": {"type": "json_schema", "json_schema": FORM}, "max_tokens": 400}
        message = chat(url, **asked)["choices"][0]["message"]
        assert message["reasoning_content"] == "zy"
        fits(message["content"])
        pieces = streamed(url, **asked)
        assert joined(pieces, "reasoning_content") == "zy"
        fits(joined(pieces))
        message = chat(url, tools=TOOLS, tool_choice="required", max_tokens=400)["choices"][0]["message"]
        assert message["reasoning_content"] == "zy" and message["tool_calls"][0]["function"]["name"] in (
            "look",
            "blink",
        )
        cut = chat(url, response_format=asked["response_format"], max_tokens=1)["choices"][0]
        assert cut["message"]["reasoning_content"] == "z" and cut["finish_reason"] == "length"
