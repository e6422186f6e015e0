"""The planner's lengths against the best fixed length in hindsight, on made acceptance processes and cost curves."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from slipstream.curves import Curves
from slipstream.engine.costs import PLAIN, Costs
from slipstream.engine.policy import Policy

BLOCK = 7
TOKENS = 6000

Curve = Callable[[int], float]  # drafts verified -> milliseconds of the forward

CURVES: dict[str, Curve] = {
    "flat": lambda drafts: 10 + 0.1 * drafts,  # a GPU that is bound by launches
    "linear": lambda drafts: 10 + 0.9 * drafts,  # a CPU
    "steep": lambda drafts: 10 + 3.5 * drafts,  # experts: each row touches others
    "cliff": lambda drafts: 10 + (6 if drafts >= 4 else 0) + 0.2 * drafts,
}
DRAFT_MS = 2.5


def steady(chance: float) -> list[float]:
    return [chance] * (TOKENS + BLOCK)


def mixed(seed: int) -> list[float]:
    """Stretches of code and of prose."""
    random_ = random.Random(seed)
    out: list[float] = []
    while len(out) < TOKENS + BLOCK:
        out += [random_.choice((0.25, 0.92))] * random_.randrange(60, 400)
    return out


def speckled(seed: int) -> list[float]:
    """Each token easy or hard by itself."""
    random_ = random.Random(seed)
    return [random_.choice((0.2, 0.97, 0.97)) for _ in range(TOKENS + BLOCK)]


PROCESSES = {
    "good": steady(0.9),
    "fair": steady(0.6),
    "poor": steady(0.15),
    "mixed": mixed(3),
}


def play(chances: list[float], curve: Curve, choose: Policy | int, *, knows: bool = False) -> float:
    """Tokens per millisecond of a policy, or of always so many drafts. `chances`: of a draft, by place in the text."""
    coin = random.Random(11)
    at, spent = 0, 0.0
    while at < TOKENS:
        ahead = chances[at : at + BLOCK]
        length = choose if isinstance(choose, int) else choose.length("dspark", BLOCK)
        source = "dspark" if length else PLAIN
        drafts = length
        drafting = DRAFT_MS if length else 0.0
        if length and knows and isinstance(choose, Policy) and choose.waits:
            drafts = choose.cut(source, ahead[:length])
        accepted = 0
        while accepted < drafts and coin.random() < ahead[accepted]:
            accepted += 1
        cost = (curve(drafts) + drafting) * coin.uniform(0.97, 1.03)
        at += accepted + 1
        spent += cost
        if isinstance(choose, Policy):
            next_kept = coin.random() < ahead[drafts] if accepted == drafts < length else None
            choose.learn(
                source, drafts, accepted, cost, ahead[:length] if knows and length else None, next_kept=next_kept
            )
    return at / spent


@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize("curve", CURVES)
def test_lengths_come_close_to_the_best_fixed_one(process: str, curve: str) -> None:
    fixed = [play(PROCESSES[process], CURVES[curve], length) for length in range(BLOCK + 1)]
    chosen = play(PROCESSES[process], CURVES[curve], Policy(Costs()))
    assert chosen > 0.97 * max(fixed), (chosen / max(fixed), fixed.index(max(fixed)))


def test_mixed_content_is_decoded_faster_than_by_any_fixed_length() -> None:
    fixed = [play(mixed(5), CURVES["linear"], length) for length in range(BLOCK + 1)]
    assert play(mixed(5), CURVES["linear"], Policy(Costs())) > max(fixed)


def test_confidences_cut_what_will_not_be_kept() -> None:
    fixed = [play(speckled(7), CURVES["linear"], length) for length in range(BLOCK + 1)]
    assert play(speckled(7), CURVES["linear"], Policy(Costs()), knows=True) > 1.02 * max(fixed)


@pytest.mark.parametrize("curve", CURVES)
def test_confidences_are_asked_about_whole_drafts(curve: str) -> None:
    """Where easy and hard text take turns, what was kept lately is always the other one's."""
    turns = [0.35 if at // 60 % 2 == 0 else 0.9 for at in range(TOKENS + BLOCK)]
    fixed = [play(turns, CURVES[curve], length) for length in range(BLOCK + 1)]
    assert play(turns, CURVES[curve], Policy(Costs()), knows=True) > max(fixed)


def test_a_hopeless_drafter_is_parked() -> None:
    plain = play(steady(0.0), CURVES["linear"], 0)
    assert play(steady(0.0), CURVES["linear"], Policy(Costs())) > 0.97 * plain


def test_a_new_request_begins_with_what_the_last_one_saw() -> None:
    policy = Policy(Costs())
    play(steady(0.1), CURVES["steep"], policy)
    following = Policy(policy.costs, like=policy)
    assert following.survival("dspark", 1)[0] < 0.3 < Policy(policy.costs).survival("dspark", 1)[0]


def test_confidences_that_are_no_numbers_teach_nothing() -> None:
    sound, void = [0.9, 0.8, 0.5], [0.9, math.nan, 0.5]
    policy, other = Policy(Costs()), Policy(Costs())
    for turn in range(40):
        for each, confidences in ((policy, void), (other, None)):
            each.learn("dspark", 3, turn % 4, 20.0, sound)
            each.learn("dspark", 3, turn % 3, 20.0, confidences)
    expected = other.calibrated("dspark", sound)
    for each in (policy, Policy(policy.costs, like=policy)):
        assert each.calibrated("dspark", sound) == expected
        assert each.calibrated("dspark", void) == each.survival("dspark", 3)
    assert policy.survival("dspark", 3) == other.survival("dspark", 3)


def test_nobody_waits_for_confidences_that_are_no_numbers() -> None:
    policy = Policy(Costs())
    play(speckled(5), CURVES["steep"], policy, knows=True)
    assert policy.gain("dspark") > 0
    assert policy.length("dspark", BLOCK) == BLOCK and policy.waits
    kept = policy.cut("dspark", [math.nan] * BLOCK)
    policy.learn("dspark", kept, 0, 20.0, [math.nan] * BLOCK)
    assert policy.gain("dspark") == 0
    policy.length("dspark", BLOCK)
    assert not policy.waits


def test_costs_between_measured_numbers_lie_between_them() -> None:
    costs = Costs()
    for _ in range(10):
        costs.learn("dspark", 2, 20.0)
        costs.learn("dspark", 6, 40.0)
    between = [costs.round_ms("dspark", drafts) for drafts in range(2, 7)]
    assert between == sorted(between)
    assert between[0] == pytest.approx(20.0, rel=0.05)
    assert between[-1] == pytest.approx(40.0, rel=0.05)


def test_a_machine_that_slows_down_as_a_whole_changes_no_choice() -> None:
    """A number of drafts that was not run since must not look cheap, nor dear after it became fast again."""
    costs = Costs(curves=Curves({0: {1: 10.0, 8: 16.0}}, {"dspark": {0: {7: 2.0}}}))
    before = costs.rounds_ms("dspark", 7)
    for _ in range(60):
        costs.learn("dspark", 7, 3 * before[7])
    after = costs.rounds_ms("dspark", 7)
    assert after[7] == pytest.approx(3 * before[7], rel=0.05)
    assert after[2] / after[7] == pytest.approx(before[2] / before[7], rel=0.1)


def test_a_stall_of_the_machine_is_no_cost() -> None:
    costs = Costs()
    costs.learn(PLAIN, 0, 10.0)
    costs.learn(PLAIN, 0, 500.0)
    assert costs.round_ms(PLAIN, 0) < 11


def test_a_number_that_a_grammar_never_lets_be_measured_is_not_asked_for_for_ever() -> None:
    policy = Policy(Costs())
    lengths: list[int] = []
    for _ in range(200):
        lengths.append(policy.length("dspark", 7))
        verified = min(lengths[-1], 3)  # the rest would break the grammar; nothing is kept
        policy.learn("dspark" if verified else PLAIN, verified, 0, 30.0 if verified else 10.0)
    assert lengths[2] == 7
    assert lengths[100:].count(0) > 90


def test_what_is_allowed_now_is_known_outside() -> None:
    """For the chart of costs: the length chosen last, 0 while the drafter is parked; in shared rounds, what was run."""
    costs = Costs(free=frozenset(("lookup",)), curves=Curves({0: {1: 10.0, 8: 16.0}}, {"dspark": {0: {7: 2.0}}}))
    assert costs.depth().measured == 7
    assert costs.depth().caps == {}
    policy = Policy(costs)
    lengths: list[int] = []
    for _ in range(40):
        lengths.append(policy.length("dspark", 7))
        assert costs.depth().caps == {"dspark": lengths[-1]}
        policy.learn("dspark" if lengths[-1] else PLAIN, lengths[-1], 0, None if lengths[-1] % 2 else 10.0)
    assert 0 in lengths
    policy.learn("dspark", 3, 1, None)
    policy.learn("lookup", 5, 5, None)
    assert costs.depth().caps == {"dspark": 3}
