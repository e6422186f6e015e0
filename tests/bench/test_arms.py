from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.arms import HERE, Launch, Worker, WorkerError

# A worker that speaks the protocol, prints like a noisy library, and fails on request.
SCRIPT = """
import sys, time
from worker import serve

def fail():
    raise ValueError("no such arm")

def opened():
    print("noise")
    if "broken" in sys.argv:
        raise RuntimeError("no model here")
    handlers = {
        "add": lambda one, two: one + two,
        "fail": fail,
        "sleep": lambda seconds: time.sleep(seconds),
        "die": lambda: sys.exit(3),
    }
    return {"arms": {}}, handlers

serve(opened)
"""


def launch(folder: Path, *options: str) -> Launch:
    command = [sys.executable, "-c", SCRIPT, *options]
    return Launch(command, {"PYTHONPATH": str(HERE)}, folder / "worker.log")


def test_a_worker_answers_and_its_noise_stays_out_of_the_replies(tmp_path: Path) -> None:
    with Worker(launch(tmp_path)).ready() as worker:
        assert worker.info["arms"] == {}
        assert worker.ask("add", one=1, two=2) == 3
    assert "noise" in (tmp_path / "worker.log").read_text()


def test_an_error_is_told_and_the_worker_goes_on(tmp_path: Path) -> None:
    with Worker(launch(tmp_path)).ready() as worker:
        with pytest.raises(WorkerError, match="no such arm"):
            worker.ask("fail")
        assert worker.ask("add", one=1, two=2) == 3


def test_a_worker_that_cannot_load_says_why(tmp_path: Path) -> None:
    with Worker(launch(tmp_path, "broken")) as worker, pytest.raises(WorkerError, match="no model here"):
        worker.ready()


def test_a_worker_that_ends_or_hangs_is_reported(tmp_path: Path) -> None:
    with Worker(launch(tmp_path)).ready() as worker, pytest.raises(WorkerError, match="ended with code 3"):
        worker.ask("die")
    with Worker(launch(tmp_path)).ready() as worker:
        with pytest.raises(WorkerError, match="no answer within"):
            worker.ask("sleep", timeout_s=0.2, seconds=60)
        with pytest.raises(WorkerError):
            worker.ask("add", one=1, two=2)
