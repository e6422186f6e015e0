"""Anthropic's Messages: blocks and events, what is accepted, what is refused, and in which words."""

from __future__ import annotations

import json
import logging
import time
from typing import Any

import pytest

from fakes import FakeTokeniser, Script, Served, serving
from prompt.templates import CHANNELS, TemplateTokeniser
from server.events import Json, read_events, types
from server.requests import client, open_stream, post
from slipstream.errors import EngineFaulted
from slipstream.jobs import Job
from slipstream.server import sse
from slipstream.server.anthropic_messages import read_conversation
from slipstream.server.conversation import Conversation, Named
from slipstream.server.fields import Fields
from slipstream.server.thoughts import MAX_THOUGHT, seal, unseal
from slipstream.types import Tokens

FIND_TEXT: Json = {
    "name": "find_text",
    "input_schema": {"type": "object", "properties": {"pattern": {"type": "string"}, "max": {"type": "integer"}}},
}
CALL = '<tool_call>{"name":"find_text","arguments":{"pattern":"\\d+","max":3}}</tool_call>'
PIXEL: Json = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0K"}}


def body(content: Any = "hi", **more: Any) -> Json:
    return {"model": "claude-x", "max_tokens": 1000, "messages": [{"role": "user", "content": content}], **more}


def whole(url: str, content: Any = "hi", **more: Any) -> Json:
    response = post(url, "/v1/messages", body(content, **more))
    assert response.status_code == 200, response.text
    return response.json()


def streamed(url: str, content: Any = "hi", **more: Any) -> list[Json]:
    response = post(url, "/v1/messages?beta=true", body(content, stream=True, **more))
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    return read_events(response.text)


def collected(events: list[Json]) -> list[Json]:
    """What a client makes of the events."""
    blocks: list[Json] = []
    for event in events:
        match event["type"]:
            case "content_block_start":
                assert event["index"] == len(blocks)
                blocks.append({**event["content_block"], "pieces": ""})
            case "content_block_delta":
                delta = event["delta"]
                block = blocks[event["index"]]
                if delta["type"] == "signature_delta":
                    block["signature"] = delta["signature"]
                elif delta["type"] == "input_json_delta":
                    block["pieces"] += delta["partial_json"]
                else:
                    block[delta["type"].removesuffix("_delta")] += delta[delta["type"].removesuffix("_delta")]
            case _:
                pass
    for block in blocks:
        pieces = block.pop("pieces")
        if block["type"] == "tool_use" and pieces:
            block["input"] = json.loads(pieces)
    return blocks


def conversation(served: Served, **fields: Any) -> Conversation:
    return read_conversation(Fields({**body(), **fields}), served.backend.info())


def test_whole_answer(served: Served) -> None:
    answer = whole(served.url)
    assert answer["type"] == "message" and answer["role"] == "assistant" and answer["model"] == "fake-model"
    assert answer["content"] == [{"type": "text", "text": "Hello world", "citations": None}]
    assert answer["stop_reason"] == "end_turn" and answer["stop_sequence"] is None
    assert answer["usage"]["output_tokens"] == 11 and answer["id"].startswith("msg_")


