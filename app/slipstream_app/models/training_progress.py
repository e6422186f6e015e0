"""How far a drafter in the making is, by what its process reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Stage(StrEnum):
    WAITING = "waiting"  # for the end of the one that is being made
    STARTING = "starting"  # the model is being loaded
    WRITING = "writing"
    FITTING = "fitting"
    JUDGING = "judging"
    PAUSING = "pausing"  # it was told to, and makes its step or part yet
    PAUSED = "paused"  # it stands still
    HALTED = "halted"  # no process: after an end of the app, or of the process
    REFUSED = "refused"  # the planner's measurement says that it would gain too little
    DONE = "done"
    FAILED = "failed"


MOVING = (Stage.STARTING, Stage.WRITING, Stage.FITTING, Stage.JUDGING)
AT_PAUSE = (Stage.PAUSING, Stage.PAUSED)


@dataclass(slots=True)
class Progress:
    """What the run's reports amount to."""

    shards: int = 0
    shard: int = 0
    tokens: int = 0  # written
    step: int = 0
    share: float = 0.0  # of the steps
    loss: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])  # (step, loss)
    by_position: list[tuple[float, ...]] = field(default_factory=list[tuple[float, ...]])  # kept, one for each figure
    per_round: float = 0.0
    is_judged: bool = False
    stands: bool = False  # at a pause
    worth: dict[str, float] = field(default_factory=dict[str, float])  # held out, tokens per round by kind

    def take(self, report: dict[str, Any]) -> Stage | None:
        """Add a report; gives the stage that it belongs to, where it belongs to one."""
        match report["what"]:
            case "Written":
                self.shards, self.shard = int(report["shards"]), max(self.shard, int(report["shard"]) + 1)
                self.tokens += int(report["tokens"])
                return Stage.FITTING if self.shard >= self.shards else Stage.WRITING
            case "Figure":
                step = int(report["step"])
                while self.loss and self.loss[-1][0] >= step:  # made again after a checkpoint
                    self.loss.pop()
                    self.by_position.pop()
                self.step, self.share, self.per_round = step, float(report["progress"]), float(report["same"])
                self.loss.append((step, float(report["loss"])))
                self.by_position.append(tuple(float(share) for share in report["agrees"]))
                return Stage.FITTING
            case "Paused":
                self.stands = bool(report["stands"])
                return None
            case _:
                self.is_judged = True
                worth = {str(kind): float(value) for kind, value in report.get("by_kind", {}).items()}
                if sum(worth.values()) > sum(self.worth.values()):  # the better of the weights is kept
                    self.worth = worth
                return Stage.JUDGING
