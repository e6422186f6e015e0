"""Items and tools of Responses in the neutral form, and the store of answers."""

from __future__ import annotations

from server.response_tools import AGENTS, FIND_TEXT, PATCH
from slipstream.server.fields import Fields
from slipstream.server.responses_items import read_input
from slipstream.server.responses_store import Kept, ResponseStore
from slipstream.server.responses_tools import Offer, read_tools
from slipstream.server.thoughts import seal


def test_names_that_are_in_two_namespaces_are_told_apart() -> None:
    other = {**AGENTS, "name": "others"}
    offer = read_tools(Fields({"tools": [AGENTS, other, FIND_TEXT]}))
    names = [tool["function"]["name"] for tool in offer.tools]
    assert names == ["agents__spawn", "others__spawn", "find_text"]
    assert offer.origin("others__spawn").namespace == "others" and offer.offered("spawn", "others") == "others__spawn"
    assert offer.offered("find_text", None) == "find_text"


def test_items_become_messages() -> None:
    offer = read_tools(Fields({"tools": [AGENTS, PATCH]}))
    image = [{"type": "input_image", "image_url": "data:image/png;base64,iVBORw0K"}]
    items = [
        {"role": "developer", "content": "Rules."},
        {"type": "message", "id": "msg_1", "role": "user", "content": [{"type": "input_text", "text": "Go."}]},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "seen"}], "content": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I go."}]},
        {"type": "function_call", "call_id": "c1", "name": "spawn", "namespace": "agents", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "apply_patch", "input": "+a"},
        {"type": "function_call_output", "call_id": "c1", "output": image},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "done"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "reasoning", "summary": [], "encrypted_content": seal("sealed")},
        {"role": "assistant", "content": "Gone."},
        {"type": "item_reference", "id": "msg_9"},
    ]
    kept = {"msg_9": {"type": "message", "role": "user", "content": "And back."}}
    found = read_input(Fields({"input": items}), offer, kept.get)
    function = {"name": "spawn", "arguments": {}}
    patch = {"name": "apply_patch", "arguments": {"input": "+a"}}
    assert list(found) == [
        {"role": "system", "content": "Rules."},
        {"role": "user", "content": "Go."},
        {
            "role": "assistant",
            "content": "I go.",
            "reasoning_content": "seen",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": function},
                {"id": "c2", "type": "function", "function": patch},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "[image left out: this model reads text only]"},
        {"role": "tool", "tool_call_id": "c2", "content": "done"},
        {"role": "assistant", "content": "Gone.", "reasoning_content": "sealed"},
        {"role": "user", "content": "And back."},
    ]


def test_the_store_is_bounded() -> None:
    store = ResponseStore(max_responses=3, max_bytes=100)
    for number in range(5):
        store.keep(Kept({"id": str(number), "output": [{"id": f"i{number}"}]}, (), 10))
    assert [store.find(str(number)) is not None for number in range(5)] == [False, False, True, True, True]
    assert store.item("i4") == {"id": "i4"} and store.item("i0") is None
    store.find("2")
    store.keep(Kept({"id": "5", "output": []}, (), 75))
    assert store.find("3") is None and store.find("2") is not None, "the one that was used last stays"
    store.keep(Kept({"id": "6", "output": []}, (), 1000))
    assert store.find("6") is not None and store.find("2") is None


def test_tools_may_be_none_at_all() -> None:
    assert read_tools(Fields({})) == Offer()
