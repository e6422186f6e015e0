"""A run in a process of its own: it says what it does, stands still when paused, and goes on after a stop."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from slipstream.train.process import TrainingProcess, program
from tiny_runs import write_target


def until(process: TrainingProcess, what: str, count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    ends = time.monotonic() + 200
    while sum(report["what"] == what for report in found) < count:
        assert time.monotonic() < ends
        assert process.is_running, process.error
        time.sleep(0.05)
        found += process.reports()
    return found


@pytest.mark.slow
def test_pause_stop_and_go_on(tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"prompt": "What is this?"}\n{"prompt": "And that one?"}\n')
    model = write_target(tmp_path / "tiny", tie_word_embeddings=True)
    given = ["--model", str(model), "--work", str(tmp_path / "work"), "--prompts", str(prompts), "--anyway"]
    given += [
        "--conversations",
        "8",
        "--shard",
        "8",
        "--answer",
        "12",
        "--invented",
        "0",
        "--width",
        "8",
        "--texts",
        "2",
        "--anchors",
        "4",
        "--layers",
        "1",
    ]
    given += ["--taps", "0,1,2", "--rank", "8", "--every", "1", "--longest", "128", "--steps", "60"]
    process = TrainingProcess(given, tmp_path / "log.jsonl")
    until(process, "Figure", 3)
    process.pause()
    time.sleep(2)  # the step that was being made
    assert process.reports()[-1]["what"] == "Paused"
    time.sleep(1)
    assert process.reports() == []
    process.resume()
    until(process, "Figure", 2)
    process.stop()
    assert process.wait(100) == 0
    reports = process.reports()

    again = TrainingProcess(given, tmp_path / "again.jsonl")
    first = until(again, "Figure", 1)[-1]["step"]
    assert first > 5
    assert all(report["step"] < first for report in reports if report["what"] == "Figure")
    assert again.wait(200) == 0
    assert (tmp_path / "work" / "tiny-DSpark" / "config.json").exists()


@pytest.mark.slow
def test_a_failed_run_says_why(tmp_path: Path) -> None:
    process = TrainingProcess(["--model", str(tmp_path / "nothing"), "--work", str(tmp_path)], tmp_path / "log.jsonl")
    assert process.wait(100) == 2
    assert "nothing" in process.error


def test_the_installed_app_runs_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no Python that could be called; the bundle's check runs the same."""
    assert program() == [sys.executable, "-m", "slipstream.commands.train"]
    monkeypatch.setattr(sys, "frozen", "macosx_app", raising=False)
    monkeypatch.setenv("RESOURCEPATH", "/Applications/Slipstream.app/Contents/Resources")
    assert program() == ["/Applications/Slipstream.app/Contents/MacOS/Slipstream", "train"]
