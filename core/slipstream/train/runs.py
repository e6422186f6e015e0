"""Training runs as a window watches them: one that it started, and one that outlived it. Standard library alone."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

from slipstream.train.lines import entries
from slipstream.train.process import PAUSE, RESUME, TrainingProcess


class OwnRun(TrainingProcess):
    """One that this process started."""

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        """At once; what was learned since the last checkpoint is lost."""
        self._process.kill()
        self._process.wait()

    @property
    def error(self) -> str:
        """Why it failed, in a sentence; empty while it runs and where it did not fail."""
        code = self._process.poll()
        if not code:
            return ""
        return last_words(self._errors) or f"the training process ended with code {code}; continue, or see the log"


class AdoptedRun:
    """One that another process started, found again by its log."""

    def __init__(self, pid: int, log: Path) -> None:
        self.pid = pid
        self._log = log
        self._read = 0
        self._is_ours = pid > 0 and _is_run(pid, log)

    def reports(self) -> list[dict[str, Any]]:
        """First all that it noted since its beginning, then what came since the last call."""
        found, self._read = read_log(self._log, self._read)
        return found

    def pause(self) -> None:
        self._signal(PAUSE)

    def resume(self) -> None:
        self._signal(RESUME)

    def stop(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    @property
    def is_running(self) -> bool:
        if not self._is_ours:
            return False
        try:
            os.kill(self.pid, 0)
        except OSError:
            return False
        return True

    @property
    def error(self) -> str:
        """Why it failed, where it said so."""
        return "" if self.is_running else last_words(self._log.with_suffix(".err"))

    def _signal(self, number: int) -> None:
        if self._is_ours:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


def last_words(errors: Path) -> str:
    """The command's own sentence at the end of what it said; empty where there is none."""
    try:
        lines = [line for line in errors.read_text("utf-8", "replace").split("\n") if line.strip()]
    except OSError:
        return ""
    return lines[-1].removeprefix("slipstream: ") if lines and lines[-1].startswith("slipstream: ") else ""


def read_log(log: Path, offset: int = 0) -> tuple[list[dict[str, Any]], int]:
    """The whole lines of a run's log from `offset` on, and where to go on. A log that is not there says nothing."""
    try:
        with log.open("rb") as file:
            file.seek(offset)
            data = file.read()
    except OSError:
        return [], offset
    whole = data[: data.rfind(b"\n") + 1]  # the last line may still be being written
    return entries(whole), offset + len(whole)


def _is_run(pid: int, log: Path) -> bool:
    """Whether this process writes this log: numbers of processes are used again."""
    command = ["ps", "-ww", "-p", str(pid), "-o", "stat=,command="]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return False
    return str(log) in said and not said.startswith("Z")
