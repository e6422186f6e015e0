"""The exact text of tool calls, kept across restarts."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from slipstream.prompt.parts import ToolCall
from slipstream.store import calls
from slipstream.store.calls import KeptCalls


def call(number: int) -> ToolCall:
    return ToolCall(
        f"call_{number}", "read", '{"path": "ä.txt"}', f'<tool_call>{{"n": {number}}}\n</tool_call>', "\n", (1, number)
    )


def test_calls_are_there_again_and_the_oldest_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "KEPT", 3)
    path = tmp_path / "new" / "calls.jsonl"
    kept = KeptCalls(path)
    for number in range(5):
        kept.remember(call(number))
    again = KeptCalls(path)
    assert [again.recall(f"call_{number}") for number in range(5)] == [None, None, call(2), call(3), call(4)]
    again.clear()
    assert KeptCalls(path).recall("call_4") is None


def test_large_calls_go_by_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "KEPT_SIZE", 1000)
    kept = KeptCalls()
    for number in range(5):
        kept.remember(call(number))
        kept.remember(dataclasses.replace(call(number), answer=tuple(range(400))))
    assert [kept.recall(f"call_{number}") is not None for number in range(5)] == [False] * 3 + [True] * 2
    kept.remember(dataclasses.replace(call(9), raw="x" * 2000))
    assert kept.recall("call_9") is not None and kept.recall("call_4") is None, "the latest is there in any case"


def test_a_line_that_was_cut_short_costs_itself_alone(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    kept = KeptCalls(path)
    kept.remember(call(1))
    kept.remember(call(2))
    path.write_bytes(path.read_bytes()[:-9])
    again = KeptCalls(path)
    again.remember(call(3))
    last = KeptCalls(path)
    assert (last.recall("call_1"), last.recall("call_2"), last.recall("call_3")) == (call(1), None, call(3))


def test_lines_that_are_something_else_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text('[]\n{"id": 1}\n{"id":1,"name":2,"arguments_json":3,"raw":4}\n\xff\n{"answer":7}\n')
    KeptCalls(path).remember(call(1))
    assert KeptCalls(path).recall("call_1") == call(1)


def test_a_place_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    kept = KeptCalls(tmp_path / "file" / "calls.jsonl")
    kept.remember(call(1))
    assert kept.recall("call_1") == call(1)
