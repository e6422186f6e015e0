"""What a round costs on this machine: milliseconds by who drafts and how many drafts are verified. Learned as it goes.

Plain Python; the planner asks it several times a round.
"""

from __future__ import annotations

from dataclasses import dataclass, field

PLAIN = "plain"  # the source of a round in which nobody drafts
NETWORK_DRAFT = 0.25  # of a plain forward: what a drafter is taken to cost before one was measured
PER_ROW = 0.04  # of a plain forward: what each further row is taken to cost
RISE = 0.03  # by which an estimate may rise with each measurement: what else runs on the machine only adds time
VISITS = 2  # measurements after which a number counts as known
STALE = 800  # rounds after which it no longer does


@dataclass(slots=True)
class Cost:
    milliseconds: float
    visits: int
    at: int  # round


@dataclass(slots=True)
class Costs:
    """Milliseconds of whole rounds on a machine left alone, by source and number of verified drafts.

    What was never measured is taken from the nearest numbers that were, along the curve that is expected.
    """

    free: frozenset[str] = frozenset()  # sources that draft without a network
    _known: dict[str, dict[int, Cost]] = field(default_factory=dict[str, dict[int, Cost]])
    _rounds: int = 0

    def round_ms(self, source: str, drafts: int) -> float:
        """A round of `source` that verifies so many drafts, 0 included."""
        if (cost := self._known.get(source, {}).get(drafts)) is not None:
            return cost.milliseconds
        return self._expected(source, drafts) * self._scale(source, drafts)

    def learn(self, source: str, drafts: int, milliseconds: float) -> None:
        self._rounds += 1
        known = self._known.setdefault(source, {})
        cost = known.get(drafts)
        if cost is None or self._rounds - cost.at > STALE:
            known[drafts] = Cost(milliseconds, 1, self._rounds)
            return
        risen = cost.milliseconds * (1 + RISE)
        known[drafts] = Cost(min(milliseconds, risen), cost.visits + 1, self._rounds)

    def unmeasured(self, source: str, most: int) -> int | None:
        """A number of drafts, up to `most`, whose cost should be measured now. None: all that matter are known.

        At first every number, the most telling ones first; later those only, now and then.
        """
        if self._wants(PLAIN, 0):
            return 0
        if source in self.free:
            return None
        telling = [drafts for drafts in dict.fromkeys((most, (most + 1) // 2, 1)) if drafts]
        for drafts in telling:
            if self._wants(source, drafts):
                return drafts
        known = self._known.get(source, {})
        return next((drafts for drafts in range(most, 0, -1) if drafts not in known), None)

    def _wants(self, source: str, drafts: int) -> bool:
        cost = self._known.get(source, {}).get(drafts)
        return cost is None or cost.visits < VISITS or self._rounds - cost.at > STALE

    def _expected(self, source: str, drafts: int) -> float:
        """In plain forwards."""
        drafting = 0.0 if source == PLAIN or source in self.free else NETWORK_DRAFT
        return 1.0 + drafting + PER_ROW * drafts

    def _scale(self, source: str, drafts: int) -> float:
        """Milliseconds of one expected plain forward, judged by the measured numbers on both sides of `drafts`."""
        measured = {number: cost.milliseconds for number, cost in self._known.get(source, {}).items()}
        if not measured:
            others = [
                cost.milliseconds / self._expected(other, number)
                for other, known in self._known.items()
                for number, cost in known.items()
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

    def rounds(self) -> dict[str, list[tuple[int, float]]]:
        """What was measured, by source: (drafts verified, milliseconds). From any thread."""
        return {
            source: [(drafts, self.round_ms(source, drafts)) for drafts in sorted(known.copy())]
            for source, known in self._known.copy().items()
        }
