"""What a round costs on this machine: milliseconds by who drafts and how many drafts are verified. Learned as it goes.

Plain Python; the planner asks it several times a round.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from slipstream.curves import Curves

PLAIN = "plain"  # the source of a round in which nobody drafts
NETWORK_DRAFT = 0.25  # of a plain forward: what a drafter is taken to cost before one was measured
PER_ROW = 0.04  # of a plain forward: what each further row is taken to cost
RISE = 0.03  # by which an estimate may rise with each measurement: what else runs on the machine only adds time
VISITS = 2  # measurements after which a number counts as known
STALE = 800  # rounds after which it no longer does
CONTEXT_STEP = 64  # tokens within which curves are taken to be flat
MOST_READ = 4096  # places of the curves that are remembered
LEAST_MS = 1e-3


@dataclass(slots=True)
class Cost:
    ratio: float  # of what was measured to what was expected there
    visits: int
    at: int  # round


@dataclass(slots=True)
class Costs:
    """Milliseconds of whole rounds on a machine left alone, by source, number of verified drafts and context.

    What was never measured is taken from the nearest numbers that were, along the curve that is expected: this
    machine's own where it was calibrated, else a guess.
    """

    free: frozenset[str] = frozenset()  # sources that draft without a network
    curves: Curves | None = None
    _known: dict[str, dict[int, Cost]] = field(default_factory=dict[str, dict[int, Cost]])
    _rounds: int = 0
    _read: dict[tuple[str, int, int], float] = field(default_factory=dict[tuple[str, int, int], float])

    def start_from(self, curves: Curves) -> None:
        """Of a calibration. What was learned from rounds before it is forgotten."""
        self.curves = curves
        self._known.clear()
        self._read.clear()

    def round_ms(self, source: str, drafts: int, context: int = 0) -> float:
        """A round of `source` that verifies so many drafts, 0 included, behind `context` tokens."""
        return self._expected(source, drafts, context) * self._scale(source, drafts)

    def learn(self, source: str, drafts: int, milliseconds: float, context: int = 0) -> None:
        self._rounds += 1
        ratio = milliseconds / self._expected(source, drafts, context)
        known = self._known.setdefault(source, {})
        cost = known.get(drafts)
        if cost is None or self._rounds - cost.at > STALE:
            known[drafts] = Cost(ratio, 1, self._rounds)
            return
        risen = cost.ratio * (1 + RISE)
        known[drafts] = Cost(min(ratio, risen), cost.visits + 1, self._rounds)

    def unmeasured(self, source: str, most: int) -> int | None:
        """A number of drafts, up to `most`, whose cost should be measured now. None: all that matter are known.

        Without a calibration at first every number, the most telling ones first; later those only, now and then.
        """
        if self._wants(PLAIN, 0):
            return 0
        if source in self.free:
            return None
        telling = [drafts for drafts in dict.fromkeys((most, (most + 1) // 2, 1)) if drafts]
        for drafts in telling:
            if self._wants(source, drafts):
                return drafts
        if self._is_calibrated(source):
            return None
        known = self._known.get(source, {})
        return next((drafts for drafts in range(most, 0, -1) if drafts not in known), None)

    def _wants(self, source: str, drafts: int) -> bool:
        cost = self._known.get(source, {}).get(drafts)
        if cost is not None and self._rounds - cost.at > STALE:
            return True
        return not self._is_calibrated(source) and (cost is None or cost.visits < VISITS)

    def _is_calibrated(self, source: str) -> bool:
        return self.curves is not None and (source == PLAIN or source in self.free or source in self.curves.drafters)

    def _expected(self, source: str, drafts: int, context: int) -> float:
        """In milliseconds where this machine was calibrated, else in plain forwards."""
        if self.curves is None:
            return self._guessed(source, drafts)
        place = (source, drafts, context // CONTEXT_STEP)
        if place not in self._read:
            if len(self._read) > MOST_READ:
                self._read.clear()
            self._read[place] = self._calibrated(self.curves, source, drafts, context)
        return self._read[place]

    def _calibrated(self, curves: Curves, source: str, drafts: int, context: int) -> float:
        plain = max(curves.verify_ms(1, context), LEAST_MS)
        if source == PLAIN or source in self.free:
            return max(curves.verify_ms(1 + drafts, context), plain)
        drafting = curves.draft_ms(source, drafts, context)
        if drafting is None:
            return plain * self._guessed(source, drafts)
        return max(curves.verify_ms(1 + drafts, context), plain) + drafting

    def _guessed(self, source: str, drafts: int) -> float:
        """In plain forwards."""
        drafting = 0.0 if source == PLAIN or source in self.free else NETWORK_DRAFT
        return 1.0 + drafting + PER_ROW * drafts

    def _scale(self, source: str, drafts: int) -> float:
        """By how much rounds differ from what is expected, judged by the measured numbers on both sides of `drafts`."""
        measured = self._known.get(source)
        if not measured:
            others = [cost.ratio for known in self._known.values() for cost in known.values()]
            return sum(others) / len(others) if others else 1.0
        if drafts in measured:
            return measured[drafts].ratio
        below = max((number for number in measured if number < drafts), default=None)
        above = min((number for number in measured if number > drafts), default=None)
        if below is None or above is None:
            only = below if above is None else above
            assert only is not None
            return measured[only].ratio
        share = (drafts - below) / (above - below)
        return (1 - share) * measured[below].ratio + share * measured[above].ratio

    def rounds(self) -> dict[str, list[tuple[int, float]]]:
        """What rounds cost here, by source: (drafts verified, milliseconds). From any thread.

        Those alone that were measured, by rounds or by calibration.
        """
        places = {source: set(known.copy()) for source, known in self._known.copy().items()}
        if self.curves is not None:
            places.setdefault(PLAIN, set()).add(0)
            widths = {rows - 1 for row in self.curves.target.values() for rows in row}
            for source, table in self.curves.drafters.items():
                most = max(drafts for row in table.values() for drafts in row)
                places.setdefault(source, set()).update(drafts for drafts in widths if 0 < drafts <= most)
        return {
            source: [(drafts, self.round_ms(source, drafts)) for drafts in sorted(drafts_)]
            for source, drafts_ in places.items()
        }
