"""What a round costs on this machine: milliseconds by who drafts and how many drafts are verified. Learned as it goes.

Plain Python; the planner asks it several times a round.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

PLAIN = "plain"  # the source of a round in which nobody drafts
NETWORK_DRAFT = 0.25  # of a plain forward: what a drafter is taken to cost before one was measured
PER_ROW = 0.04  # of a plain forward: what each further row is taken to cost
WEIGHT = 0.15  # of a new measurement against the old mean
SLOW = 4.0  # times the mean: a stall of the machine, not a cost


@dataclass(slots=True)
class Costs:
    """Mean milliseconds of whole rounds, by source and number of verified drafts.

    What was never measured is taken from the nearest numbers that were, along the curve that is expected.
    """

    free: frozenset[str] = frozenset()  # sources that draft without a network
    _means: dict[str, dict[int, float]] = field(default_factory=dict[str, dict[int, float]])

    def round_ms(self, source: str, drafts: int) -> float:
        """A round of `source` that verifies so many drafts, 0 included."""
        measured = self._means.get(source) or {}
        if drafts in measured:
            return measured[drafts]
        return self._expected(source, drafts) * self._scale(source, drafts)

    def learn(self, source: str, drafts: int, milliseconds: float) -> None:
        known = self._means.setdefault(source, {})
        mean = known.get(drafts)
        if mean is None or milliseconds < mean / 2:  # the first of its kind may have compiled kernels
            known[drafts] = milliseconds
        elif milliseconds < SLOW * mean:
            known[drafts] = mean + WEIGHT * (milliseconds - mean)

    def unmeasured(self, source: str, most: int) -> int | None:
        """A number of drafts, up to `most`, whose cost is not known yet, the most telling first. None: all are."""
        if PLAIN not in self._means:
            return 0
        if source in self.free:
            return None
        known = self._means.get(source, {})
        order = sorted(range(1, most + 1), key=lambda drafts: (drafts not in (1, most, (most + 1) // 2), -drafts))
        return next((drafts for drafts in order if drafts not in known), None)

    def measured(self) -> Mapping[str, Mapping[int, float]]:
        return self._means

    @property
    def is_empty(self) -> bool:
        return not any(self._means.values())

    def _expected(self, source: str, drafts: int) -> float:
        """In plain forwards."""
        drafting = 0.0 if source == PLAIN or source in self.free else NETWORK_DRAFT
        return 1.0 + drafting + PER_ROW * drafts

    def _scale(self, source: str, drafts: int) -> float:
        """Milliseconds of one expected plain forward, judged by the measured numbers on both sides of `drafts`."""
        measured = self._means.get(source)
        if not measured:
            others = [
                mean / self._expected(other, number)
                for other, means in self._means.items()
                for number, mean in means.items()
            ]
            return sum(others) / len(others) if others else 1.0
        below = max((number for number in measured if number < drafts), default=None)
        above = min((number for number in measured if number > drafts), default=None)

        def ratio(number: int) -> float:
            return measured[number] / self._expected(source, number)

        if below is None or above is None:
            only = below if above is None else above
            assert only is not None
            return ratio(only)
        share = (drafts - below) / (above - below)
        return (1 - share) * ratio(below) + share * ratio(above)
