"""How long a race may still take, from its own runs so far. Knows no clock but what it is told."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from slipstream.events import Timings
from slipstream.types import Mode


def words(seconds: float) -> str:
    """About so long, in steps that are worth reading: "40 s", "3 min", "1.5 h"."""
    if seconds < 90:
        return f"{max(5, 5 * round(seconds / 5))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class TimeLeft:
    """Told of each run's end. A run that is repeated is one more than was planned, and delays all that follow."""

    def __init__(self, runs: Mapping[Mode, int]) -> None:
        """`runs`: of each arm, in all."""
        self._to_come = dict(runs)
        self._took: dict[Mode, list[float]] = {}
        self._ended_s: float | None = None

    def note(self, mode: Mode, timings: Timings) -> None:
        """A run has ended."""
        self._took.setdefault(mode, []).append(timings.last_token_s - timings.queued_s)
        self._to_come[mode] = max(0, self._to_come.get(mode, 0) - 1)
        self._ended_s = timings.last_token_s

    def seconds(self, now_s: float) -> float | None:
        """At `now_s`, on the clock of the timings. None before a run has ended: nothing is guessed."""
        if self._ended_s is None:
            return None
        known = fmean(fmean(each) for each in self._took.values())  # for an arm that has not run yet
        left = sum(count * fmean(self._took.get(mode, [known])) for mode, count in self._to_come.items())
        return max(0.0, left - max(0.0, now_s - self._ended_s))