def test_stream_has_the_order_that_clients_need(served: Served) -> None:
    events = streamed(served.url)
    assert types(events) == [
        "message_start",
        "ping",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    begun = events[0]["message"]
    assert begun["content"] == [] and begun["stop_reason"] is None
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    assert all(name in begun["usage"] for name in names)
    assert events[-2]["delta"]["stop_reason"] == "end_turn" and events[-2]["delta"]["stop_sequence"] is None
    assert events[-2]["usage"]["output_tokens"] == 11
    assert collected(events) == whole(served.url)["content"]


def test_thoughts_text_and_calls_are_blocks_of_their_own() -> None:
    text = f"let me see</think>I look.\n{CALL}"
    with serving(Script(pieces=tuple(text)), tokeniser=FakeTokeniser(opens_thinking=True)) as served:
        thinking = {"type": "adaptive", "display": "omitted"}
        events = streamed(served.url, tools=[FIND_TEXT], thinking=thinking)
        answer = whole(served.url, tools=[FIND_TEXT], thinking=thinking)
    for blocks, reason in (
        (collected(events), events[-2]["delta"]["stop_reason"]),
        (answer["content"], answer["stop_reason"]),
    ):
        thought, said, call = blocks
        assert thought["thinking"] == "let me see" and unseal(thought["signature"]) == "let me see"
        assert (said["type"], said["text"]) == ("text", "I look.")
        assert call["name"] == "find_text" and call["input"] == {"pattern": "\\d+", "max": 3} and call["id"]
        assert reason == "tool_use"
    kinds = [event["delta"]["type"] for event in events if event["type"] == "content_block_delta"]
    assert kinds.index("signature_delta") == len([kind for kind in kinds if kind == "thinking_delta"])
    start = next(e for e in events if e["type"] == "content_block_start" and e["content_block"]["type"] == "tool_use")
    assert start["content_block"]["input"] == {}


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize(("ending", "said", "reason"), [("", [], "max_tokens"), ("</think>42", ["42"], "end_turn")])
def test_p08_thoughts_stay_thoughts(is_stream: bool, ending: str, said: list[str], reason: str) -> None:
    limit = 1000 if ending else 10
    script = Script(pieces=tuple("let me see" + ending))
    with serving(script, tokeniser=FakeTokeniser(opens_thinking=True)) as served:
        more = {"max_tokens": limit, "thinking": {"type": "enabled", "budget_tokens": 1024}}
        if is_stream:
            events = streamed(served.url, **more)
            blocks, end = collected(events), events[-2]["delta"]
        else:
            end = whole(served.url, **more)
            blocks = end["content"]
    assert blocks[0]["thinking"] == "let me see" and blocks[0]["signature"]
    assert [block["text"] for block in blocks[1:]] == said
    assert end["stop_reason"] == reason


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        (r'<tool_call>{"name":"find_text","arguments":{"pattern":"\d+","max":3}}</tool_call>', r"\d+"),
        ('<function=find_text><parameter=pattern>a, "b"</parameter><parameter=max>3</parameter></function>', 'a, "b"'),
    ],
)
def test_p07_tool_calls_as_models_write_them(text: str, pattern: str) -> None:
    with serving(Script(pieces=tuple(text))) as served:
        answer, events = whole(served.url, tools=[FIND_TEXT]), streamed(served.url, tools=[FIND_TEXT])
    for content, reason in (
        (answer["content"], answer["stop_reason"]),
        (collected(events), events[-2]["delta"]["stop_reason"]),
    ):
        (call,) = content
        assert (call["name"], call["input"]) == ("find_text", {"pattern": pattern, "max": 3}) and reason == "tool_use"


def test_p07_prose_that_speaks_of_tags_is_prose() -> None:
    prose = "Models write <function> tags, I think."
    with serving(Script(pieces=tuple(prose))) as served:
        answer, events = whole(served.url, tools=[FIND_TEXT]), streamed(served.url, tools=[FIND_TEXT])
    for content in (answer["content"], collected(events)):
        assert [block["text"] for block in content] == [prose]


def test_p07_a_call_that_was_cut_off() -> None:
    cut = '<tool_call>{"name":"find_text","arguments":{"pattern":"a, '
    with serving(Script(pieces=tuple(cut + 'b"}}</tool_call>'))) as served:
        answer = whole(served.url, tools=[FIND_TEXT], max_tokens=len(cut))
        events = streamed(served.url, tools=[FIND_TEXT], max_tokens=len(cut))
    assert answer["stop_reason"] == events[-2]["delta"]["stop_reason"] == "max_tokens"
    assert isinstance(answer["content"][-1]["input"], dict), "whole, it must be an object"
    pieces = [e["delta"]["partial_json"] for e in events if e.get("delta", {}).get("type") == "input_json_delta"]
    assert "".join(pieces).startswith('{"pattern":') and not "".join(pieces).endswith("}")
    assert types(events)[-3:] == ["content_block_stop", "message_delta", "message_stop"]


def test_stop_reasons() -> None:
    with serving(Script(pieces=("one ", "two ", "three"))) as served:
        stopped = whole(served.url, stop_sequences=["wo"])
        assert (stopped["stop_reason"], stopped["stop_sequence"]) == ("stop_sequence", "wo")
        assert stopped["content"][0]["text"] == "one t"
        assert whole(served.url, max_tokens=5)["stop_reason"] == "max_tokens"
        room = 8192 - len("[user][assistant]") - 5
        full = whole(served.url, "x" * room, max_tokens=32000)
        assert full["stop_reason"] == "model_context_window_exceeded"


def test_the_cached_part_is_counted_beside_the_rest() -> None:
    with serving(Script(reused=64)) as served:
        content = "x" * (65 - len("[user][assistant]"))
        answer, events = whole(served.url, content), streamed(served.url, content)
    for usage in (answer["usage"], events[0]["message"]["usage"], events[-2]["usage"]):
        assert (usage["input_tokens"], usage["cache_read_input_tokens"]) == (1, 64)


