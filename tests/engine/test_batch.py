"""Requests that share rounds: each one's tokens are those of its run alone, whoever is beside it.

As in test_equality.py, MLX's own BLAS makes equality exact here, so every difference is a bug.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import mlx.core as mx
import pytest

import tiny
import tiny_families
import tiny_mtp
from slipstream.drafters.dflash import DFlash
from slipstream.drafters.dspark import DSpark
from slipstream.drafters.lookup import Lookup
from slipstream.drafters.mtp import Mtp
from slipstream.drafters.mtp_weights import HeadWeights
from slipstream.drafters.none import NoDrafter
from slipstream.drafters.protocol import Drafter, Draw, Proposal, Wish
from slipstream.engine.batch import Batch
from slipstream.engine.decide import Chooser
from slipstream.engine.load import Precision, load_drafter
from slipstream.engine.planner import Drafters
from slipstream.engine.round import Decoding, Step
from slipstream.errors import InvalidRequest
from slipstream.measure.verdict import Verdict
from slipstream.models import backend
from slipstream.models.host import ints
from slipstream.models.packed import Packing
from slipstream.models.target import Target
from slipstream.types import Options
from tiny_drafters import PACKAGINGS, write_drafter
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


SOME_FAMILIES = ("llama", "gemma4_e2b", "phi", "nanbeige", "qwen3_5", "nemotron_h")  # a kind of layer each
SOME_PACKAGINGS = ("deepspec rnn", "speculators mixed", "zlab causal", "dflash2")


@cache
def target(family: str) -> Target:
    made = tiny_families.target(family)
    made.pack()
    assert made.packing is (Packing.MIXER if family == "phi" else Packing.ATTENTION)
    return made


class Told:
    """A drafter that is told the answers of some requests."""

    def __init__(self, drafter: Any) -> None:
        self._drafter = drafter
        self.mode, self.taps, self.block = drafter.mode, drafter.taps, drafter.block
        self.answers: dict[int, tuple[Sequence[int], int]] = {}  # by the state's identity: answer, prompt's length

    def __getattr__(self, name: str) -> Any:
        return getattr(self._drafter, name)

    def righted(self, state: Any, proposal: Proposal) -> Proposal:
        """About half of the drafts are made right."""
        answer, prompt_length = self.answers[id(state)]
        tokens = tiny.half_right(ints(proposal.tokens), answer, state.length + 1 - prompt_length)
        return Proposal(tokens, proposal.confidence, proposal.logits)


class Apart(Told):
    """One that drafts for each request by itself."""

    def propose(self, state: Any, last: int, limit: int, draw: Draw) -> Proposal:
        return self.righted(state, self._drafter.propose(state, last, limit, draw))


class Halves(Told):
    """One that drafts for several requests at once."""

    together = 0  # the most so far

    def observe_together(self, states: Any, tokens: Any, taps: Any) -> None:
        self._drafter.observe_together(states, tokens, taps)

    def propose_together(self, wishes: Sequence[Wish]) -> list[Proposal]:
        self.together = max(self.together, len(wishes))
        proposals = self._drafter.propose_together(wishes)
        return [self.righted(wish.state, proposal) for wish, proposal in zip(wishes, proposals, strict=True)]


@dataclass
class Row:
    """One request: when it comes, what it asks, and what it got."""

    prompt: list[int]
    options: Options
    by: str | Told  # who drafts: a pattern of `Scripted`, a name, or a network
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
            case Told():
                return (cast(Drafter, self.by),)
            case "nobody":
                return (NoDrafter(),)
            case "lookup":
                return (cast(Drafter, Lookup()),)
            case pattern:
                return (cast(Drafter, Scripted(answer, len(self.prompt), pattern, onto.vocabulary)),)


def some_rows(rng: random.Random, count: int, *, kv_bits: int = 0, network: Told | None = None) -> list[Row]:
    return [
        Row(
            prompt=[rng.randrange(90) for _ in range(rng.randrange(1, 20))] * rng.choice((1, 1, 2)),
            options=replace(rng.choice(OPTIONS), max_tokens=rng.randrange(1, 24)),
            by=network if network is not None and rng.random() < 0.7 else rng.choice(["nobody", "lookup", *PATTERNS]),
            begins=rng.randrange(40),
            leaves=rng.choice((None, None, None, rng.randrange(1, 6))),
            kv_bits=kv_bits,
        )
        for _ in range(count)
    ]


def life(onto: Target, batch: Batch, row: Row, answer: Sequence[int]) -> Iterator[None]:
    """A request as the engine runs it, a turn at a time."""
    drafters = Drafters(row.drafters(onto, answer))
    if isinstance(row.by, Told):
        row.by.answers[id(drafters.states[0][1])] = answer, len(row.prompt)
    decoding = Decoding(onto, drafters, row.options, row.prompt, onto.make_cache(row.kv_bits))
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
    others = (NoDrafter(),) if isinstance(row.by, Told) else row.drafters(onto, said.tokens)
    comparison = judge(onto, lambda: others, row.options, row.prompt, said, run, kv_bits=row.kv_bits)
    assert comparison.verdict is not Verdict.DIFFERENT, f"{row}: {comparison.sentence}"
    if backend._loaded is None:
        assert comparison.verdict is Verdict.IDENTICAL, f"{row}: {comparison.sentence}"


@pytest.mark.parametrize("family", SOME_FAMILIES)
def test_rows_come_and_go_and_change_nothing(family: str) -> None:
    rng = random.Random(f"batch {family}")
    run_together(target(family), some_rows(rng, 4), most=3)


@pytest.mark.parametrize("family", ["llama", "gemma3"])
def test_a_packed_cache_changes_nothing(family: str) -> None:
    run_together(target(family), some_rows(random.Random(family), 3, kv_bits=8), most=3)


def network_of(folder: Path, packaging: str, family: str) -> DSpark | DFlash:
    onto = target(family)
    at = folder / f"{packaging} {onto.layer_count}"
    if not at.exists():
        write_drafter(at, packaging, target_layers=onto.layer_count)
    by = load_drafter(at, onto, Precision(drafter_bits=0))
    assert isinstance(by, DSpark | DFlash)
    return by


def drafted_together(folder: Path, packaging: str, family: str, seed: int, count: int) -> None:
    network = Halves(network_of(folder, packaging, family))
    run_together(target(family), rows_of(network, seed, count), most=count)
    assert network.together > 1


def rows_of(network: Told, seed: int, count: int) -> list[Row]:
    """The first two are the network's, and meet."""
    rng = random.Random(seed)
    rows = some_rows(rng, count, network=network)
    for row in rows[:2]:
        row.by, row.begins, row.leaves = network, rng.randrange(3), None
        row.options = replace(row.options, max_tokens=20)
    return rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("batch")


