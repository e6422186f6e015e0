"""A training run in a process of its own, for a window: its progress, pause, and stop. Standard library alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from slipstream.train.lines import entries

PAUSE, RESUME = signal.SIGUSR1, signal.SIGUSR2  # what the command listens to


def program() -> list[str]:
    """What runs `slipstream train`; options follow. In the installed app no Python can be called, but itself."""
    if getattr(sys, "frozen", None) == "macosx_app":  # py2app
        return [str(Path(os.environ["RESOURCEPATH"]).parent / "MacOS" / "Slipstream"), "train"]
    return [sys.executable, "-m", "slipstream.commands.train"]


class TrainingProcess:
    """`slipstream train` with these arguments. Started again with the same ones, it goes on where it was."""

    def __init__(self, arguments: Sequence[str], log: Path) -> None:
        """`log`: where it notes its progress; emptied."""
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("")
        self._log = log
        self._read = 0
        command = [*program(), *arguments, "--log", str(log)]
        self._errors = log.with_suffix(".err")
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=os.environ.copy())

    def reports(self) -> list[dict[str, Any]]:
        """What it noted since the last call; `what` names each: Written, Figure, Paused, or a judgement's title."""
        with self._log.open("rb") as file:
            file.seek(self._read)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]  # the last line may still be being written
        self._read += len(whole)
        return entries(whole)

    def pause(self) -> None:
        """After the step that is being made. Its state is saved, its memory kept."""
        self._process.send_signal(PAUSE)

    def resume(self) -> None:
        self._process.send_signal(RESUME)

    def stop(self) -> None:
        """After the step that is being made; what was learned is saved. Does not wait."""
        self._process.send_signal(signal.SIGTERM)

    def wait(self, timeout_s: float | None = None) -> int:
        return self._process.wait(timeout_s)

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def error(self) -> str:
        """Its last words, when it failed: one sentence."""
        lines = [line for line in self._errors.read_text().split("\n") if line.strip()]
        return lines[-1].removeprefix("slipstream: ") if lines and not self.is_running else ""