def test_p15_too_long_is_400_in_anthropics_words(served: Served) -> None:
    content = "x" * (9000 - len("[user][assistant]"))
    for stream in (False, True):
        response = post(served.url, "/v1/messages", body(content, stream=stream))
        assert response.status_code == 400
        error = {"type": "invalid_request_error", "message": "prompt is too long: 9000 tokens > 8192 maximum"}
        assert response.json() == {"type": "error", "error": error}
    count = post(served.url, "/v1/messages/count_tokens", body(content))
    assert count.json() == {"input_tokens": 9000}, "counting has no limit"


def test_p16_a_client_from_next_year() -> None:
    messages = [
        {"role": "user", "content": "One"},
        {"role": "system", "content": "It is Monday."},
        {"role": "user", "content": "Two"},
    ]
    asked = {
        "model": "claude-haiku-9",
        "max_tokens": 10,
        "foo": {"bar": 1},
        "messages": messages,
        "output_config": {"effort": "high", "colour": "red"},
    }
    template = CHANNELS.replace("reasoning: ", "'low' 'medium' reasoning: {# 'low' 'medium' #}")
    with serving(tokeniser=_Template(template)) as served:
        with client(served.url, headers={"x-api-key": "dummy", "anthropic-version": "2031-01-01"}) as one:
            response = one.post("/v1/messages?beta=true", json=asked)
            counted = one.post("/v1/messages/count_tokens?beta=true", json=asked).json()["input_tokens"]
            assert one.head("/").status_code == 200 and one.head("/api/hello").status_code == 200
        answer = response.json()
        prompt = prompt_of(served.engine.jobs[-1])
    assert response.status_code == 200 and answer["model"] == "fake-model"
    assert answer["usage"]["input_tokens"] + answer["usage"]["cache_read_input_tokens"] == counted
    assert prompt.index("One") < prompt.index("Monday") < prompt.index("Two")
    assert "reasoning: medium" in prompt


class _Template(TemplateTokeniser, FakeTokeniser):
    """A fake tokeniser with a template of its own."""


def prompt_of(job: Job) -> str:
    assert isinstance(job.request.prompt, Tokens)
    return "".join(map(chr, job.request.prompt.ids))


def test_the_attribution_block_is_dropped_and_cache_control_says_nothing(served: Served) -> None:
    header = "x-anthropic-billing-header: cc_version=2.1.332.5d6; cc_entrypoint=cli;"
    marked = {"type": "text", "text": "Rules.", "cache_control": {"type": "ephemeral"}}
    one = conversation(served, system=[{"type": "text", "text": header}, marked])
    two = conversation(served, system="Rules.")
    three = conversation(served, system=f"{header}\nRules.")
    assert one.messages == two.messages == three.messages
    listed = conversation(served, messages=[{"role": "user", "content": [{"type": "text", "text": "hi"}]}])
    assert listed.messages == conversation(served).messages


