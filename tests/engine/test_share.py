"""Who drafts in shared rounds, and how far: the published scheduler, and that it pays on machines of every kind."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from slipstream.engine.share import Offer, Prices, Share, divide

DATA = Path(__file__).parents[1] / "data" / "prefix_scheduler.json"

Machine = Callable[[int, int, int], float]
MACHINES: dict[str, Machine] = {
    "waits for its memory": lambda rows, drafts, drafted: 20 + 0.1 * rows + 0.1 * drafts + 0.3 * drafted,
    "computes": lambda rows, drafts, drafted: 4 + 2.0 * rows + 1.9 * drafts + 1.0 * drafted,
    "launches": lambda rows, drafts, drafted: 4 + 0.4 * rows + 0.02 * drafts + 1.2 * drafted,
    "drafts for all at once": lambda rows, drafts, drafted: (
        4 + 0.1 * rows + 0.03 * drafts + 0.2 * drafted + (1.3 if drafted else 0.0)
    ),
    "has dear drafts": lambda rows, drafts, drafted: 10 + 0.2 * rows + 0.1 * drafts + 9.0 * drafted,
}


def golden_cases(goldens: Path) -> list[dict[str, Any]]:
    whole = goldens / "prefix_scheduler" / "cases.json"
    return json.loads((whole if whole.exists() else DATA).read_text())


def test_the_published_scheduler(request: pytest.FixtureRequest) -> None:
    goldens = request.config.getoption("--goldens")
    assert isinstance(goldens, Path)
    cases = golden_cases(goldens)
    assert len(cases) >= 6
    for case in cases:
        table = {int(rows): rate for rows, rate in case["sps_table"].items()}
        lengths = divide(case["survival"], lambda rows, table=table: 1 / table[rows])
        assert lengths == case["lengths"], case["name"]


def test_where_prices_do_not_jump_nothing_better_exists() -> None:
    rng = random.Random(1)
    for _ in range(200):
        survivals = [
            list(itertools.accumulate((rng.uniform(0.2, 1) for _ in range(4)), lambda a, b: a * b))
            for _ in range(rng.randrange(1, 4))
        ]
        check_division(survivals, rng.uniform(1, 20), rng.uniform(0.05, 4))


def check_division(survivals: list[list[float]], fixed: float, each: float) -> None:
    def rate(lengths: Sequence[int]) -> float:
        tokens = sum(1 + sum(mine[:count]) for mine, count in zip(survivals, lengths, strict=True))
        return tokens / (fixed + each * (len(lengths) + sum(lengths)))

    found = divide(survivals, lambda rows: fixed + each * rows)
    best = max(itertools.product(range(5), repeat=len(survivals)), key=rate)
    assert rate(found) == pytest.approx(rate(best))


@pytest.mark.parametrize("machine", MACHINES)
def test_prices_are_learned_through_noise(machine: str) -> None:
    rng = random.Random(2)
    prices = Prices()
    for _ in range(400):
        rows = rng.randrange(2, 9)
        drafted = rng.choice((0, rows, rng.randrange(rows + 1)))
        drafts = drafted * rng.randrange(1, 8)
        noise = rng.choice((1.0, 1.02, 0.99, 1.1)) * (5 if rng.random() < 0.02 else 1)
        prices.learn(rows, drafts, drafted, MACHINES[machine](rows, drafts, drafted) * noise)
    for rows, drafts, drafted in ((4, 0, 0), (8, 0, 0), (4, 16, 4), (8, 56, 8)):
        assert prices.round_ms(rows, drafts, drafted) == pytest.approx(
            1.03 * MACHINES[machine](rows, drafts, drafted), rel=0.12
        )


@pytest.mark.parametrize("chances", [(0.9,) * 8, (0.5,) * 8, (0.95, 0.95, 0.3, 0.3), (0.7, 0.1)])
@pytest.mark.parametrize("machine", MACHINES)
def test_hardly_worse_than_the_best_fixed_choice(machine: str, chances: tuple[float, ...]) -> None:
    """`chances`: of each request's every draft to be kept. Fixed choices: so many drafts for the best so many."""
    spent_ms, block, rounds = MACHINES[machine], 7, 900
    share = Share()
    rows = len(chances)
    survivals = [[chance ** (at + 1) for at in range(block)] for chance in chances]
    tokens = milliseconds = 0.0
    for number in range(rounds):
        chosen = share.lengths(rows, [[Offer(mine, True)] for mine in survivals], 0)
        lengths = [count for _, count in chosen]
        cost = spent_ms(rows, sum(lengths), sum(map(bool, lengths)))
        share.learn(rows, sum(lengths), sum(map(bool, lengths)), cost * (1 + 0.02 * (number % 3)))
        tokens += sum(1 + sum(mine[:count]) for mine, count in zip(survivals, lengths, strict=True))
        milliseconds += cost

    def rate(lengths: list[int]) -> float:
        made = sum(1 + sum(mine[:count]) for mine, count in zip(survivals, lengths, strict=True))
        return made / spent_ms(rows, sum(lengths), sum(map(bool, lengths)))

    ranked = sorted(range(rows), key=lambda row: -chances[row])
    best = max(
        rate([length if row in ranked[:drafting] else 0 for row in range(rows)])
        for length in range(block + 1)
        for drafting in range(rows + 1)
    )
    assert tokens / milliseconds >= 0.97 * best


