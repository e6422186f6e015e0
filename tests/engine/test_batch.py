"""Requests that share rounds: each one's tokens are those of its run alone, whoever is beside it.

As in test_equality.py, MLX's own BLAS makes equality exact here, so every difference is a bug.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import cast

import pytest

import tiny_families
from slipstream.drafters.lookup import Lookup
from slipstream.drafters.none import NoDrafter
from slipstream.drafters.protocol import Drafter
from slipstream.engine.batch import Batch
from slipstream.engine.planner import Drafters
from slipstream.engine.round import Decoding, Step
from slipstream.measure.verdict import Verdict
from slipstream.models import backend
from slipstream.models.packed import Packing
from slipstream.models.target import Target
from slipstream.types import Options
from tiny_families import FAMILIES
from tiny_runs import PATTERNS, Run, Scripted, check_bookkeeping, judge, plain

OPTIONS = (
    Options(),
    Options(temperature=0.8, seed=3),
    Options(temperature=1.2, seed=4, top_p=0.9, top_k=40),
    Options(temperature=0.7, seed=5, min_p=0.05, repetition_penalty=1.3),
    Options(presence_penalty=0.5, frequency_penalty=0.3),
    Options(logit_bias={7: 4.0, 9: -3.0}),
)


@cache
def target(family: str) -> Target:
    made = tiny_families.target(family)
    made.pack()
    assert made.packing is (Packing.MIXER if family == "phi" else Packing.ATTENTION)
    return made


@dataclass
class Row:
    """One request: when it comes, what it asks, and what it got."""

    prompt: list[int]
    options: Options
    by: str  # who drafts: a pattern of `Scripted`, or the drafter's own name
    begins: int  # at this turn
    leaves: int | None = None  # taken back after so many steps
    kv_bits: int = 0
    chunk: int = 5
    steps: list[Step] = field(default_factory=list[Step])

    @property
    def tokens(self) -> list[int]:
        return [token for step in self.steps for token in step.tokens]

    def drafters(self, onto: Target, answer: Sequence[int]) -> Sequence[Drafter]:
        match self.by:
            case "nobody":
                return (NoDrafter(),)
            case "lookup":
                return (cast(Drafter, Lookup()),)
            case pattern:
                return (cast(Drafter, Scripted(answer, len(self.prompt), pattern, onto.vocabulary)),)


def some_rows(rng: random.Random, count: int, *, kv_bits: int = 0) -> list[Row]:
    return [
        Row(
            prompt=[rng.randrange(90) for _ in range(rng.randrange(1, 20))] * rng.choice((1, 1, 2)),
            options=replace(rng.choice(OPTIONS), max_tokens=rng.randrange(1, 24)),
            by=rng.choice(["nobody", "lookup", "mixed", *PATTERNS]),
            begins=rng.randrange(40),
            leaves=rng.choice((None, None, None, rng.randrange(1, 6))),
            kv_bits=kv_bits,
        )
        for _ in range(count)
    ]


def life(onto: Target, batch: Batch, row: Row, answer: Sequence[int]) -> Iterator[None]:
    """A request as the engine runs it, a turn at a time."""
    decoding = Decoding(
        onto, Drafters(row.drafters(onto, answer)), row.options, row.prompt, onto.make_cache(row.kv_bits)
    )
    for _ in decoding.prefill(row.chunk):
        yield
    row.steps.append(decoding.first())
    is_over = decoding.room <= 0  # asked now: after the yield others may have run its next round
    yield
    with batch.joined(decoding):
        while not is_over and row.leaves != len(row.steps):
            row.steps.append(batch.step(decoding))
            is_over = decoding.room <= 0
            yield


def run_together(onto: Target, rows: Sequence[Row], most: int) -> int:
    """Every row to its end, each checked against its run alone. Returns how many tokens were compared."""
    alone = [plain(onto, row.options, row.prompt, kv_bits=row.kv_bits) for row in rows]
    batch = Batch(onto, most)
    waiting = sorted(range(len(rows)), key=lambda at: rows[at].begins)
    turns: list[Iterator[None]] = []
    turn = 0
    while waiting or turns:
        while waiting and (rows[waiting[0]].begins <= turn or not turns):
            at = waiting.pop(0)
            turns.insert(0, life(onto, batch, rows[at], alone[at].tokens))
        turn += 1
        going = turns.pop(0)
        for _ in going:
            turns.append(going)
            break
    for row, said in zip(rows, alone, strict=True):
        check(onto, row, said)
    return sum(len(row.tokens) for row in rows)


def check(onto: Target, row: Row, said: Run) -> None:
    if row.leaves is None:
        check_bookkeeping(row.steps, row.options, len(row.prompt))
    run = Run(row.tokens, row.steps)
    said = Run(said.tokens[: len(run.tokens)], said.steps)
    comparison = judge(
        onto, lambda: row.drafters(onto, said.tokens), row.options, row.prompt, said, run, kv_bits=row.kv_bits
    )
    assert comparison.verdict is not Verdict.DIFFERENT, f"{row}: {comparison.sentence}"
    if backend._loaded is None:
        assert comparison.verdict is Verdict.IDENTICAL, f"{row}: {comparison.sentence}"


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_come_and_go_and_change_nothing(family: str) -> None:
    rng = random.Random(f"batch {family}")
    run_together(target(family), some_rows(rng, 5), most=4)


@pytest.mark.parametrize("family", ["llama", "gemma3", "qwen3_5"])
def test_a_packed_cache_changes_nothing(family: str) -> None:
    run_together(target(family), some_rows(random.Random(family), 4, kv_bits=8), most=3)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_many_rows_change_nothing(family: str) -> None:
    compared = 0
    for seed in range(12):
        rng = random.Random(f"many {family} {seed}")
        kv_bits = rng.choice((0, 0, 8)) if family not in ("gemma4_e2b", "lfm2", "lfm2_moe") else 0
        rows = some_rows(rng, rng.randrange(2, 12), kv_bits=kv_bits)
        compared += run_together(target(family), rows, most=rng.randrange(1, 9))
    print(f"{family}: {compared} tokens compared")
