"""A second start on the same data: the first window is asked, whatever was left by one that died."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from PySide6.QtCore import QLockFile
from pytestqt.qtbot import QtBot

from slipstream_app.single import FirstWindow, ask_first, lock_path

SECOND = """
import sys
from pathlib import Path
from PySide6.QtCore import QCoreApplication
from slipstream_app.single import begin
app = QCoreApplication([])
first = begin(Path(sys.argv[1]))
assert first is None or first.is_listening
print("first" if first else "asked", flush=True)
import os; os._exit(0)  # as a kill leaves it: the socket's file stays
"""


def start(qtbot: QtBot, folder: Path) -> str:
    process = subprocess.Popen([sys.executable, "-c", SECOND, str(folder)], stdout=subprocess.PIPE, env={**os.environ})
    qtbot.waitUntil(lambda: process.poll() is not None, timeout=20000)
    assert process.stdout is not None
    with process.stdout as out:
        return out.read().decode().strip()


def test_a_second_start_raises_the_first_window(qtbot: QtBot, tmp_path: Path) -> None:
    assert start(qtbot, tmp_path) == "first"  # and dies
    assert not ask_first(tmp_path)
    first = FirstWindow(tmp_path)
    assert first.is_listening
    with qtbot.waitSignal(first.asked, timeout=20000):
        assert start(qtbot, tmp_path) == "asked"
    other = tmp_path / "other"
    other.mkdir()
    assert not ask_first(other)
    first.close()
    assert not ask_first(tmp_path)


def test_starts_at_the_same_moment_go_one_after_the_other(qtbot: QtBot, tmp_path: Path) -> None:
    lock = QLockFile(lock_path(tmp_path))
    assert lock.tryLock(0)  # as a start that asks, and does not listen yet
    command = [sys.executable, "-c", SECOND, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ}) as process:
        qtbot.wait(1500)
        assert process.poll() is None
        first = FirstWindow(tmp_path)
        lock.unlock()
        qtbot.waitUntil(lambda: process.poll() is not None, timeout=20000)
        assert process.stdout is not None
        assert process.stdout.read().decode().strip() == "asked"
    first.close()
