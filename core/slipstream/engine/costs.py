"""What a round costs on this machine: milliseconds by who drafts and how many drafts are verified. Learned as it goes.

Plain Python; the planner asks it several times a round.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from slipstream.curves import Curves

PLAIN = "plain"  # the source of a round in which nobody drafts
NETWORK_DRAFT = 0.25  # of a plain forward: what a drafter is taken to cost before one was measured
PER_ROW = 0.04  # of a plain forward: what each further row is taken to cost
ROUND_MS = 1.0  # of a round beside its passes: the loop's own work (docs/performance.md)
WAIT_MS = 1.5  # that waiting for confidences adds at most: describing the target's pass is not hidden by drafting then
VISITS = 2  # rounds after which a number counts as known, where this machine was not calibrated
TRIES = 12  # times that a number is asked for: where a grammar cuts what is drafted, it may never be seen
TRUST = (4.0, 16.0)  # rounds that a calibration weighs as much as, against those of one source and of one number
TRUST_GUESS = (0.5, 0.3)  # the same of a guess
MEMORY = 40.0  # rounds that what was learned weighs as much as, at most
NEAR = 0.3  # of what a round teaches of its own number of drafts, it teaches of the next number, and so on
PACE = 0.05  # of the newest round in how fast the machine is at present
OUTLIER = 0.5  # a logarithm: a round further off than that from what was expected teaches no more than that
CLEAR_AFTER = 6  # rounds that show what is to be expected: among them a number's first counts whole, and later ones
STALL = 0.05  # no more than that where they took longer: what else runs on the machine only adds time
CONTEXT_STEP = 64  # tokens within which curves are taken to be flat
MOST_READ = 4096  # places of the curves that are remembered
LEAST_MS = 1e-3


@dataclass(frozen=True, slots=True)
class Depth:
    """How far it pays to draft: numbers of drafts."""

    knee: int | None = None  # up to which verification stays cheap; None: not calibrated, or there is no such number
    measured: int = 0  # the most whose verification a calibration measured; 0: not calibrated
    caps: Mapping[str, int] = field(default_factory=dict[str, int])  # what the planner now allows each source


@dataclass(slots=True)
class Learned:
    """What rounds showed of one source: by how much all differ from what is expected, and each number of drafts.

    Logarithms, beside the pace of the machine. `weights`: rounds behind each of them.
    """

    common: float = 0.0
    weight: float = 0.0
    shifts: list[float] = field(default_factory=list[float])
    weights: list[float] = field(default_factory=list[float])
    visits: dict[int, int] = field(default_factory=dict[int, int])  # number of drafts -> rounds
    factors: list[float] = field(default_factory=list[float])  # by number of drafts, the last for all beyond

    def shift(self, drafts: int) -> float:
        return self.common + self._own(drafts)

    def times(self, line: Sequence[float], pace: float) -> list[float]:
        """What is expected of 0, 1, 2, … drafts, corrected."""
        factors, more = self.factors, len(line) - len(self.factors)
        if more > 0:
            factors = factors + [factors[-1] if factors else 1.0] * more
        return [pace * factor * ms for factor, ms in zip(factors, line, strict=False)]

    def _own(self, drafts: int) -> float:
        return self.shifts[min(drafts, len(self.shifts) - 1)] if self.shifts else 0.0

    def learn(self, drafts: int, error: float, trust: float, own_trust: float) -> None:
        while len(self.shifts) <= drafts:
            self.shifts.append(self._own(drafts))
            self.weights.append(0.0)
        self.weight = min(self.weight + 1, MEMORY)
        step = error / (self.weight + trust)
        self.common += step
        error -= step
        for at in range(max(0, drafts - 3), min(len(self.shifts), drafts + 4)):
            share = NEAR ** abs(at - drafts)
            self.weights[at] = min(self.weights[at] + share, MEMORY)
            self.shifts[at] += share * error / (self.weights[at] + own_trust)
        self.factors = [math.exp(self.common + shift) for shift in self.shifts]


@dataclass(slots=True)
class Costs:
    """Milliseconds of whole rounds at the machine's present pace, by source, number of verified drafts and context.

    What is expected comes from this machine's own curves where it was calibrated, else from a guess. Rounds correct it:
    all together the machine's pace, and each source's numbers of drafts what they differ by beside that. So a machine
    that slows down as a whole changes no choice, and a stray measurement little.
    """

    free: frozenset[str] = frozenset()  # sources that draft without a network
    curves: Curves | None = None
    caps: dict[str, int] = field(default_factory=dict[str, int])  # source -> drafts its latest round was allowed
    _smooth: Curves | None = None  # the same, without what a calibration itself can have measured wrongly
    _learned: dict[tuple[str, bool], Learned] = field(default_factory=dict[tuple[str, bool], Learned])
    # Sources, and their most drafts, of which enough was measured without a calibration.
    _measured: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])
    _asked: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])  # to be measured, how often
    _pace: float = 0.0  # a logarithm
    _rounds: int = 0
    _lines: dict[tuple[str, int | None, int, int], list[float]] = field(
        default_factory=dict[tuple[str, int | None, int, int], list[float]]
    )

    def __post_init__(self) -> None:
        if self.curves is not None:
            self.start_from(self.curves)

    def start_from(self, curves: Curves) -> None:
        """Of a calibration. What was learned from rounds before it is forgotten."""
        self.curves = curves
        self._smooth = curves.monotone()
        self._learned.clear()
        self._measured.clear()
        self._asked.clear()
        self._lines.clear()
        self._pace, self._rounds = 0.0, 0

    def round_ms(self, source: str, drafts: int, context: int = 0) -> float:
        """A round of `source` that verifies so many drafts, 0 included, behind `context` tokens."""
        return self.rounds_ms(source, drafts, context)[drafts]

    def rounds_ms(self, source: str, most: int, context: int = 0, *, drafted: int | None = None) -> list[float]:
        """Rounds that verify 0, 1, 2, … `most` drafts.

        `drafted`: of so many drafted, after waiting for their confidences. None: what is drafted is verified.
        """
        line = self._line(source, most, context, drafted)
        return self._known(source, waited=drafted is not None).times(line, math.exp(self._pace))

    def _line(self, source: str, most: int, context: int, drafted: int | None) -> list[float]:
        place = (source, drafted, most, context // CONTEXT_STEP)
        if (line := self._lines.get(place)) is None:
            if len(self._lines) > MOST_READ:
                self._lines.clear()
            line = [self._expected(source, drafts, context, drafted) for drafts in range(most + 1)]
            self._lines[place] = line
        return line

    def _known(self, source: str, *, waited: bool) -> Learned:
        """What was learned of rounds like these, else of those of the same source that did or did not wait."""
        found = self._learned.get((source, waited)) or self._learned.get((source, not waited))
        return found or _NOTHING

    def learn(
        self, source: str, drafts: int, milliseconds: float, context: int = 0, *, drafted: int | None = None
    ) -> None:
        expected = self._line(source, drafts, context, drafted)[drafts] * math.exp(self._pace)
        learned = self._learned.get((source, drafted is not None))
        if learned is None:
            like = self._known(source, waited=drafted is not None)
            shifts = list(like.shifts)
            learned = Learned(like.common, 0.0, shifts, [0.0] * len(shifts), factors=list(like.factors))
            self._learned[source, drafted is not None] = learned
        error = math.log(max(milliseconds, LEAST_MS) / expected) - learned.shift(drafts)
        self._rounds += 1
        if self._rounds > CLEAR_AFTER:
            error = min(max(error, -OUTLIER), OUTLIER)
        elif drafts in learned.visits:
            error = min(error, STALL)
        is_calibrated = self._is_calibrated(source)
        first = 1 / self._rounds if is_calibrated or self._rounds == 1 else 0.0
        step = error * max(PACE, first)
        self._pace += step
        learned.learn(drafts, error - step, *(TRUST if is_calibrated else TRUST_GUESS))
        learned.visits[drafts] = learned.visits.get(drafts, 0) + 1

    def unmeasured(self, source: str, most: int) -> int | None:
        """A number of drafts, up to `most`, whose cost should be measured now. None: all that matter are known.

        Only where nothing was calibrated: at first the most telling numbers, then each other once.
        """
        if (source, most) in self._measured or self._is_calibrated(source):
            return None
        if self._visits(PLAIN, 0) < VISITS:
            return 0
        for drafts in dict.fromkeys((most, (most + 1) // 2, 1)):
            if self._wants(source, drafts, VISITS):
                return drafts
        new = next((drafts for drafts in range(most, 0, -1) if self._wants(source, drafts, 1)), None)
        if new is None:
            self._measured.add((source, most))
        return new

    def _wants(self, source: str, drafts: int, visits: int) -> bool:
        """Whether a number is to be asked for again; counts that it is."""
        asked = self._asked.get((source, drafts), 0)
        if self._visits(source, drafts) >= visits or asked >= TRIES:
            return False
        self._asked[source, drafts] = asked + 1
        return True

    def _visits(self, source: str, drafts: int) -> int:
        kinds = (self._learned.get((source, waited)) for waited in (False, True))
        return sum(learned.visits.get(drafts, 0) for learned in kinds if learned is not None)

    def _is_calibrated(self, source: str) -> bool:
        return source in self.free or (self.curves is not None and (source == PLAIN or source in self.curves.drafters))

    def _expected(self, source: str, drafts: int, context: int, drafted: int | None) -> float:
        """In milliseconds where this machine was calibrated, else in plain forwards."""
        curves, is_free = self._smooth, source == PLAIN or source in self.free
        if curves is None:
            return 1.0 + PER_ROW * drafts + (0.0 if is_free else NETWORK_DRAFT)
        plain = max(curves.verify_ms(1, context), LEAST_MS)
        passes = ROUND_MS + max(curves.verify_ms(1 + drafts, context), plain)
        if is_free:
            return passes
        drafting = curves.draft_ms(source, max(drafts if drafted is None else drafted, 1), context)
        if drafting is None:
            drafting = NETWORK_DRAFT * plain
        return passes + drafting + (0.0 if drafted is None else min(WAIT_MS, drafting))

    def rounds(self) -> dict[str, list[tuple[int, float]]]:
        """What rounds cost here, by source: (drafts verified, milliseconds). From any thread.

        Those alone that were measured, by rounds or by calibration.
        """
        places: dict[str, set[int]] = {}
        for (source, _), learned in self._learned.copy().items():
            places.setdefault(source, set()).update(learned.visits.copy())
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

    def depth(self) -> Depth:
        """As far as it is known. From any thread."""
        smooth = self._smooth
        widest = 0 if smooth is None else max((rows - 1 for rows, _ in smooth.points()), default=0)
        return Depth(None if smooth is None else smooth.knee(), widest, self.caps.copy())


_NOTHING = Learned()
