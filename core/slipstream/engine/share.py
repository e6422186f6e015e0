"""Sharing a round among requests: who drafts, and how far each one's drafts are verified. Knows nothing of MLX.

What is wanted is the most tokens per millisecond for all together. A shared round's time is taken to be a sum: of a
fixed part, of parts for each row, each draft that is verified and each request that a network drafts for, and of parts
for drafting at all, which one request pays as well as eight, and for waiting for confidences. These prices are learned
from the rounds themselves. Every answer gives the same text (docs/architecture.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.float64]

# What a shared round is taken to cost before one was measured, in plain forwards: fixed, for each request, for each
# verified draft, for each request drafted for, if a network drafts at all, and if its confidences are waited for.
PRIOR = np.array([0.8, 0.08, 0.03, 0.08, 0.15, 0.12])
NOISE = 0.1  # of what a round takes, beside it
HOLD = (NOISE / np.array([0.5, 0.3, 0.3, 0.8, 0.8, 0.1])) ** 2  # by the standard deviations of these
MEMORY = 0.99  # of what a round taught, with each later one
OUTLIER = 2.0  # a round that took so many times longer than expected teaches no more than that,
CLEAR_AFTER = 8  # once so many rounds have shown what is to be expected
FIRST_OUTLIER = 6.0  # the same before, and of rounds that were shorter: what else a machine does only adds time
CHEAPEST = 0.002  # of a plain forward: no part of a round is taken to cost less
TRIAL_SHARE = 0.01  # of the time that may be lost by trials
TURNS = 6  # of the search below, which ends earlier
WORTH_WAITING = 0.08  # of a round: what leaving drafts out must be able to save before it waits for confidences
GAIN_ROUNDS = 8.0  # that what waiting brings is judged by
WAIT_AGAIN = 40  # rounds after which it is tried again where it did not pay


@dataclass(frozen=True, slots=True)
class Offer:
    """What one request could draft: the probability that its first 1, 2, … drafts are all kept."""

    survival: Sequence[float]
    by_network: bool


class Prices:
    """Milliseconds of a shared round: least squares that forget, held to what is taken before (ridge regression).

    The sums are kept and solved anew each time. Recursive least squares, which keep the inverse, drift away where parts
    mostly occur together: what rounding changes grows with each round.
    """

    def __init__(self) -> None:
        self._unit = 0.0  # milliseconds of a plain forward; 0: no round was seen yet
        self._rounds = 0
        self._parts: list[float] = PRIOR.tolist()
        self._seen = np.zeros((len(PRIOR), len(PRIOR)))  # of rounds' rows with themselves,
        self._took = np.zeros(len(PRIOR))  # and with what they took

    def round_ms(self, requests: int, drafts: int, drafted_for: int) -> float:
        """Without waiting."""
        fixed, request, draft, network, drafting, _ = self._parts
        whole = fixed + request * requests + draft * drafts + network * drafted_for
        return (self._unit or 1.0) * (whole + (drafting if drafted_for else 0.0))

    @property
    def wait_ms(self) -> float:
        """Of waiting for confidences."""
        return (self._unit or 1.0) * self._parts[-1]

    def learn(self, requests: int, drafts: int, drafted_for: int, milliseconds: float, *, waited: bool = False) -> None:
        row = np.array([1.0, requests, drafts, drafted_for, drafted_for > 0, waited])
        self._rounds += 1
        size = float(PRIOR @ row)
        unit = milliseconds / size
        if not self._unit:
            self._unit = unit
        elif self._rounds <= CLEAR_AFTER and unit < self._unit:
            # Rounds before it had something else to wait for, so nothing that they showed is worth keeping.
            self._unit, self._parts = unit, PRIOR.tolist()
            self._seen[:] = 0.0
            self._took[:] = 0.0
        expected = float(np.array(self._parts) @ row)
        seen = milliseconds / self._unit
        most = OUTLIER if self._rounds > CLEAR_AFTER else FIRST_OUTLIER
        seen = min(max(seen, expected / FIRST_OUTLIER), max(expected, size) * most)
        # A long round tells a millisecond less well than a short one. By what was taken before, not by what was
        # learned, as in the line above: a price that once was too low would stay so.
        row, seen = row / size, seen / size
        self._seen = MEMORY * self._seen + np.outer(row, row)
        self._took = MEMORY * self._took + seen * row
        self._parts = self._solved().tolist()

    def _solved(self) -> Numbers:
        """The parts that fit best, none of them below `CHEAPEST`."""
        left, right = self._seen + np.diag(HOLD), self._took + HOLD * PRIOR
        parts, free = np.full(len(PRIOR), CHEAPEST), np.full(len(PRIOR), True)
        while free.any():
            beside = right[free] - left[np.ix_(free, ~free)] @ parts[~free]
            parts[free] = np.linalg.solve(left[np.ix_(free, free)], beside)
            if (parts[free] >= CHEAPEST).all():
                break
            least = int(np.argmin(np.where(free, parts, np.inf)))
            parts[least], free[least] = CHEAPEST, False
        return parts


class Trial(IntEnum):
    """Rounds that are run to learn what they cost: otherwise prices that always occur together are not told apart."""

    PLAIN = 0  # nobody drafts
    WHOLE = 1  # everybody, as far as they can
    HALF = 2  # every second one, as far as they can
    SHORT = 3  # everybody, a single draft


class Share:
    """One engine's shared rounds."""

    def __init__(self) -> None:
        self.prices = Prices()
        self._trials = 0  # whose time was seen
        self._is_trying = False
        self._budget_ms = 0.0  # for the next trial
        self._gain_ms: float | None = None  # a round that leaving drafts out brought lately, waiting not counted
        self._unasked = 0  # rounds since confidences were waited for

    def lengths(self, requests: int, offers: Sequence[Sequence[Offer]], others: int) -> list[tuple[int, int]]:
        """Which of its offers each request takes, and how far: (index, drafts). 0 drafts: none.

        `others`: drafts of requests that have no choice.
        """
        # What drafting costs at all is no single request's: with networks and without them are two searches.
        free = [[None if offer.by_network else offer for offer in mine] for mine in offers]
        chosen, rate = max(
            (self._search(requests, which, offers, others) for which in (free, offers)), key=lambda found: found[1]
        )
        return self._try(requests, offers, others, rate) or chosen

    def _search(
        self, requests: int, allowed: Sequence[Sequence[Offer | None]], offers: Sequence[Sequence[Offer]], others: int
    ) -> tuple[list[tuple[int, int]], float]:
        """What brings most of what is `allowed`, and its tokens per millisecond."""
        chosen = [(0, 0)] * len(offers)
        rate = self._rate(requests, offers, chosen, others)
        # Each request's best answer to a rate gives a better rate, until it gives the same (Dinkelbach 1967).
        for _ in range(TURNS):
            better = [self._best(mine, rate) for mine in allowed]
            its_rate = self._rate(requests, offers, better, others)
            if its_rate <= rate:
                break
            chosen, rate = better, its_rate
        return chosen, rate

    def _try(
        self, requests: int, offers: Sequence[Sequence[Offer]], others: int, rate: float
    ) -> list[tuple[int, int]] | None:
        """A trial in place of the best, at first and then as far as the time for it has come together."""
        self._is_trying = False
        if not any(offers):  # nobody has a choice
            return None
        trial = Trial(self._trials % len(Trial))
        tried = [_tried(mine, trial, row) for row, mine in enumerate(offers)]
        tokens, milliseconds = self._expected(requests, offers, tried, others)
        lost_ms = milliseconds - tokens / rate
        if self._trials >= len(Trial) and lost_ms > self._budget_ms:
            return None
        self._is_trying = True
        self._budget_ms = max(0.0, self._budget_ms - lost_ms)
        return tried

    def _rate(
        self, requests: int, offers: Sequence[Sequence[Offer]], chosen: Sequence[tuple[int, int]], others: int
    ) -> float:
        tokens, milliseconds = self._expected(requests, offers, chosen, others)
        return tokens / milliseconds

    def _expected(
        self, requests: int, offers: Sequence[Sequence[Offer]], chosen: Sequence[tuple[int, int]], others: int
    ) -> tuple[float, float]:
        """Tokens and milliseconds of a round in which these offers are taken."""
        tokens, drafts, drafted_for = float(requests), others, 0
        for mine, (index, count) in zip(offers, chosen, strict=True):
            if count:
                tokens += sum(mine[index].survival[:count])
                drafts += count
                drafted_for += mine[index].by_network
        return tokens, self.prices.round_ms(requests, drafts, drafted_for)

    def _best(self, offers: Sequence[Offer | None], rate: float) -> tuple[int, int]:
        """The offer and length that gain most when a millisecond is worth `rate` tokens."""
        found, best = (0, 0), 0.0
        draft_ms = self.prices.round_ms(0, 1, 0) - self.prices.round_ms(0, 0, 0)
        # What drafting costs at all is the same whatever one request does: it counts in the rate of all together.
        network_ms = self.prices.round_ms(0, 0, 2) - self.prices.round_ms(0, 0, 1)
        for index, offer in enumerate(offers):
            if offer is None:
                continue
            gain = -rate * network_ms if offer.by_network else 0.0
            for count, survival in enumerate(offer.survival, 1):
                gain += survival - rate * draft_ms
                if gain > best:
                    found, best = (index, count), gain
        return found

    def may_cut(self, requests: int, drafts: int, drafted_for: int) -> bool:
        """Whether it can pay to wait for confidences before verifying."""
        whole = self.prices.round_ms(requests, drafts, drafted_for)
        if whole - self.prices.round_ms(requests, requests, drafted_for) <= WORTH_WAITING * whole:
            return False
        self._unasked += 1
        pays = self._gain_ms is None or self._gain_ms > self.prices.wait_ms
        return pays or self._unasked > WAIT_AGAIN

    def cut(
        self, survivals: Sequence[Sequence[float]], drafted_for: int, *, others: int, drafts: int, tokens: float
    ) -> list[int]:
        """How many drafts of each request to verify.

        `others`: requests beside them, of which so many `drafts` are verified in any case, and `tokens` expected.
        """
        requests = others + len(survivals)

        def step_ms(rows: int) -> float:
            return self.prices.round_ms(requests, drafts + rows - len(survivals), drafted_for)

        def token_ms(lengths: Sequence[int]) -> float:
            expected = sum(1.0 + sum(mine[:count]) for mine, count in zip(survivals, lengths, strict=True))
            return step_ms(len(survivals) + sum(lengths)) / (tokens + expected)

        lengths = divide(survivals, step_ms, tokens)
        saved = token_ms([len(mine) for mine in survivals]) / token_ms(lengths) - 1.0
        gain_ms = saved * step_ms(len(survivals) + sum(lengths))
        known = gain_ms if self._gain_ms is None else self._gain_ms
        self._gain_ms = known + (gain_ms - known) / GAIN_ROUNDS
        self._unasked = 0
        return lengths

    def learn(self, requests: int, drafts: int, drafted_for: int, milliseconds: float, *, waited: bool = False) -> None:
        self.prices.learn(requests, drafts, drafted_for, milliseconds, waited=waited)
        self._trials += self._is_trying
        self._budget_ms += TRIAL_SHARE * milliseconds