@pytest.mark.parametrize("packaging", SOME_PACKAGINGS)
def test_networks_that_draft_for_several_change_nothing(packaging: str, folder: Path) -> None:
    drafted_together(folder, packaging, "llama", seed=3, count=3)


@pytest.mark.parametrize(
    "family", [pytest.param(family, marks=[pytest.mark.slow] * (family != "qwen3_5")) for family in tiny_mtp.FAMILIES]
)
def test_heads_that_draft_for_each_by_itself_change_nothing(family: str) -> None:
    onto = target(family)
    heads = HeadWeights(Path("made"), tiny_mtp.random_heads(family))
    network = Apart(Mtp(heads, onto, dtype=onto.dtype, bits=0))
    run_together(onto, rows_of(network, seed=5, count=3), most=3)


@pytest.mark.slow
@pytest.mark.parametrize("packaging", PACKAGINGS)
@pytest.mark.parametrize("family", FAMILIES)
def test_any_network_for_several_changes_nothing(family: str, packaging: str, folder: Path) -> None:
    for seed in range(3):
        drafted_together(folder, packaging, family, seed, count=6)


@pytest.mark.slow
@pytest.mark.parametrize("packaging", PACKAGINGS)
def test_any_network_drafts_for_each_what_it_would_alone(packaging: str, folder: Path) -> None:
    check_drafts(folder, packaging)


