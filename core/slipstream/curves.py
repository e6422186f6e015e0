"""What forward passes cost on this machine, as calibration measured them. Values only; standard library only."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

RISE = 1.2  # of the narrowest pass: a line that rises less is flat
BEND = 0.15  # of the whole rise: a line that bends less is straight

Table = Mapping[int, Mapping[int, float]]
"""Tokens in the cache -> rows of the forward (of a drafter: tokens drafted) -> milliseconds."""


@dataclass(frozen=True, slots=True)
class Curves:
    """Milliseconds of single passes. What lies between the measured points is taken from the straight line there."""

    target: Table = field(default_factory=dict[int, Mapping[int, float]])  # logits for every row
    drafters: Mapping[str, Table] = field(default_factory=dict[str, Table])  # by mode
    prefill: Table = field(default_factory=dict[int, Mapping[int, float]])  # one chunk, without logits
    bandwidth: float = 0.0  # bytes a second that come from memory through a product with one row; 0: not measured
    weight_bytes: int = 0  # read for a token
    row_bytes: int = 0  # of the cache, read for a token for each token before it

    def verify_ms(self, rows: int, context: int) -> float:
        """A forward of the target over so many rows. Needs a measured target."""
        return read(self.target, rows, context)

    def draft_ms(self, source: str, drafts: int, context: int) -> float | None:
        """None: this drafter was not measured."""
        table = self.drafters.get(source)
        return read(table, drafts, context) if table else None

    def ceiling_tps(self, context: int) -> float:
        """Tokens a second of plain decoding if nothing but memory took time. 0.0: bandwidth was not measured."""
        read_bytes = self.weight_bytes + context * self.row_bytes
        return self.bandwidth / read_bytes if read_bytes else 0.0

    def bandwidth_share(self) -> float | None:
        """Of the measured bandwidth, what plain decoding uses with a short context. None: not measured."""
        if not self.target:
            return None
        context = min(self.target)
        ceiling, plain_ms = self.ceiling_tps(context), self.verify_ms(1, context)
        return min(1.0, 1000 / plain_ms / ceiling) if ceiling and plain_ms else None

    def chunk(self, most_ms: float) -> int | None:
        """The longest measured prefill chunk that takes no longer, else the shortest. None: none was measured."""
        if not self.prefill:
            return None
        sizes = self.prefill[min(self.prefill)]
        return max((size for size, spent in sizes.items() if spent <= most_ms), default=min(sizes))

    def points(self, context: int = 0) -> list[tuple[int, float]]:
        """(rows, milliseconds) of verification at the measured context nearest to `context`: a chart's line."""
        if not self.target:
            return []
        nearest = min(self.target, key=lambda measured: abs(measured - context))
        return sorted(self.target[nearest].items())

    def knee(self, context: int = 0) -> int | None:
        """Drafts up to which verifying them stays cheap: there the line bends away most from the straight one between
        its ends (Satopää et al. 2011, "Finding a Kneedle in a Haystack"). None: it hardly bends, or hardly rises.
        """
        points = self.points(context)
        if len(points) < 3:
            return None
        (low, cheap), (high, dear) = points[0], points[-1]
        if dear < RISE * cheap:
            return None

        def bend(point: tuple[int, float]) -> float:
            rows, ms = point
            return (rows - low) / (high - low) - (ms - cheap) / (dear - cheap)

        found = max(points, key=bend)
        return found[0] - 1 if bend(found) >= BEND else None

    @property
    def contexts(self) -> list[int]:
        return sorted(self.target)

    def monotone(self) -> Curves:
        """The same, with no pass longer than one over more rows behind as many tokens.

        What else runs on a machine only adds to a measurement, so a wider pass that was quicker shows that the
        narrower one was held up.
        """
        drafters = {source: _monotone(table) for source, table in self.drafters.items()}
        return replace(self, target=_monotone(self.target), drafters=drafters)


def read(table: Table, across: int, context: int) -> float:
    """The table at a place, straight between the nearest measured ones and on beyond the last. Never below zero."""
    contexts = sorted(table)
    values = [_line(sorted(table[each]), table[each], across) for each in contexts]
    return max(0.0, _line(contexts, dict(zip(contexts, values, strict=True)), context))


def _monotone(table: Table) -> Table:
    return {
        context: {rows: min(ms for wider, ms in row.items() if wider >= rows) for rows in row}
        for context, row in table.items()
    }


def _line(places: Sequence[int], values: Mapping[int, float], at: int) -> float:
    """Below the first place its value; between two, and beyond the last two, the line through them."""
    if at <= places[0] or len(places) == 1:
        return values[places[0]]
    upper = min(bisect_left(places, at), len(places) - 1)
    one, two = places[upper - 1], places[upper]
    return values[one] + (values[two] - values[one]) * (at - one) / (two - one)
