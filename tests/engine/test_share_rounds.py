"""Shared rounds from end to end but for the models: policies, prices and confidences on a machine's measured times."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from slipstream.engine.costs import PLAIN, Costs
from slipstream.engine.policy import Policy
from slipstream.engine.share import Offer, Share

BLOCK, TOKENS, SOURCE = 10, 127, "dspark"
SEEDS = range(4)


class Whole(Share):
    """Everybody drafts whole blocks, as a named drafter does."""

    def lengths(self, requests: int, offers: Sequence[Sequence[Offer]], others: int) -> list[tuple[int, int]]:
        return [(0, BLOCK)] * requests

    def may_cut(self, requests: int, drafts: int, drafted_for: int) -> bool:
        return False


class Nobody(Share):
    def lengths(self, requests: int, offers: Sequence[Sequence[Offer]], others: int) -> list[tuple[int, int]]:
        return [(0, 0)] * requests


def spent_ms(rows: int, drafts: int, drafted_for: int, *, waited: bool) -> float:
    """As eight streams took it on an H200 (docs/performance.md): one drafter's pass for all, cheap verification."""
    drafting = 1.3 + 0.2 * drafted_for if drafted_for else 0.0
    return 3.9 + 0.1 * rows + 0.032 * drafts + drafting + (0.6 if waited else 0.0)


def answers(share: Share, chances: Sequence[float], chance: random.Random) -> float:
    """Tokens a millisecond until the first of several answers ends."""
    policies = [Policy(Costs()) for _ in chances]
    left, milliseconds, rows = [TOKENS] * len(chances), 0.0, len(chances)
    while min(left) > 0:
        offers = [[Offer(policy.hopes(SOURCE, BLOCK), True)] for policy in policies]
        drafted = [count for _, count in share.lengths(rows, offers, 0)]
        drafted_for = sum(count > 0 for count in drafted)
        confidences = [[min(0.98, max(0.05, chance.gauss(each, 0.15))) for _ in range(BLOCK)] for each in chances]
        verified = list(drafted)
        offered: list[tuple[float, ...] | None] = [None] * rows
        waited = bool(drafted_for) and share.may_cut(rows, sum(drafted), drafted_for)
        if waited:
            asked = [row for row in range(rows) if drafted[row]]
            survivals = [policies[row].calibrated(SOURCE, confidences[row][: drafted[row]]) for row in asked]
            others = rows - len(asked)
            for row, count in zip(
                asked, share.cut(survivals, drafted_for, others=others, drafts=0, tokens=others), strict=True
            ):
                verified[row], offered[row] = count, tuple(confidences[row][: drafted[row]])
        took = spent_ms(rows, sum(verified), drafted_for, waited=waited) * chance.lognormvariate(0, 0.06)
        milliseconds += took
        share.learn(rows, sum(verified), drafted_for, took, waited=waited)
        for row, policy in enumerate(policies):
            kept = next((at for at, each in enumerate(confidences[row]) if chance.random() >= each), BLOCK)
            accepted = min(kept, verified[row])
            is_cut = verified[row] < drafted[row] and accepted == verified[row]
            next_kept = kept > accepted if is_cut else None
            source = SOURCE if drafted[row] else PLAIN
            policy.learn(source, verified[row], accepted, None, offered[row], next_kept=next_kept)
            left[row] -= accepted + 1
    return sum(TOKENS - each for each in left) / milliseconds


def rate(kind: type[Share], chances: Sequence[float]) -> float:
    """Of the second answers: the first ones have told what rounds cost."""
    found = 0.0
    for seed in SEEDS:
        share, chance = kind(), random.Random(seed)
        answers(share, chances, chance)
        found += answers(share, chances, chance)
    return found


@pytest.mark.parametrize(
    "chances",
    [
        (0.85,) * 8,
        (0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.5),
        (0.6,) * 8,
        (0.4,) * 8,
        (0.9, *(0.3,) * 7),
        (0.8, 0.3),
    ],
)
def test_auto_is_hardly_slower_than_the_better_of_plain_and_whole_blocks(chances: tuple[float, ...]) -> None:
    """`chances`: of each request's every draft to be kept."""
    assert rate(Share, chances) >= 0.92 * max(rate(Whole, chances), rate(Nobody, chances))
