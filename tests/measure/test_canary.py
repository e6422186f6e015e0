"""The canary: what it says when the text or the speed changed, and that it really runs the built-in pair."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from slipstream.measure import canary
from slipstream.measure.canary import Record
from slipstream.measure.doctor import State

BEFORE = Record(
    {"slipstream": "0.1.0", "mlx": "0.32.4", "release": "15.1"},
    {"baseline": [1, 2, 3], "dspark": [1, 2, 3]},
    {"baseline": 100.0, "dspark": 100.0},
    {"baseline": 50.0, "dspark": 120.0},
)
NEW_MLX = BEFORE.versions | {"mlx": "0.33.0"}


def said(now: Record, *before: Record) -> list[tuple[State, str]]:
    return [(finding.state, finding.said) for finding in canary.judge(now, before)]


def test_the_first_run_has_nothing_to_compare_with() -> None:
    assert said(BEFORE) == [(State.GOOD, "first run: later ones are compared with it")]


def test_the_same_again_is_good() -> None:
    assert [state for state, _ in said(BEFORE, BEFORE, BEFORE)] == [State.GOOD]


def test_a_slower_part_is_named_with_what_changed() -> None:
    now = replace(BEFORE, versions=NEW_MLX, decode_tps={"baseline": 49.0, "dspark": 60.0})
    assert said(now, BEFORE) == [
        (
            State.WARNING,
            "decoding with dspark is slower since mlx 0.32.4 → 0.33.0: 60.0 tokens a second, before 120.0",
        )
    ]


def test_one_slow_run_before_does_not_hide_a_regression() -> None:
    slow = replace(BEFORE, prefill_tps={"baseline": 20.0, "dspark": 20.0})
    now = replace(BEFORE, prefill_tps={"baseline": 30.0, "dspark": 30.0})
    assert ["reading the prompt is slower" in text for _, text in said(now, BEFORE, BEFORE, slow)] == [True]


def test_other_tokens_after_an_update_are_a_note_and_without_one_a_problem() -> None:
    other = {"baseline": [1, 2, 9], "dspark": [1, 2, 9]}
    assert [state for state, _ in said(replace(BEFORE, versions=NEW_MLX, ids=other), BEFORE)] == [State.NOTE]
    assert [state for state, _ in said(replace(BEFORE, ids=other), BEFORE)] == [State.PROBLEM]


def test_drafts_that_change_the_text_are_always_reported() -> None:
    now = replace(BEFORE, ids={"baseline": [1, 2, 3], "dspark": [1, 2, 4]})
    assert said(now, BEFORE) == [(State.WARNING, "dspark and plain decoding said different tokens")]


def test_every_finding_that_is_not_good_has_a_remedy() -> None:
    worst = replace(BEFORE, ids={"baseline": [1], "dspark": [2]}, decode_tps={"baseline": 1.0, "dspark": 1.0})
    for finding in canary.judge(worst, [BEFORE]):
        assert finding.remedy


def test_the_history_is_kept_in_order_and_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canary, "KEPT", 2)
    file = tmp_path / "canary.json"
    for speed in (1.0, 2.0, 3.0):
        canary.remember(replace(BEFORE, decode_tps={"baseline": speed}), file)
    assert [run.decode_tps["baseline"] for run in canary.history(file)] == [2.0, 3.0]


@pytest.mark.parametrize("content", ["", "[]", '{"format": 2, "runs": []}', '{"format": 1, "runs": [{"a": 1}]}'])
def test_a_damaged_history_is_as_if_it_were_not_there(tmp_path: Path, content: str) -> None:
    file = tmp_path / "canary.json"
    file.write_text(content)
    assert canary.history(file) == []


@pytest.mark.slow
def test_the_command_runs_the_built_in_pair_and_compares_with_itself(tmp_path: Path) -> None:
    environment = os.environ | {"XDG_DATA_HOME": str(tmp_path)}

    def run() -> list[str]:
        command = [sys.executable, "-m", "slipstream", "doctor", "--canary", "--json"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=900)
        told = [finding for finding in json.loads(done.stdout) if finding["check"] == "canary"]
        return [finding["said"] for finding in told if "slower" not in finding["said"]]

    assert run() == ["first run: later ones are compared with it"]
    assert all("tokens and speed as before" in said for said in run())
    assert len(canary.history(tmp_path / "slipstream" / "canary.json")) == 2
