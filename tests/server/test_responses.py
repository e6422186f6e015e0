"""OpenAI's Responses: the order of events, items in and out, and answers that are gone on from."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from fakes import FakeTokeniser, Script, Served, serving
from server.events import Json, read_events, types
from server.requests import client, get, open_stream, post
from server.response_tools import AGENTS, FIND_TEXT, PATCH
from slipstream.errors import EngineFaulted
from slipstream.jobs import Job
from slipstream.server import sse
from slipstream.server.fields import Fields
from slipstream.server.responses_tools import custom_input, read_tools
from slipstream.server.thoughts import unseal
from slipstream.types import Tokens

CALL = '<tool_call>{"name":"find_text","arguments":{"pattern":"\\d+","max":3}}</tool_call>'
SPAWN = '<tool_call>{"name":"spawn","arguments":{}}</tool_call>'
PATCHED = '<tool_call>{"name":"apply_patch","arguments":{"input":"*** Begin\\n+a"}}</tool_call>'
THOUGHT = "let me see"


def thinking() -> FakeTokeniser:
    return FakeTokeniser(opens_thinking=True)


def whole(url: str, content: Any = "hi", **more: Any) -> Json:
    response = post(url, "/v1/responses", {"model": "m", "input": content, **more})
    assert response.status_code == 200, response.text
    return response.json()


def streamed(url: str, content: Any = "hi", **more: Any) -> list[Json]:
    response = post(url, "/v1/responses", {"model": "m", "input": content, "stream": True, **more})
    assert response.status_code == 200, response.text
    events = read_events(response.text)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert len({event["response"]["id"] for event in events if "response" in event}) == 1
    return events


def prompt_of(job: Job) -> str:
    assert isinstance(job.request.prompt, Tokens)
    return "".join(map(chr, job.request.prompt.ids))


def without_ids(items: list[Json]) -> list[Json]:
    return [{key: value for key, value in item.items() if key not in ("id", "call_id")} for item in items]


def test_whole_answer_has_every_field_of_the_specification(served: Served) -> None:
    answer = whole(served.url, metadata={"a": "b"}, tools=[FIND_TEXT], text={"verbosity": "low"})
    assert answer["object"] == "response" and answer["status"] == "completed" and answer["id"].startswith("resp_")
    (message,) = answer["output"]
    assert message["role"] == "assistant" and message["status"] == "completed"
    assert message["content"] == [{"type": "output_text", "text": "Hello world", "annotations": [], "logprobs": []}]
    assert answer["usage"]["output_tokens"] == 11 and answer["usage"]["total_tokens"] > 11
    expected = {
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None},
        "store": True,
        "temperature": 0,
        "top_p": 1,
        "text": {"verbosity": "low", "format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [{"description": None, "strict": None, **FIND_TEXT}],
        "truncation": "disabled",
        "metadata": {"a": "b"},
        "background": False,
    }
    assert {name: answer[name] for name in expected} == expected


def test_stream_has_the_order_of_the_specification(served: Served) -> None:
    events = streamed(served.url)
    assert types(events) == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert events[0]["response"]["status"] == "in_progress" and events[0]["response"]["output"] == []
    assert "".join(event["delta"] for event in events if "delta" in event) == "Hello world"
    last = events[-1]["response"]
    assert last["output"] == [events[-2]["item"]] and last["usage"]["input_tokens_details"] == {"cached_tokens": 0}


def test_p08_thoughts_are_a_summary_and_sealed_where_that_is_asked_for() -> None:
    more = {"reasoning": {"effort": "high"}, "include": ["reasoning.encrypted_content"]}
    with serving(Script(pieces=tuple(f"{THOUGHT}</think>42")), tokeniser=thinking()) as served:
        events, answer, plain = streamed(served.url, **more), whole(served.url, **more), whole(served.url)
    assert types(events)[2:8] == [
        "response.output_item.added",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.done",
        "response.reasoning_summary_part.done",
        "response.output_item.done",
    ]
    for output in (events[-1]["response"]["output"], answer["output"]):
        thought, message = output
        assert thought["summary"] == [{"type": "summary_text", "text": THOUGHT}]
        assert unseal(thought["encrypted_content"]) == THOUGHT
        assert message["content"][0]["text"] == "42"
    assert "encrypted_content" not in plain["output"][0]
    indexes = [event["output_index"] for event in events if "output_index" in event]
    assert indexes == sorted(indexes) and set(indexes) == {0, 1}


@pytest.mark.parametrize("is_stream", [False, True])
def test_p08_a_thought_that_was_cut_off(is_stream: bool) -> None:
    with serving(Script(pieces=tuple(THOUGHT + "!")), tokeniser=thinking()) as served:
        if is_stream:
            answer = streamed(served.url, max_output_tokens=10)[-1]["response"]
        else:
            answer = whole(served.url, max_output_tokens=10)
    assert answer["status"] == "incomplete" and answer["incomplete_details"] == {"reason": "max_output_tokens"}
    (thought,) = answer["output"]
    assert thought["summary"][0]["text"] == THOUGHT and thought["status"] == "incomplete"


def test_a_function_call_comes_in_pieces_and_whole() -> None:
    with serving(Script(pieces=tuple(f"I look.\n{CALL}"))) as served:
        events, answer = streamed(served.url, tools=[FIND_TEXT]), whole(served.url, tools=[FIND_TEXT])
    assert types(events)[-5:] == [
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ]
    output = events[-1]["response"]["output"]
    assert without_ids(output) == without_ids(answer["output"])
    call = output[1]
    assert (
        call["type"] == "function_call" and call["name"] == "find_text" and call["call_id"] and "namespace" not in call
    )
    pieces = [e["delta"] for e in events if e["type"] == "response.function_call_arguments.delta"]
    assert "".join(pieces) == call["arguments"] == events[-3]["arguments"] == '{"pattern":"\\\\d+","max":3}'
    added = next(e["item"] for e in events if e.get("item", {}).get("type") == "function_call")
    assert added["arguments"] == "" and added["status"] == "in_progress"


@pytest.mark.parametrize(
    ("text", "output"),
    [
        (CALL, {"pattern": r"\d+", "max": 3}),
        (
            '<function=find_text><parameter=pattern>a, "b"</parameter><parameter=max>3</parameter></function>',
            {"pattern": 'a, "b"', "max": 3},
        ),
        ("Models write <function> tags, I think.", "Models write <function> tags, I think."),
    ],
)
def test_p07_tool_calls_and_prose_as_models_write_them(text: str, output: Any) -> None:
    with serving(Script(pieces=tuple(text))) as served:
        answer = whole(served.url, tools=[FIND_TEXT])
        last = streamed(served.url, tools=[FIND_TEXT])[-1]["response"]
    for response in (answer, last):
        (item,) = response["output"]
        is_call = item["type"] == "function_call"
        assert (json.loads(item["arguments"]) if is_call else item["content"][0]["text"]) == output
        assert response["status"] == "completed"


def test_p07_a_call_that_was_cut_off_is_incomplete() -> None:
    cut = CALL[: CALL.index('+","max')]
    with serving(Script(pieces=tuple(CALL))) as served:
        answer = whole(served.url, tools=[FIND_TEXT], max_output_tokens=len(cut))
        events = streamed(served.url, tools=[FIND_TEXT], max_output_tokens=len(cut))
    for response in (answer, events[-1]["response"]):
        assert response["status"] == "incomplete" and response["output"][-1]["status"] == "incomplete"


def test_tools_in_a_namespace_are_called_with_it() -> None:
    with serving(Script(pieces=(SPAWN,))) as served:
        answer = whole(served.url, tools=[AGENTS, {"type": "web_search"}, FIND_TEXT])
    (call,) = answer["output"]
    assert (call["name"], call["namespace"]) == ("spawn", "agents")


def test_a_custom_tool_gets_plain_text() -> None:
    with serving(Script(pieces=tuple(PATCHED))) as served:
        events, answer = streamed(served.url, tools=[PATCH]), whole(served.url, tools=[PATCH])
    assert types(events)[-5:] == [
        "response.output_item.added",
        "response.custom_tool_call_input.delta",
        "response.custom_tool_call_input.done",
        "response.output_item.done",
        "response.completed",
    ]
    for output in (events[-1]["response"]["output"], answer["output"]):
        (call,) = output
        assert call["type"] == "custom_tool_call" and call["input"] == "*** Begin\n+a" and "arguments" not in call
    offered = read_tools(Fields({"tools": [PATCH]})).tools[0]["function"]
    assert "start: LINE+" in offered["description"]
    assert custom_input('{"patch": "x"}') == "x" and custom_input('{"a": 1}') == '{"a": 1}'


def test_a_request_goes_on_from_an_earlier_answer() -> None:
    with serving() as served:
        first = whole(served.url, "One", instructions="Be brief.")
        second = streamed(served.url, "Two", previous_response_id=first["id"])[-1]["response"]
        third = whole(served.url, "Three", previous_response_id=second["id"], instructions="Be long.")
        prompts = [prompt_of(job) for job in served.engine.jobs]
    assert prompts[0] == "[system]Be brief.[user]One[assistant]"
    assert prompts[1] == "[user]One[assistant]Hello world[user]Two[assistant]"
    assert prompts[2] == f"[system]Be long.{prompts[1].removesuffix('[assistant]')}" + (
        "[assistant]Hello world[user]Three[assistant]"
    )
    assert third["previous_response_id"] == second["id"]


def test_an_answer_is_kept_unless_it_is_not_to_be() -> None:
    with serving() as served:
        answer = whole(served.url)
        assert get(served.url, f"/v1/responses/{answer['id']}").json() == answer
        assert post(served.url, f"/v1/responses/{answer['id']}/cancel", None).json() == answer, "it has ended"
        with client(served.url) as one:
            assert one.delete(f"/v1/responses/{answer['id']}").json()["deleted"]
        dropped = whole(served.url, store=False)
        for gone in (answer["id"], dropped["id"], "resp_nothing"):
            assert get(served.url, f"/v1/responses/{gone}").status_code == 404
            response = post(served.url, "/v1/responses", {"model": "m", "input": "x", "previous_response_id": gone})
            assert response.status_code == 400
            assert response.json()["error"]["code"] == "previous_response_not_found"


def test_a_streamed_answer_can_be_cancelled() -> None:
    with serving(Script(pieces=("word ",) * 2000, round_s=0.005)) as served:
        body = {"model": "m", "input": "hi", "stream": True}
        with open_stream(served.url, body, "/v1/responses") as response:
            lines = response.iter_lines()
            next(lines)
            created = next(lines).removeprefix("data: ")
            response_id = created.split('"id":"')[1].split('"')[0]
            assert get(served.url, f"/v1/responses/{response_id}").json()["status"] == "in_progress"
            cancelled = post(served.url, f"/v1/responses/{response_id}/cancel", None).json()
            rest = list(lines)
        assert cancelled["status"] == "cancelled"
        assert any('"status":"cancelled"' in line for line in rest)
        assert get(served.url, f"/v1/responses/{response_id}").json()["status"] == "cancelled"


def test_progress_is_repeated_while_the_prompt_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Codex takes events alone as a sign of life (agents.md, 8)."""
    monkeypatch.setattr(sse, "HEARTBEAT_S", 0.02)
    with serving(Script(prefill_chunks=5, prefill_s=0.03)) as served:
        events = streamed(served.url)
    kinds = [event["type"] for event in events]
    assert kinds[0] == "response.created"
    assert kinds[: kinds.index("response.output_item.added")].count("response.in_progress") >= 3


