"""How fast prompts are read on this machine, and so how long one will take. Plain Python."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import pairwise

from slipstream.curves import Curves

WEIGHT = 0.2  # of a newly read chunk in what is known of chunks as deep as it
DEPTH = 1024  # tokens; depths are told apart by how often this has doubled


@dataclass(slots=True)
class Pace:
    """Milliseconds a token of the prompt takes, by how many stand before it. Attention makes later ones dearer."""

    _known: dict[int, tuple[float, float]] = field(default_factory=dict[int, tuple[float, float]])  # band: depth, ms

    def start_from(self, curves: Curves) -> None:
        for depth, chunks in curves.prefill.items():
            for tokens, milliseconds in chunks.items():
                self.learn(depth, tokens, milliseconds)

    def learn(self, depth: int, tokens: int, milliseconds: float) -> None:
        """A chunk of so many tokens behind `depth` others."""
        middle, each = depth + tokens / 2, milliseconds / tokens
        band = (int(middle) // DEPTH).bit_length()
        if band in self._known:
            old_middle, old = self._known[band]
            middle, each = old_middle + WEIGHT * (middle - old_middle), old + WEIGHT * (each - old)
        self._known[band] = (middle, each)

    def seconds(self, start: int, stop: int) -> float | None:
        """To read tokens [start, stop). None: nothing was read yet on this machine."""
        if not self._known:
            return None
        points = sorted(self._known.values())
        # The cost is a line between known depths, so the mean over a stretch is that of its ends.
        ends = [start, *(depth for depth, _ in points if start < depth < stop), stop]
        total = sum((right - left) * (_at(points, left) + _at(points, right)) / 2 for left, right in pairwise(ends))
        return total / 1000


def _at(points: list[tuple[float, float]], depth: float) -> float:
    """Before the first known depth as there; beyond the last two as they go on, but never cheaper."""
    if depth <= points[0][0] or len(points) == 1:
        return points[0][1]
    upper = min(bisect_left(points, (depth, 0.0)), len(points) - 1)
    (left, one), (right, two) = points[upper - 1], points[upper]
    slope = (two - one) / (right - left)
    return two + max(slope, 0.0) * (depth - right) if depth > right else one + slope * (depth - left)