def test_requests_without_a_choice_are_counted() -> None:
    share = Share()
    for _ in range(9):
        assert share.lengths(3, [[], []], 7) == [(0, 0), (0, 0)]
        share.learn(3, 7, 1, 12.0)
    assert share.lengths(3, [[], []], 7) == [(0, 0), (0, 0)]


@pytest.mark.parametrize("seed", range(4))
def test_prices_stay_what_they_are_over_thousands_of_rounds(seed: int) -> None:
    """A server's rounds: parts that mostly occur together, noise, and now and then one that took a hundred times as
    long. After 3,700 of them rounding errors had once grown to prices without end, and requests failed.
    """
    chance, prices = random.Random(seed), Prices()
    for number in range(6000):
        rows = chance.choice((2, 2, 2, 3, 4, 5, 6, 7, 8))
        drafted_for = chance.choice((rows, rows, 0, chance.randint(0, rows)))
        drafts = drafted_for * chance.choice((1, 2, 3, 7))
        real = 2 + 0.4 * rows + 0.1 * drafts + 0.3 * drafted_for
        stall = chance.choice((5, 20, 100)) if chance.random() < 0.02 else 1
        prices.learn(rows, drafts, drafted_for, real * stall * math.exp(chance.gauss(0, 0.4)))
        if number >= 100:
            assert real / 4 < prices.round_ms(rows, drafts, drafted_for) < 4 * real


def test_a_round_waits_for_confidences_only_where_that_pays() -> None:
    """What leaving drafts out saves is small where a draft's verification costs next to nothing."""
    for draft_ms, expected in ((0.01, False), (1.5, True)):
        share, waits = Share(), 0
        survivals = [[0.8 ** (at + 1) for at in range(10)] for _ in range(4)]
        for number in range(200):
            waited = share.may_cut(4, 40, 4)
            lengths = share.cut(survivals, 4, others=0, drafts=0, tokens=0.0) if waited else [10] * 4
            drafts = sum(lengths)
            share.learn(4, drafts, 4, 5 + draft_ms * drafts + (0.8 if waited else 0.0), waited=waited)
            share.learn(4, 0, 0, 4.0)
            waits += waited and number >= 100
        assert (waits > 50) is expected


@pytest.mark.parametrize("stall", [3.0, 20.0])
def test_a_first_round_that_waited_for_something_else_is_forgotten(stall: float) -> None:
    machine = MACHINES["drafts for all at once"]
    prices = Prices()
    prices.learn(8, 0, 0, stall * machine(8, 0, 0))
    for drafts, drafted_for in 3 * ((0, 0), (80, 8), (40, 4), (8, 8)):
        prices.learn(8, drafts, drafted_for, machine(8, drafts, drafted_for))
    for drafts, drafted_for in ((0, 0), (80, 8)):
        assert prices.round_ms(8, drafts, drafted_for) == pytest.approx(machine(8, drafts, drafted_for), rel=0.15)


def test_copies_alone_are_taken_where_networks_do_not_pay_together() -> None:
    """Each request for itself would rather ask its network, whose pass all of them pay."""
    machine = MACHINES["drafts for all at once"]
    share = Share()
    for _ in range(60):
        for drafts, drafted_for in ((0, 0), (10, 2), (5, 1), (2, 2), (4, 0)):
            share.prices.learn(2, drafts, drafted_for, machine(2, drafts, drafted_for))
    share._trials, share._budget_ms = 4, 0.0
    offers = [[Offer([0.3, 0.1], False), Offer([0.45, 0.18, 0.07], True)] for _ in range(2)]
    chosen = share.lengths(2, offers, 0)
    assert all(index == 0 and count for index, count in chosen)


def test_rounds_without_a_choice_are_no_trials() -> None:
    share = Share()
    for _ in range(6):
        share.lengths(2, [[], []], 5)
        share.learn(2, 5, 2, 10.0)
    offers = [[Offer([0.9] * 7, True)] for _ in range(2)]
    trials = []
    for _ in range(4):
        trials.append([count for _, count in share.lengths(2, offers, 0)])
        share.learn(2, sum(trials[-1]), sum(map(bool, trials[-1])), 10.0 + sum(trials[-1]))
    assert trials == [[0, 0], [7, 7], [7, 0], [1, 1]]
