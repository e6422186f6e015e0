"""The planner against every fixed number of drafts, on what the built-in pair drafts at each place of real answers.

Greedy drafts depend on the text before them alone, so what any choice would have brought there is known exactly. Costs
are those of machines that were measured (docs/performance.md), and of made ones; measured times are noisy.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from slipstream.curves import Curves, read
from slipstream.engine.costs import PLAIN, Costs
from slipstream.engine.policy import Policy

BLOCK = 7
SEEDS = 3


@dataclass(frozen=True)
class Answer:
    kind: str
    prompt_tokens: int
    accepted: list[int]  # by place: of seven drafts
    confidence: list[list[float]]


def answers() -> list[Answer]:
    rows = json.loads((Path(__file__).parents[1] / "data" / "places.json").read_text("utf-8"))["rows"]
    return [
        Answer(
            row["kind"],
            row["prompt_tokens"],
            [int(digit) for digit in row["accepted"]],
            [[int(part) / 100 for part in place.split()] for place in row["confidence"]],
        )
        for row in rows
    ]


ANSWERS = answers()
KINDS: tuple[str, ...] = ("code", "maths", "chat")


@dataclass(frozen=True)
class Machine:
    """Milliseconds of passes, by rows and by drafts."""

    verify: dict[int, float]
    draft: dict[int, float]
    describe: float  # of describing the target's pass, which waiting for confidences does not hide
    round_: float = 1.2
    noise: float = 0.1
    stalls: float = 0.1
    calibrated: tuple[int, ...] = tuple(range(1, 9))  # rows

    def cost(self, drafted: int, verified: int, *, waited: bool) -> float:
        drafting = read({0: self.draft}, drafted, 0) if drafted else 0.0
        return self.round_ + read({0: self.verify}, verified + 1, 0) + drafting + (self.describe if waited else 0.0)

    def measured(self, ms: float, chance: random.Random) -> float:
        stall = chance.uniform(1.3, 3.0) if chance.random() < self.stalls else 1.0
        return ms * math.exp(chance.gauss(0, self.noise)) * stall

    def curves(self, chance: random.Random | None) -> Curves:
        """As measured on a machine left alone, or on one where `chance` made each point take longer."""

        def longer() -> float:
            if chance is None:
                return 1.0
            return min(
                (1 + abs(chance.gauss(0, 0.1))) * (chance.uniform(1.3, 3.0) if chance.random() < 0.3 else 1.0)
                for _ in range(2)
            )

        target = {rows: longer() * read({0: self.verify}, rows, 0) for rows in self.calibrated}
        return Curves({0: target}, {"dspark": {0: {drafts: longer() * ms for drafts, ms in self.draft.items()}}})


MACHINES = {
    "two cores": Machine({1: 163, 4: 206, 8: 234}, {7: 38}, 0.5, calibrated=(1, 4, 8)),
    "two slower cores": Machine({1: 269, 8: 341}, {7: 60}, 0.5, calibrated=(1, 4, 8)),
    "H200, 8-bit": Machine({1: 5.06, 2: 5.15, 7: 5.3, 8: 5.63}, {1: 1.6, 7: 2.0}, 1.5),
    "H200, 4-bit": Machine({1: 4.0, 2: 5.2, 7: 5.35, 8: 5.4}, {1: 1.4, 7: 1.8}, 1.3),
    "linear": Machine({1: 10, 8: 16}, {7: 2.0}, 0.5),
    "steep": Machine({1: 10, 8: 34}, {7: 2.5}, 0.5),  # experts: each row asks others
    "cliff": Machine({1: 10, 4: 10.6, 5: 16.8, 8: 17.4}, {7: 2.0}, 0.5),
}


def play(answer: Answer, machine: Machine, choose: Policy | int, chance: random.Random) -> float:
    """Milliseconds that an answer takes."""
    spent, at, count = 0.0, 0, len(answer.accepted)
    while at < count:
        most = min(BLOCK, count - at)
        drafted = min(choose, most) if isinstance(choose, int) else choose.length("dspark", most)
        waits = not isinstance(choose, int) and choose.waits
        confidences = answer.confidence[at][:drafted]
        verified = choose.cut("dspark", confidences) if waits and not isinstance(choose, int) else drafted
        accepted = min(answer.accepted[at], verified)
        ms = machine.cost(drafted, verified, waited=waits)
        spent += ms
        if not isinstance(choose, int):
            choose.learn(
                "dspark" if drafted else PLAIN,
                verified,
                accepted,
                machine.measured(ms, chance),
                confidences or None,
                next_kept=answer.accepted[at] > accepted if accepted == verified < drafted else None,
            )
        at += accepted + 1
    return spent


def fixed(machine: Machine, drafts: int) -> dict[str, float]:
    """Kind -> milliseconds."""
    spent = dict.fromkeys(KINDS, 0.0)
    for answer in ANSWERS:
        spent[answer.kind] += play(answer, machine, drafts, random.Random(0))
    return spent


def chosen(machine: Machine, seed: int, *, busy: bool) -> dict[str, float]:
    """Kind -> milliseconds of one engine that answers everything, in some order."""
    chance = random.Random(seed)
    costs = Costs(curves=machine.curves(chance if busy else None))
    order = ANSWERS[:]
    chance.shuffle(order)
    policy: Policy | None = None
    spent = dict.fromkeys(KINDS, 0.0)
    for answer in order:
        policy = Policy(costs, like=policy, context=answer.prompt_tokens)
        spent[answer.kind] += play(answer, machine, policy, chance)
    return spent


def shares(machine: Machine, *, busy: bool) -> Mapping[str, float]:
    """Speed against the best fixed number of drafts for each kind, the mean of several orders and noises."""
    alone = [fixed(machine, drafts) for drafts in range(BLOCK + 1)]
    best = {kind: min(spent[kind] for spent in alone) for kind in KINDS}
    runs = [chosen(machine, seed, busy=busy) for seed in range(SEEDS)]
    return {kind: sum(best[kind] / run[kind] for run in runs) / SEEDS for kind in KINDS}


@pytest.mark.parametrize("name", MACHINES)
def test_auto_is_as_fast_as_the_best_fixed_number_on_each_kind(name: str) -> None:
    found = shares(MACHINES[name], busy=False)
    assert min(found.values()) >= 0.97, found


@pytest.mark.parametrize("name", MACHINES)
def test_a_calibration_on_a_busy_machine_costs_little(name: str) -> None:
    found = shares(MACHINES[name], busy=True)
    assert min(found.values()) >= 0.95, found
    assert sum(found.values()) / len(found) >= 0.97, found


def test_where_verification_is_dear_confidences_beat_every_fixed_number() -> None:
    for name in ("two cores", "two slower cores"):
        assert min(shares(MACHINES[name], busy=False).values()) > 1.0


@pytest.mark.parametrize("name", MACHINES)
def test_auto_is_never_slower_than_plain(name: str) -> None:
    """Even where hardly a draft is kept."""
    machine = MACHINES[name]
    chance = random.Random(1)
    hopeless = Answer("none", 40, [int(chance.random() < 0.05) for _ in range(1500)], [[0.5] * BLOCK] * 1500)
    plain = play(hopeless, machine, 0, chance)
    policy = Policy(Costs(curves=machine.curves(None)))
    assert play(hopeless, machine, policy, chance) <= plain / 0.97
