"""A training process that says what a test has it say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

WRITTEN = {"what": "Written", "shard": 0, "shards": 2, "conversations": 128, "tokens": 30_000, "seconds": 3.0}
PAUSED = {"what": "Paused", "stands": True}
JUDGED = {"what": "Judged", "by_kind": {"chat": 2.5, "code": 3.5}, "chance": 2.2}


def figure(step: int, progress: float, loss: float, agrees: Sequence[float] = (0.7, 0.5, 0.3)) -> dict[str, Any]:
    return {
        "what": "Figure",
        "step": step,
        "progress": progress,
        "loss": loss,
        "agrees": list(agrees),
        "same": 1 + sum(agrees),
    }


class FakeRun:
    """`say` puts reports into its log, as the command does; `end` ends it.

    `goes_on`: after `stop` it makes its step yet, until `end`.
    """

    def __init__(self, arguments: Sequence[str], log: Path) -> None:
        self.arguments = list(arguments)
        self.pid = 0
        self.told: list[str] = []
        self.is_running = True
        self.error = ""
        self.goes_on = False
        self._new: list[dict[str, Any]] = []
        self._log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("")

    def say(self, *reports: dict[str, Any]) -> None:
        self._new += reports
        with self._log.open("a") as file:
            file.writelines(json.dumps(report) + "\n" for report in reports)

    def end(self, error: str = "") -> None:
        self.is_running, self.error = False, error

    def reports(self) -> list[dict[str, Any]]:
        out, self._new = self._new, []
        return out

    def pause(self) -> None:
        self.told.append("pause")

    def resume(self) -> None:
        self.told.append("resume")

    def stop(self) -> None:
        self.told.append("stop")
        self.is_running = self.goes_on

    def kill(self) -> None:
        self.told.append("kill")
        self.is_running = False
