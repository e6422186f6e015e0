"""How many tokens to draft, and by whom: what brings the most tokens per millisecond. Plain Python.

Every answer gives the same text, so this may look at anything (docs/architecture.md). The value of a round is the
tokens it is expected to commit, less what its time is worth: the rate of tokens per millisecond reached so far. That
rule finds the best long-run rate (renewal reward), and leaves out time that is spent either way, such as that of a
draft that is then cut.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from slipstream.engine.costs import PLAIN, Costs

DECAY = 0.95  # of what a round taught, with each later one of its source
PRIOR = (3.0, 4.0)  # kept, tried: what a position is taken to have shown before it was seen
RATE_WEIGHT = 0.02  # of the newest round in the rate
PROBE_FIRST = 4  # plain rounds before drafting is tried again
PROBE_SHARE = 0.02  # of the time that probing may cost in the long run
PROBE_HOPE = 0.8  # chance of each draft for which a probe's length would be the best
SHARED_PROBE = 24  # plain rounds after which drafting is tried again where rounds are shared
WIDE_EVERY = 40  # rounds between two that verify whole drafts, to see what the far positions are worth
STEP = 0.1  # of the online correction of confidences
WORTH_WAITING = 0.08  # of a round: what cutting must be able to save before the round waits for confidences
SURE = 1e-4


@dataclass(slots=True)
class Positions:
    """How often the draft at each position was kept, of those whose predecessors were all kept. Decays."""

    kept: list[float] = field(default_factory=list[float])
    tried: list[float] = field(default_factory=list[float])

    def learn(self, drafted: int, accepted: int) -> None:
        while len(self.tried) < drafted:
            self.kept.append(PRIOR[0])
            self.tried.append(PRIOR[1])
        for at in range(min(accepted + 1, drafted)):
            self.kept[at] = DECAY * self.kept[at] + (at < accepted)
            self.tried[at] = DECAY * self.tried[at] + 1

    def forget(self) -> None:
        for at, tried in enumerate(self.tried):
            weight = PRIOR[1] / max(tried, PRIOR[1])
            self.kept[at] = weight * self.kept[at] + PRIOR[0]
            self.tried[at] = weight * tried + PRIOR[1]

    def survival(self, count: int) -> list[float]:
        """Probability that the first 1, 2, … `count` drafts are all kept."""
        out: list[float] = []
        product = 1.0
        for at in range(count):
            product *= self.kept[at] / self.tried[at] if at < len(self.tried) else PRIOR[0] / PRIOR[1]
            out.append(product)
        return out


@dataclass(slots=True)
class Calibration:
    """Corrects confidences position by position: a shift of each one's logit, fitted to what was kept."""

    shift: list[float] = field(default_factory=list[float])

    def apply(self, confidences: Sequence[float]) -> list[float]:
        while len(self.shift) < len(confidences):
            self.shift.append(0.0)
        return [_sigmoid(_logit(value) + shift) for value, shift in zip(confidences, self.shift, strict=False)]

    def learn(self, confidences: Sequence[float], accepted: int) -> None:
        for at, value in enumerate(self.apply(confidences)[: accepted + 1]):
            self.shift[at] += STEP * ((at < accepted) - value)