def test_created_comes_before_the_prompt_is_read() -> None:
    with serving(Script(prefill_chunks=50, prefill_s=0.02)) as served:
        began = time.monotonic()
        with open_stream(served.url, {"model": "m", "input": "hi", "stream": True}, "/v1/responses") as response:
            assert "response.created" in next(response.iter_lines())
            assert time.monotonic() - began < 0.9


def test_a_client_that_leaves_leaves_nothing_behind() -> None:
    with serving(Script(pieces=("word ",) * 2000, round_s=0.005)) as served:
        with open_stream(served.url, {"model": "m", "input": "hi", "stream": True}, "/v1/responses") as response:
            lines = response.iter_lines()
            next(lines)
            response_id = next(lines).split('"id":"')[1].split('"')[0]
        deadline = time.monotonic() + 3
        while served.backend.streams or not served.engine.ended:
            assert time.monotonic() < deadline
            time.sleep(0.002)
        while get(served.url, f"/v1/responses/{response_id}").status_code != 404:
            assert time.monotonic() < deadline


def test_a_failure_after_the_beginning_is_an_event_and_the_last() -> None:
    with serving(Script(fails_after=(1, EngineFaulted("it broke")))) as served:
        events = streamed(served.url)
        status = post(served.url, "/v1/responses", {"model": "m", "input": "hi"}).status_code
    last = events[-1]
    assert last["type"] == "response.failed" and last["response"]["status"] == "failed"
    assert "it broke" in last["response"]["error"]["message"] and last["response"]["error"]["code"]
    assert status == 503