def _tried(offers: Sequence[Offer], trial: Trial, row: int) -> tuple[int, int]:
    """What a trial has one request take: the last of its offers, which is a network's if there is one."""
    if not offers or trial is Trial.PLAIN or (trial is Trial.HALF and row % 2):
        return 0, 0
    return len(offers) - 1, 1 if trial is Trial.SHORT else len(offers[-1].survival)


def divide(survivals: Sequence[Sequence[float]], step_ms: Callable[[int], float], beside: float = 0.0) -> list[int]:
    """The prefix scheduler of DSpark (Algorithm 1; drafters.md §2.5): how many drafts of each request to verify.

    `survivals`: probability that its first 1, 2, … drafts are all kept. `step_ms(rows)`: of a step in which so many
    rows are verified, one for each request and one for each draft. Drafts come in by their survival as long as tokens
    per millisecond rise. `beside`: tokens that the step is expected to bring in any case.
    """
    lengths = [0] * len(survivals)
    rows, tokens = len(survivals), len(survivals) + beside
    best = tokens / step_ms(rows)
    ordered = sorted(
        ((survival, -at, request) for request, mine in enumerate(survivals) for at, survival in enumerate(mine)),
        reverse=True,
    )
    for survival, _, request in ordered:
        rate = (tokens + survival) / step_ms(rows + 1)
        if rate <= best:
            break
        best, tokens, rows = rate, tokens + survival, rows + 1
        lengths[request] += 1
    return lengths
