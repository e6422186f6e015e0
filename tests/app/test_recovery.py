"""The app killed while it loads and while it writes, and what its next start makes of it: real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from slipstream.store.paths import cache_dir

PROGRAM = Path(__file__).with_name("crash_process.py")
TESTS = PROGRAM.parents[1]


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return os.environ | {
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "XDG_CACHE_HOME": str(cache_dir().parent),  # where the built-in model is unpacked already
        "QT_QPA_PLATFORM": "offscreen",
        "PYTHONPATH": str(TESTS),
    }


def kill_at(home: dict[str, str], moment: str, *more: str) -> dict[str, Any]:
    """Start, wait for the moment, kill -9. Gives what the app said of itself then. Any: JSON."""
    command = [sys.executable, str(PROGRAM), moment, *more]
    with subprocess.Popen(command, env=home, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        process.kill()
    assert line, "it ended before the moment came"
    return json.loads(line)


def test_a_half_answer_comes_back_in_its_chat_and_says_that_it_was_interrupted(home: dict[str, str]) -> None:
    before = kill_at(home, "writing")
    assert before["chat"] == "Tell me a long story about a lighthouse"
    after = kill_at(home, "look")
    assert after["chat"] == before["chat"]
    question, answer = after["texts"]
    assert question == before["texts"][0]
    assert answer.startswith("Once upon a time.")
    assert after["states"] == ["Interrupted: Slipstream ended while this was written"]
    assert after["banner"] is None, "the model was loaded: it did not end the app"
    assert after["choice"] is not None


def test_a_pair_that_was_loading_is_offered_and_not_loaded_until_it_is_asked_for(home: dict[str, str]) -> None:
    first = kill_at(home, "loading")
    assert first["choice"] == "SmolLM2 135M + DSpark"
    after = kill_at(home, "look")
    assert after["choice"] is None
    assert "SmolLM2 135M + DSpark" in after["banner"]


@pytest.mark.slow
def test_the_built_in_pair_killed_in_the_middle_of_an_answer(home: dict[str, str]) -> None:
    before = kill_at(home, "writing", "real")
    after = kill_at(home, "look", "real")
    assert after["chat"] == before["chat"]
    assert after["states"] == ["Interrupted: Slipstream ended while this was written"]
    assert after["texts"][0] == before["texts"][0]
    assert after["texts"][1]
    kill_at(home, "loading", "real")
    again = kill_at(home, "look", "real")
    assert again["choice"] is None
    assert again["chat"] == before["chat"]
    assert again["states"] == after["states"]