def test_p15_too_long_is_400(served: Served) -> None:
    content = "x" * (9000 - len("[user][assistant]"))
    response = post(served.url, "/v1/responses", {"model": "m", "input": content, "truncation": "auto", "stream": True})
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "context_length_exceeded"
    assert "prompt is too long: 9000 tokens > 8192 maximum" in response.json()["error"]["message"]


def test_log_probabilities_come_with_their_text(served: Served) -> None:
    more = {"include": ["message.output_text.logprobs"], "top_logprobs": 1}
    events, answer = streamed(served.url, **more), whole(served.url, **more)
    entries = answer["output"][0]["content"][0]["logprobs"]
    assert "".join(entry["token"] for entry in entries) == "Hello world" and entries[0]["top_logprobs"]
    assert [entry for event in events if "delta" in event for entry in event["logprobs"]] == entries


def test_nothing_said_is_a_message_without_text() -> None:
    with serving(Script(pieces=())) as served:
        for answer in (whole(served.url), streamed(served.url)[-1]["response"]):
            assert answer["output"][0]["content"][0]["text"] == "" and answer["status"] == "completed"


def test_a_websocket_is_told_to_use_http(served: Served) -> None:
    headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    assert get(served.url, "/v1/responses", headers=headers).status_code == 426
    assert get(served.url, "/v1/responses").status_code == 405
    assert post(served.url, "/v1/responses/compact", {}).status_code == 404


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "input is required"),
        ({"model": None, "input": "x"}, "model is required"),
        ({"input": []}, "input is required"),
        ({"input": 7}, "input must be a string or a list of items"),
        ({"input": [{"type": "smell"}]}, "input[0]: items of type 'smell' cannot be read"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input[0].content[0]: this model"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input[0]: no answer kept here"),
        ({"input": [{"type": "function_call", "name": "x"}]}, "input[0].call_id is required"),
        ({"input": "x", "background": True}, "background"),
        ({"input": "x", "conversation": "conv_1"}, "conversation"),
        ({"input": "x", "tool_choice": "required"}, "tool_choice asks for a call"),
        ({"input": "x", "tool_choice": {"type": "function", "name": "gone"}}, "tool_choice names a tool"),
        ({"input": "x", "max_output_tokens": 0}, "max_output_tokens must be"),
        ({"input": "x", "text": {"format": {"type": "poem"}}}, "text.format.type must be"),
        ({"input": "x", "text": 7}, "text must be an object"),
        ({"input": "x", "metadata": 7}, "metadata must be an object"),
        ({"input": "x", "tools": [7]}, "tools[0] must be an object"),
    ],
)
def test_what_is_wrong_is_named(served: Served, fields: Json, said: str) -> None:
    response = post(served.url, "/v1/responses", {"model": "m", **fields})
    assert response.status_code == 400, response.text
    assert said in response.json()["error"]["message"]


def test_what_codex_sends_at_its_start_is_answered(served: Served) -> None:
    answer = whole(served.url, "", max_output_tokens=1)
    assert answer["status"] == "incomplete"
