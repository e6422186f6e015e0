"""How many tokens to draft, and by whom: what brings the most tokens per millisecond. Plain Python.

Every answer gives the same text, so this may look at anything (docs/architecture.md). The value of a round is the
tokens it is expected to commit, less what its time is worth: the tokens that the best of other rounds brings in it
(renewal reward). Times are what rounds cost as far as is known, never what one happened to take, so a machine that
stalls changes nothing; their unit is the plain forward.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from slipstream.engine.costs import PLAIN, Costs

DECAY = 0.95  # of what a round taught, with each later one of its source
LONG = 100.0  # rounds that the long run weighs as much as, at most
USUAL = 4.0  # rounds that it weighs as much as beside those lately
PRIOR = 0.75  # probability of a draft to be kept before any was seen,
PRIOR_WEIGHT = 4.0  # and rounds that this weighs as much as
CARRIED = 8.0  # rounds that what the last request showed lately weighs as much as in the next one, at most
PROBE_FIRST = 4  # plain rounds before drafting is tried again
PROBE_SHARE = 0.015  # of the time that probing may cost in the long run
PROBE_HOPE = 0.8  # chance of each draft for which a probe's length would be the best
SHARED_PROBE = 24  # plain rounds after which drafting is tried again where rounds are shared
WIDE_EVERY = 80  # rounds between two that verify whole drafts, to see what the far positions are worth
STEP = 0.05  # of the online correction of confidences: of each position's, and of all together
FIRST_STEP = 0.3  # of the latter at first
GAIN_ROUNDS = 20.0  # that what waiting for confidences brings is judged by
SURE = 1e-4


@dataclass(slots=True)
class Positions:
    """How often the draft at each position was kept, of those whose predecessors were all kept.

    Lately, and in the long run: what a few rounds show is held against what is usual.
    """

    kept: list[float] = field(default_factory=list[float])  # lately
    tried: list[float] = field(default_factory=list[float])
    usual: list[float] = field(default_factory=list[float])  # probability in the long run
    weights: list[float] = field(default_factory=list[float])  # rounds behind it

    def copied(self) -> Positions:
        return Positions(list(self.kept), list(self.tried), list(self.usual), list(self.weights))

    def learn(self, drafted: int, accepted: int) -> None:
        while len(self.tried) < drafted:
            self.kept.append(0.0)
            self.tried.append(0.0)
            self.usual.append(PRIOR)
            self.weights.append(PRIOR_WEIGHT)
        for at in range(min(accepted + 1, drafted)):
            is_kept = at < accepted
            self.kept[at] = DECAY * self.kept[at] + is_kept
            self.tried[at] = DECAY * self.tried[at] + 1
            self.weights[at] = min(self.weights[at] + 1, LONG)
            self.usual[at] += (is_kept - self.usual[at]) / self.weights[at]

    def weaken(self, most: float) -> None:
        """Let what was seen lately count for no more than so many rounds."""
        for at, tried in enumerate(self.tried):
            weight = most / max(tried, most) if most else 0.0
            self.kept[at] *= weight
            self.tried[at] *= weight

    def survival(self, count: int) -> list[float]:
        """Probability that the first 1, 2, … `count` drafts are all kept."""
        out: list[float] = []
        product = 1.0
        for at in range(count):
            if at < len(self.tried):
                product *= (self.kept[at] + USUAL * self.usual[at]) / (self.tried[at] + USUAL)
            else:
                product *= PRIOR
            out.append(product)
        return out


@dataclass(slots=True)
class Calibration:
    """Corrects confidences: shifts of their logits, one for all and one by position, fitted to what was kept."""

    shift: list[float] = field(default_factory=list[float])
    common: float = 0.0
    seen: int = 0  # drafts

    def copied(self) -> Calibration:
        return Calibration(list(self.shift), self.common, self.seen)

    def apply(self, confidences: Sequence[float]) -> list[float]:
        while len(self.shift) < len(confidences):
            self.shift.append(0.0)
        common = self.common
        return [_sigmoid(_logit(value) + common + own) for value, own in zip(confidences, self.shift, strict=False)]

    def learn(self, confidences: Sequence[float], accepted: int) -> None:
        for at, value in enumerate(self.apply(confidences)[: accepted + 1]):
            error = (at < accepted) - value
            self.seen += 1
            self.shift[at] += STEP * error
            self.common += max(STEP, FIRST_STEP / (1 + self.seen / 8)) * error


class Policy:
    """One request's choices. Costs are the engine's; what was accepted is the request's own, begun from `like`."""

    def __init__(self, costs: Costs, like: Policy | None = None, context: int = 0) -> None:
        self.costs = costs
        self.context = context  # tokens of the request so far
        self._positions: dict[str, Positions] = {}
        self._calibration: dict[str, Calibration] = {}
        # Tokens a round that waiting for confidences brings beyond drafting without, and beyond plain decoding.
        self._gain: dict[str, tuple[float, float]] = {}
        self._worth = 1.0  # of a plain forward's time, in tokens
        self._parked = 0  # plain rounds left before the next probe
        self._pause = PROBE_FIRST
        self._rounds = 0
        self._idle = 0  # plain rounds since anything was drafted
        self._waiting: int | None = None  # drafts asked for in this round, if it is to wait for their confidences
        if like is not None:
            for source, seen in like._positions.items():
                self._positions[source] = seen.copied()
                self._positions[source].weaken(CARRIED)
            for source, fitted in like._calibration.items():
                self._calibration[source] = fitted.copied()
            self._gain |= like._gain

    def length(self, source: str, most: int) -> int:
        """How many tokens a network should draft, of at most so many; 0: none, decode plainly."""
        if most <= 0:
            return 0
        chosen = self.costs.caps[source] = self._length(source, most)
        return chosen

    def _length(self, source: str, most: int) -> int:
        self._rounds += 1
        new = self.costs.unmeasured(source, most)
        if new is not None:
            return new
        if self._parked:
            self._parked -= 1
            return self._probe_length(source, most) if not self._parked else 0
        best, tokens, forwards = self._fastest(source, most)
        self._worth = max(1.0, tokens / forwards)
        gain = self.gain(source)
        if not gain and tokens <= forwards:
            self._park(source, most)
            return 0
        is_wide = self._rounds % WIDE_EVERY == 0
        if gain and not is_wide:
            self._waiting = most
        return most if gain or is_wide else best

    @property
    def waits(self) -> bool:
        """Whether this round is to wait for its drafts' confidences before it verifies them."""
        return self._waiting is not None

    def cut(self, source: str, confidences: Sequence[float]) -> int:
        """How many of the drafts to verify, given each one's probability to be kept if those before it are."""
        values = self._values(source, self.calibrated(source, confidences), self._worth, self._waiting)
        return max(range(len(values)), key=values.__getitem__)

    def copies(self, source: str, count: int, networks: Mapping[str, int]) -> int:
        """How many of `count` drafts that cost nothing to take instead of asking a network; 0: none.

        `networks`: those that could be asked, and for how much.
        """
        worth, gain = 1.0, 0.0
        for network, most in networks.items():
            _, tokens, forwards = self._fastest(network, most)
            if tokens > worth * forwards:
                worth, gain = tokens / forwards, self.gain(network)
        values = self._values(source, self.survival(source, count), worth)
        best = max(range(1, len(values)), key=values.__getitem__)
        return best if values[best] >= gain else 0

    def gain(self, source: str) -> float:
        """Tokens a round that it brings to wait for confidences and cut by them; 0.0: nothing."""
        return max(0.0, min(self._gain.get(source, (0.0, 0.0))))

    def survival(self, source: str, most: int) -> list[float]:
        """Probability that the first 1, 2, … `most` drafts are all kept, by what was kept lately."""
        return self._positions.setdefault(source, Positions()).survival(most)

    def hopes(self, source: str, most: int) -> list[float]:
        """`survival` for a round that is shared: after many plain ones it is time to hope again."""
        if self._idle and self._idle % SHARED_PROBE == 0:
            return [PROBE_HOPE ** (at + 1) for at in range(most)]
        return self.survival(source, most)

    def calibrated(self, source: str, confidences: Sequence[float]) -> list[float]:
        """The same, by the drafter's confidences; where they are no numbers, by what was kept lately after all."""
        if _is_void(confidences):
            return self.survival(source, len(confidences))
        fitted = self._calibration.setdefault(source, Calibration()).apply(confidences)
        return list(accumulate(fitted, operator.mul))

    def learn(
        self,
        source: str,
        drafted: int,
        accepted: int,
        milliseconds: float | None,
        confidences: Sequence[float] | None = None,
        *,
        next_kept: bool | None = None,
    ) -> None:
        """What a round showed. `drafted` are the drafts that were verified.

        `milliseconds`: None for a round that was shared, whose time says nothing of one alone. `next_kept`: whether
        the first draft that was left out equals the token that came in its place, where all before it were kept.
        """
        waited, self._waiting = self._waiting, None
        if milliseconds is not None:
            self.costs.learn(source, drafted, milliseconds, self.context, drafted=waited)
        elif source != PLAIN and source not in self.costs.free:
            self.costs.caps[source] = drafted  # a shared round's lengths are not asked of `length`
        self.context += accepted + 1
        if source == PLAIN:
            self._idle += 1
            return
        self._idle = 0
        if confidences is not None and _is_void(confidences):
            confidences = None
            self._gain.pop(source, None)  # nothing is worth waiting for until there are some again
        positions = self._positions.setdefault(source, Positions())
        cost = self.costs.rounds_ms(source, drafted, self.context, drafted=waited)[drafted]
        if self._pause > PROBE_FIRST and accepted and (accepted + 1) * self._plain_ms() > cost:
            # A probe brought what it cost: the text has changed, and what was seen lately counts for nothing.
            positions.weaken(0.0)
            self._pause = max(PROBE_FIRST, self._pause // 4)
        if confidences and milliseconds is not None:
            self._judge(source, confidences)
        if next_kept is not None:
            drafted, accepted = drafted + 1, accepted + next_kept
        positions.learn(drafted, accepted)
        if confidences is not None:
            self._calibration.setdefault(source, Calibration()).learn(confidences[:drafted], accepted)

    def notice(self, source: str, agreed: int, *, missed: bool) -> None:
        """How many drafts of a proposal that was not taken came true, and whether the next one did not."""
        self._positions.setdefault(source, Positions()).learn(agreed + missed, agreed)

    def _judge(self, source: str, confidences: Sequence[float]) -> None:
        """What it brings to wait for confidences such as these, against what would be done without them."""
        survival = self.calibrated(source, confidences)
        most = len(survival)
        blind, _, _ = self._fastest(source, most)
        waiting = max(self._values(source, survival, self._worth, most))
        unasked = self._values(source, survival[:blind], self._worth)[blind], 1.0 - self._worth
        over_blind, over_plain = (
            known + (waiting - value - known) / GAIN_ROUNDS
            for known, value in zip(self._gain.get(source, (0.0, 0.0)), unasked, strict=True)
        )
        self._gain[source] = over_blind, over_plain

    def _fastest(self, source: str, most: int) -> tuple[int, float, float]:
        """The number of drafts, at least one, that brings most tokens in a time, those tokens, and plain forwards.

        Against text like the latest, not against the rate of all so far: where it has become hard, time is worth less.
        """
        plain = self._plain_ms()
        expected, found = 1.0, (1, 0.0, 1.0)
        costs = self.costs.rounds_ms(source, most, self.context)
        for count, survives in enumerate(self.survival(source, most), 1):
            expected += survives
            if expected * found[2] * plain > found[1] * costs[count]:
                found = count, expected, costs[count] / plain
        return found

    def _values(self, source: str, survival: Sequence[float], worth: float, drafted: int | None = None) -> list[float]:
        """Tokens less what the time is worth, of 0, 1, 2, … drafts; of so many `drafted`, where the round waits."""
        rate = worth / self._plain_ms()
        costs = self.costs.rounds_ms(source, len(survival), self.context, drafted=drafted)
        return [tokens - rate * cost for tokens, cost in zip(accumulate(survival, initial=1.0), costs, strict=True)]

    def _park(self, source: str, most: int) -> None:
        lost = self.costs.round_ms(source, self._probe_length(source, most), self.context) / self._plain_ms() - 1
        self._parked = self._pause
        self._pause = max(PROBE_FIRST, min(2 * self._pause, round(lost / PROBE_SHARE)))

    def _probe_length(self, source: str, most: int) -> int:
        values = self._values(source, [PROBE_HOPE ** (at + 1) for at in range(most)], 1.0)
        return max(range(1, len(values)), key=values.__getitem__)

    def _plain_ms(self) -> float:
        return self.costs.round_ms(PLAIN, 0, self.context)


def _is_void(confidences: Sequence[float]) -> bool:
    """Whether a drafter's arithmetic overflowed. What is learned from one such number would stay one for ever."""
    return any(map(math.isnan, confidences))


def _logit(probability: float) -> float:
    clipped = min(max(probability, SURE), 1 - SURE)
    return math.log(clipped / (1 - clipped))


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))
