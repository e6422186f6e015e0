"""kill -9 at random moments of a session that writes: nothing finished is lost, and little of what was not."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from slipstream_app.history import open_history
from slipstream_app.messages import State

WRITER = Path(__file__).with_name("chat_writer.py")
MAX_LOST_S = 2.0


def _kill_once(folder: Path, seed: int, after_s: float) -> tuple[int, float]:
    """Run, kill, and check. Gives how many messages were finished, and the age in seconds of the oldest lost text."""
    command = [sys.executable, str(WRITER), str(folder), str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline(), process.stdout.readline()]
        assert lines[0] == "problem None\n", "the database of the last kill opens as it is"
        time.sleep(after_s)
        os.kill(process.pid, signal.SIGKILL)
        killed_s = time.monotonic()
        lines += process.stdout.readlines()
    done: dict[int, int] = {}
    came: list[tuple[int, int, float]] = []
    for line in lines:
        match line.split():
            case ["done", message, length]:
                done[int(message)] = int(length)
            case ["came", message, length, at]:
                came.append((int(message), int(length), float(at)))
            case _:
                pass
    history = open_history(folder / "chats.db")
    try:
        assert history.problem is None
        for message, length in done.items():
            kept = history.message(message)
            assert kept.state is State.DONE
            assert len(kept.text) == length, f"message {message} was finished and is cut"
        lost = [
            killed_s - at
            for message, length, at in came
            if message not in done and len(history.message(message).text) < length
        ]
    finally:
        history.close()
    return len(done), max(lost, default=0.0)


def _run(folder: Path, kills: int, first: int = 0) -> None:
    chance = random.Random(4 + first)
    finished, worst = 0, 0.0
    for seed in range(first, first + kills):
        count, lost_s = _kill_once(folder, seed, chance.uniform(0.0, 1.6))
        finished += count
        worst = max(worst, lost_s)
        assert lost_s <= MAX_LOST_S
    check = sqlite3.connect(folder / "chats.db")
    assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    (running,) = check.execute("SELECT count(*) FROM messages WHERE state = 'running'").fetchone()
    check.close()
    assert running == 0
    assert finished > kills
    print(f"{kills} kills, {finished} finished messages kept, at most {worst:.2f} s of a running one lost")


def test_three_kills(tmp_path: Path) -> None:
    _run(tmp_path, 3)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 200, 40))
def test_two_hundred_kills(tmp_path: Path, first: int) -> None:
    """In five parts, each on a database of its own that all its kills meet."""
    _run(tmp_path, 40, first)