@pytest.mark.parametrize("packaging", SOME_PACKAGINGS)
def test_each_is_drafted_what_it_would_be_alone(packaging: str, folder: Path) -> None:
    check_drafts(folder, packaging)


def check_drafts(folder: Path, packaging: str) -> None:
    onto, by = target("llama"), network_of(folder, packaging, "llama")
    prompts = [[5, 9, 33, 71, 5, 9], [7] * 20, [1, 2]]
    wishes: list[Wish] = []
    for limit, prompt in zip((by.block, 2, 4), prompts, strict=True):
        forward = onto.forward(mx.array(prompt), onto.make_cache(), by.taps)
        state = by.begin()
        by.observe(state, prompt, forward.taps)
        chooser = Chooser(Options(temperature=0.5 * (limit == 2)), onto.vocabulary, prompt)

        def draw(logits: mx.array, slot: int, chooser: Chooser = chooser) -> mx.array:
            return chooser.draw(logits, slot)

        wishes.append(Wish(cast(Drafter, by), state, 3, limit, draw, chooser.draws_likeliest))
    together = by.propose_together(wishes)
    for wish, proposal in zip(wishes, together, strict=True):
        alone = by.propose(wish.state, wish.last, wish.limit, wish.draw)
        assert ints(proposal.tokens) == ints(alone.tokens)
        for name in ("confidence", "logits"):
            one, other = getattr(proposal, name), getattr(alone, name)
            assert (one is None) == (other is None)
            assert one is None or mx.allclose(one, other, atol=1e-4)


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


class Lost:
    """Stands in for a grammar that at some point leads nowhere."""

    is_finished = False

    def __init__(self, at: int) -> None:
        self._left = at

    def masks(self, drafts: Sequence[int]) -> mx.array:
        self._left -= 1
        if self._left < 0:
            raise InvalidRequest("the grammar cannot be followed")
        return mx.ones((len(drafts) + 1, 96), dtype=mx.bool_)

    def forced(self) -> list[int]:
        return []

    def legal_prefix(self, drafts: Sequence[int]) -> int:
        return len(drafts)

    def commit(self, tokens: Sequence[int]) -> int:
        return len(tokens)


def test_what_one_request_cannot_do_is_its_own() -> None:
    onto = target("llama")
    batch = Batch(onto, 4)
    options = Options(max_tokens=12, temperature=0.8, seed=1)
    prompts = ([5, 9, 33], [7, 7, 7, 7], [1, 2])
    alone = [plain(onto, options, prompt).tokens for prompt in prompts]
    rows = [
        Decoding(
            onto,
            Drafters((NoDrafter(),)),
            options,
            prompt,
            onto.make_cache(),
            cast(Any, Lost(5)) if number == 1 else None,
        )
        for number, prompt in enumerate(prompts)
    ]
    said: list[list[int]] = []
    for row in rows:
        list(row.prefill(32))
        said.append([*row.first().tokens])
    with ExitStack() as stack:
        members = [stack.enter_context(ExitStack()) for _ in rows]
        for member, row in zip(members, rows, strict=True):
            member.enter_context(batch.joined(row))
        for turn in range(11):
            for number, row in enumerate(rows):
                if number == 1 and turn == 4:
                    with pytest.raises(InvalidRequest, match="cannot be followed"):
                        batch.step(row)
                    members[1].close()
                elif number != 1 or turn < 4:
                    said[number] += batch.step(row).tokens
    assert said == [alone[0], alone[1][:5], alone[2]]