def test_all_kinds_of_blocks_are_read(served: Served) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "find_text", "input": {"max": 1}}
    results = [
        {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "found"}, PIXEL]},
        {"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "tool_reference", "tool_name": "find_text"}]},
        {"type": "tool_result", "tool_use_id": "t3", "is_error": True},
        {"type": "text", "text": "Go on."},
    ]
    document = {"type": "document", "title": "A", "source": {"type": "text", "media_type": "text/plain", "data": "b"}}
    found = conversation(
        served,
        messages=[
            {"role": "user", "content": [{"type": "text", "text": "See"}, document]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "", "signature": seal("hm")},
                    {"type": "redacted_thinking", "data": "opaque"},
                    {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
                    {"type": "text", "text": "I look."},
                    call,
                ],
            },
            {"role": "user", "content": results},
        ],
    ).messages
    function = {"name": "find_text", "arguments": {"max": 1}}
    assert list(found) == [
        {"role": "user", "content": "See\nA\nb"},
        {
            "role": "assistant",
            "content": "I look.",
            "reasoning_content": "hm",
            "tool_calls": [{"id": "t1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "t1", "content": "found\n[image left out: this model reads text only]"},
        {"role": "tool", "tool_call_id": "t2", "content": "", "tool_references": ["find_text"]},
        {"role": "tool", "tool_call_id": "t3", "content": "error"},
        {"role": "user", "content": "Go on."},
    ]


def test_tools_of_anthropics_servers_are_left_out(served: Served) -> None:
    tools = [
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 5},
        {**FIND_TEXT, "type": "custom", "strict": True, "eager_input_streaming": True, "defer_loading": True},
    ]
    found = conversation(served, tools=tools).tools
    assert [(tool["function"]["name"], tool.get("defer_loading")) for tool in found] == [("find_text", True)]


@pytest.mark.parametrize(
    ("choice", "meant"),
    [
        ({"type": "auto", "disable_parallel_tool_use": True}, "auto"),
        ({"type": "none"}, "none"),
        ({"type": "any"}, "required"),
        ({"type": "tool", "name": "find_text"}, Named("find_text")),
    ],
)
def test_tool_choice(served: Served, choice: Json, meant: object) -> None:
    assert conversation(served, tools=[FIND_TEXT], tool_choice=choice).tool_choice == meant


def test_thinking_is_off_unless_asked_for(served: Served) -> None:
    assert conversation(served).thinking is False
    for kind in ("adaptive", "enabled", "of_next_year"):
        assert conversation(served, thinking={"type": kind, "display": "updates"}).thinking is True
    assert conversation(served, thinking={"type": "disabled"}).thinking is False


def test_a_schema_is_asked_for_in_two_places(served: Served) -> None:
    form = {"type": "json_schema", "schema": {"type": "object", "properties": {"title": {"type": "string"}}}}
    for fields in ({"output_config": {"format": form}}, {"output_format": form}):
        grammar = conversation(served, **fields).options.grammar
        assert grammar is not None and json.loads(grammar.text) == form["schema"]


def test_the_beginning_of_an_answer_is_gone_on_with() -> None:
    messages = [{"role": "user", "content": "Count."}, {"role": "assistant", "content": "One,"}]
    with serving() as served:
        whole(served.url, messages=messages)
        assert prompt_of(served.engine.jobs[-1]).endswith("[assistant]One,")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user"}]}, "messages[0].content is required"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role must be 'user' or 'assistant'"),
        ({"messages": [{"role": "user", "content": ["x"]}]}, "messages[0].content[0] must be an object"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}, PIXEL]}]}, "content[1]: this model"),
        ({"messages": [{"role": "user", "content": [{"type": "smell"}]}]}, "blocks of type 'smell' cannot be read"),
        ({"max_tokens": None}, "max_tokens is required"),
        ({"max_tokens": 0}, "max_tokens must be a whole number of at least 1"),
        ({"temperature": "hot"}, "temperature must be a number"),
        ({"tool_choice": {"type": "tool", "name": "gone"}}, "tool_choice asks for a tool that is not among"),
        ({"tools": [{"name": "x" * 300}]}, "tools[0].name must have 1 to 256 characters"),
        ({"output_config": {"format": {"type": "json_schema", "schema": {"type": 7}}}}, "output_config.format.schema"),
        ({"stream": "yes"}, "stream must be true or false"),
        ({"mcp_servers": [{"url": "https://x.example"}]}, "mcp_servers: no server is called here"),
        ({"container": "c"}, "container: nothing is run here"),
    ],
)
def test_what_is_wrong_is_named(served: Served, fields: Json, said: str) -> None:
    response = post(served.url, "/v1/messages", {**body(), **fields})
    assert response.status_code == 400
    error = response.json()
    assert error["type"] == "error" and error["error"]["type"] == "invalid_request_error"
    assert said in error["error"]["message"]


def test_an_error_after_the_beginning_is_an_event() -> None:
    with serving(Script(fails_after=(1, EngineFaulted("it broke")))) as served:
        events = streamed(served.url)
    assert events[-1]["type"] == "error" and "it broke" in events[-1]["error"]["message"]
    assert events[-1]["error"]["type"] == "overloaded_error" or events[-1]["error"]["type"] == "api_error"


def test_pings_come_while_the_prompt_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT_S", 0.02)
    with serving(Script(prefill_chunks=5, prefill_s=0.03)) as served:
        events = streamed(served.url)
    kinds = [event["type"] for event in events]
    assert kinds[0] == "message_start" and kinds[: kinds.index("content_block_start")].count("ping") >= 3


def test_headers_and_the_first_event_come_before_the_prompt_is_read() -> None:
    with serving(Script(prefill_chunks=50, prefill_s=0.02)) as served:
        began = time.monotonic()
        with open_stream(served.url, body(stream=True), "/v1/messages") as response:
            assert "message_start" in next(response.iter_lines())
            assert time.monotonic() - began < 0.9


def test_unknown_fields_are_named_in_the_log_and_never_their_values(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        whole(served.url, foo="secret words", metadata={"user_id": "somebody"})
    assert "ignored 'foo'" in caplog.text and "secret" not in caplog.text and "metadata" not in caplog.text


def test_a_doubled_v1_is_understood(served: Served) -> None:
    assert post(served.url, "/v1/v1/messages", body()).status_code == 200


def test_sealed_thoughts_come_back_or_are_nothing() -> None:
    assert unseal(seal("größer 🙂")) == "größer 🙂"
    for broken in (None, "", "c2ln", "slip1.", "slip1.%%%", seal("thought")[:-6], seal("x" * (MAX_THOUGHT + 1))):
        assert unseal(broken) == ""