class Policy:
    """One request's choices. Costs are the engine's; what was accepted is the request's own, begun from `like`."""

    def __init__(self, costs: Costs, like: Policy | None = None, context: int = 0) -> None:
        self.costs = costs
        self.context = context  # tokens of the request so far
        self._positions: dict[str, Positions] = {}
        self._calibration: dict[str, Calibration] = {}
        self._rate = 0.0  # tokens per millisecond
        self._parked = 0  # plain rounds left before the next probe
        self._pause = PROBE_FIRST
        self._rounds = 0
        self._idle = 0  # plain rounds since anything was drafted
        if like is not None:
            for source, seen in like._positions.items():
                self._positions[source] = Positions(list(seen.kept), list(seen.tried))
            for source, fitted in like._calibration.items():
                self._calibration[source] = Calibration(list(fitted.shift))

    def length(self, source: str, most: int) -> int:
        """How many tokens `source` should draft, of at most so many; 0: none, decode plainly."""
        if most <= 0:
            return 0
        self._rounds += 1
        new = self.costs.unmeasured(source, most)
        if new is not None:
            return new
        if self._parked:
            self._parked -= 1
            return self._probe_length(source, most) if not self._parked else 0
        if self._rounds % WIDE_EVERY == 0:
            return most
        best, value = self.best(source, most)
        if value > self.value(PLAIN, 0, ()):
            # Confidences say of this text what positions say of those before: the whole draft, and then a cut by them.
            is_judged = source in self._calibration and self.may_cut(source, most)
            return most if is_judged else best
        self._park(source, most)
        return 0

    def value(self, source: str, drafts: int, survival: Sequence[float]) -> float:
        """Expected tokens of a round less the worth of its time."""
        cost = self.costs.round_ms(source, drafts, self.context)
        return 1.0 + sum(survival[:drafts]) - max(self._rate, self._plain_rate()) * cost

    def best(self, source: str, most: int) -> tuple[int, float]:
        """The best number of drafts, from 1 to `most`, for `source`, and its value."""
        return self._best(source, self.survival(source, most))

    def may_cut(self, source: str, drafts: int) -> bool:
        """Whether it can pay to wait for confidences before verifying."""
        whole = self.costs.round_ms(source, drafts, self.context)
        return whole - self.costs.round_ms(source, 1, self.context) > WORTH_WAITING * whole

    def cut(self, source: str, confidences: Sequence[float]) -> int:
        """How many of the drafts to verify, given each one's probability to be kept if those before it are."""
        if self._rounds % WIDE_EVERY == 0 or self.costs.unmeasured(source, len(confidences)) is not None:
            return len(confidences)
        values = self._values(source, self.calibrated(source, confidences))
        return max(range(len(values)), key=values.__getitem__)

    def survival(self, source: str, most: int) -> list[float]:
        """Probability that the first 1, 2, … `most` drafts are all kept, by what was kept lately."""
        return self._positions.setdefault(source, Positions()).survival(most)

    def hopes(self, source: str, most: int) -> list[float]:
        """`survival` for a round that is shared: after many plain ones it is time to hope again."""
        if self._idle and self._idle % SHARED_PROBE == 0:
            return [PROBE_HOPE ** (at + 1) for at in range(most)]
        return self.survival(source, most)

    def calibrated(self, source: str, confidences: Sequence[float]) -> list[float]:
        """The same, by the drafter's confidences."""
        fitted = self._calibration.setdefault(source, Calibration()).apply(confidences)
        return list(accumulate(fitted, operator.mul))

    def learn(
        self,
        source: str,
        drafted: int,
        accepted: int,
        milliseconds: float | None,
        confidences: Sequence[float] | None = None,
    ) -> None:
        """What a round showed. `drafted` are the drafts that were verified.

        `milliseconds`: None for a round that was shared, whose time says nothing of one alone.
        """
        if milliseconds is not None:
            self.costs.learn(source, drafted, milliseconds, self.context)
            rate = (accepted + 1) / max(milliseconds, SURE)
            self._rate = rate if not self._rate else self._smoothed(accepted + 1, milliseconds)
        self.context += accepted + 1
        if source == PLAIN:
            self._idle += 1
            return
        self._idle = 0
        positions = self._positions.setdefault(source, Positions())
        if self._pause > PROBE_FIRST and accepted == drafted >= 2:
            # A probe came through whole: the text has changed, and what was seen before counts for less.
            positions.forget()
            self._pause = PROBE_FIRST
        positions.learn(drafted, accepted)
        if confidences is not None:
            self._calibration.setdefault(source, Calibration()).learn(confidences[:drafted], accepted)

    def _park(self, source: str, most: int) -> None:
        plain = self.costs.round_ms(PLAIN, 0, self.context)
        lost = self.costs.round_ms(source, self._probe_length(source, most), self.context) / plain - 1
        self._parked = self._pause
        self._pause = max(PROBE_FIRST, min(2 * self._pause, round(lost / PROBE_SHARE)))

    def _probe_length(self, source: str, most: int) -> int:
        return self._best(source, [PROBE_HOPE ** (at + 1) for at in range(most)])[0]

    def _smoothed(self, tokens: int, milliseconds: float) -> float:
        """Mean tokens over mean time, so that long rounds count for their length."""
        mean_ms = 1.0 / self._rate
        return 1.0 / (mean_ms + RATE_WEIGHT * min(tokens, 8) * (milliseconds / tokens - mean_ms))

    def _plain_rate(self) -> float:
        return 1.0 / self.costs.round_ms(PLAIN, 0, self.context)

    def _best(self, source: str, survival: Sequence[float]) -> tuple[int, float]:
        values = self._values(source, survival)
        best = max(range(1, len(values)), key=values.__getitem__)
        return best, values[best]

    def _values(self, source: str, survival: Sequence[float]) -> list[float]:
        """`value` of 0, 1, 2, … drafts."""
        rate, context = max(self._rate, self._plain_rate()), self.context
        expected = 1.0
        out = [expected - rate * self.costs.round_ms(source, 0, context)]
        for count, survives in enumerate(survival, 1):
            expected += survives
            out.append(expected - rate * self.costs.round_ms(source, count, context))
        return out


def _logit(probability: float) -> float:
    clipped = min(max(probability, SURE), 1 - SURE)
    return math.log(clipped / (1 - clipped))


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))
