"""What made a race's speeds unsure: a code and its figures, and the sentence of the report, which is in English."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Cause(StrEnum):
    CLIENTS = "clients"  # were connected when it began
    RESUMED = "resumed"  # clients that were paused were let go on before its end
    OTHERS = "others"  # requests ran while it did
    BUSY = "busy"  # other programs, when it began
    BATTERY = "battery"
    LOW_POWER = "low_power"
    HOT = "hot"
    REPEATED = "repeated"  # runs, as heat or power changed meanwhile


_ENGLISH = {
    Cause.CLIENTS: ("1 client was connected", "{count} clients were connected"),
    Cause.RESUMED: ("clients that were paused were let go on before its end",),
    Cause.OTHERS: ("1 other request ran during the race", "{count} other requests ran during the race"),
    Cause.BUSY: ("this machine was {detail} when the race began",),
    Cause.BATTERY: ("this machine ran on its battery",),
    Cause.LOW_POWER: ("this machine was in its low power mode",),
    Cause.HOT: ("this machine was hot",),
    Cause.REPEATED: (
        "1 run was repeated, as heat or power changed meanwhile",
        "{count} runs were repeated, as heat or power changed meanwhile",
    ),
}


@dataclass(frozen=True, slots=True)
class Mark:
    cause: Cause
    count: int = 1
    detail: str = ""  # how busy

    @property
    def english(self) -> str:
        sentences = _ENGLISH[self.cause]
        return sentences[0 if self.count == 1 else -1].format(count=self.count, detail=self.detail)
