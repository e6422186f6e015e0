"""Thousands of tokens of real rounds beside plain decoding: the same text, and after each round the same state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

import mlx.core as mx
import pytest

import tiny_families
import tiny_mtp
from slipstream.drafters.lookup import Lookup
from slipstream.drafters.mtp import Mtp
from slipstream.drafters.mtp_weights import HeadWeights
from slipstream.drafters.none import NoDrafter
from slipstream.drafters.protocol import Drafter
from slipstream.engine.planner import Drafters
from slipstream.engine.round import Decoding
from slipstream.models.cache import TargetCache
from slipstream.models.target import Target
from slipstream.types import Options
from tiny_families import RECURRENT
from tiny_runs import half
from tiny_states import all_same

PROMPT = (5, 9, 33, 71, 5, 9, 33, 70, 12, 40, 41)
CIRCLE = (11, 12, 13, 14, 15, 16)
MOST = 33  # tokens of a round


@cache
def target(family: str) -> Target:
    return tiny_families.target(family)


class Plain(Sequence[int]):
    """A plain run that is always some tokens ahead; the answer it gives, and the state at each length."""

    def __init__(self, onto: Target, options: Options) -> None:
        self.decoding = begun(onto, (NoDrafter(),), options)
        self.states: dict[int, TargetCache] = {}

    def go_on(self, length: int) -> None:
        while len(self.decoding.tokens) < length and self.decoding.room > 0:
            self.decoding.step()
            self.states[self.decoding._cache.length] = self.decoding._cache.fork()

    def forget(self, length: int) -> None:
        for old in [at for at in self.states if at < length]:
            del self.states[old]

    def __len__(self) -> int:
        return len(self.decoding.tokens) - len(PROMPT)

    def __getitem__(self, index: Any) -> Any:
        return self.decoding.tokens[len(PROMPT) :][index]


def begun(onto: Target, drafters: Sequence[Drafter], options: Options) -> Decoding:
    decoding = Decoding(onto, Drafters(drafters), options, PROMPT, onto.make_cache())
    for _ in decoding.prefill(32):
        pass
    decoding.first()
    return decoding


def lockstep(family: str, make: Any, options: Options) -> Iterator[int]:
    """Yields how many drafts each round kept."""
    onto = target(family)
    plain = Plain(onto, options)
    fast = begun(onto, (make(plain),), options)
    while fast.room > 0:
        plain.go_on(len(fast.tokens) + MOST + 1)
        made = fast.step().round
        assert made is not None
        length = fast._cache.length
        assert fast.tokens == plain.decoding.tokens[: len(fast.tokens)]
        if fast.room > 0:
            is_same = all_same(fast._cache, plain.states[length])
            assert is_same, f"at {length}: {made.accepted} of {len(made.drafted)} kept, state differs"
        plain.forget(length)
        yield made.accepted


def heads(family: str) -> Mtp:
    onto = target(family)
    return Mtp(HeadWeights(Path("made"), tiny_mtp.random_heads(family)), onto, dtype=onto.dtype, bits=0)


def run_heads(family: str, count: int) -> None:
    options = Options(temperature=0.8, max_tokens=count, seed=3)
    drafter = heads(family)
    kept = list(lockstep(family, lambda plain: half(cast(Drafter, drafter), plain, len(PROMPT)), options))
    assert {0, 1, 4} <= set(kept)


def run_lookup(family: str, count: int) -> None:
    # The bias makes the answer go round in circles, and the noise break out of them.
    bias = dict.fromkeys(CIRCLE, 7.0)
    options = Options(temperature=0.6, max_tokens=count, seed=3, logit_bias=bias)
    kept = list(lockstep(family, lambda _: Lookup(2, 3), options))
    assert 0 in kept
    assert max(kept) > 0


def test_own_heads_leave_the_state_of_plain_decoding() -> None:
    run_heads("qwen3_5_moe", 40)


@pytest.mark.slow
@pytest.mark.parametrize("family", tiny_mtp.FAMILIES)
def test_own_heads_leave_the_state_of_plain_decoding_for_5000_tokens(family: str) -> None:
    run_heads(family, 5000)


@pytest.mark.slow
@pytest.mark.parametrize("family", RECURRENT)
def test_lookup_leaves_the_state_of_plain_decoding_for_5000_tokens(family: str) -> None:
    run_lookup(family, 5000)


def test_rows_of_the_heads_are_what_a_whole_pass_makes() -> None:
    """After rounds of every kind, drafted by the heads or by a copy."""
    onto, drafter = target("qwen3_5"), heads("qwen3_5")
    options = Options(temperature=0.8, max_tokens=40, seed=3)
    plain = Plain(onto, options)
    plain.go_on(len(PROMPT) + 40)
    by = half(cast(Drafter, drafter), plain, len(PROMPT))
    fast = begun(onto, (Lookup(1, 2), by), options)
    sources = {made.source for step in iter_steps(fast) if (made := step.round) is not None}
    assert {"lookup", "mtp"} <= sources
    state = fast._drafters.states[1][1]
    text = fast.tokens[: state.length]
    stream = onto.forward(mx.array(text), onto.make_cache(), drafter.taps).taps[drafter.taps[0]]
    whole = drafter.begin()
    drafter.observe(whole, text, {drafter.taps[0]: stream})
    for ours, theirs in zip(drafter.buffers(state).values(), drafter.buffers(whole).values(), strict=True):
        assert mx.allclose(ours[:, :, : len(text)], theirs[:, :, : len(text)], atol=1e-4)


def iter_steps(decoding: Decoding) -> Iterator[Any]:
    while decoding.room > 0:
        yield decoding.step()
