"""The product's claim: whoever drafts, however much, the ids are those of plain decoding.

In this process MLX uses its own BLAS, whose products do not depend on how many rows are computed together
(platform.md D), so that equality is exact and every difference is a bug. Where a faster BLAS is loaded, ties may occur.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import mlx.core as mx
import pytest
from mlx_lm.models.cache import KVCache, RotatingKVCache

import tiny
from slipstream.drafters.dflash import DFlash
from slipstream.drafters.dspark import DSpark
from slipstream.drafters.lookup import Lookup
from slipstream.drafters.protocol import Drafter
from slipstream.engine.load import Precision, load_drafter
from slipstream.measure.verdict import Verdict
from slipstream.models import backend, joined
from slipstream.models.cache import WindowCache
from slipstream.models.target import TOLERANCE, Target
from slipstream.types import Mode, Options
from tiny_runs import PATTERNS, Run, Scripted, decode, half, judge, plain, windowed_target

PROMPT = (5, 9, 33, 71, 5, 9, 33, 70, 12)
REPEATING = (11, 12, 13, 14, 15, 16) * 4
PRECISIONS = ("float32", "bfloat16", "8-bit", "4-bit")
TEMPERATURES = (0.0, 0.7, 1.0)
NETWORKS = ("vanilla", "gated", "rnn", "dflash")
MIXES = {
    "repetition": Options(repetition_penalty=1.4),
    "presence and frequency": Options(presence_penalty=0.8, frequency_penalty=0.4),
    "bias": Options(logit_bias={5: 4.0, 9: -50.0, 95: 1.5}),
    "top-p": Options(top_p=0.7),
    "top-k": Options(top_k=5),
    "min-p": Options(min_p=0.1),
    "all": Options(repetition_penalty=1.2, frequency_penalty=0.3, logit_bias={7: 2.0}, top_p=0.9, top_k=30, min_p=0.01),
}

Make = Callable[[], Sequence[Drafter]]


class Counts:
    """What was compared so far."""

    def __init__(self) -> None:
        self.tokens = 0
        self.verdicts: Counter[Verdict] = Counter()


@pytest.fixture(scope="module")
def counts() -> Iterator[Counts]:
    counts = Counts()
    began = time.monotonic()
    yield counts
    seconds = time.monotonic() - began
    print(f"\nequality: {counts.tokens} tokens, {dict(counts.verdicts)}, {seconds:.0f} s")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("drafters")


@cache
def target(precision: str = "float32", model_type: str = "llama") -> Target:
    return tiny.target(precision, model_type=model_type)


_networks: dict[tuple[str, int], DSpark | DFlash] = {}


def network(folder: Path, name: str, onto: Target) -> DSpark | DFlash:
    key = (name, id(onto))
    if key not in _networks:
        at = folder / name
        if not at.exists():
            if name == "dflash":
                tiny.write_drafter(at, Mode.DFLASH, block=9)
            else:
                tiny.write_drafter(at, Mode.DSPARK, markov=name, block=8)
        drafter = load_drafter(at, onto, Precision(drafter_bits=0))
        assert isinstance(drafter, DSpark | DFlash)
        _networks[key] = drafter
    return _networks[key]


def check(
    counts: Counts, onto: Target, make: Make, options: Options, prompt: Sequence[int], own: Run, *, kv_bits: int = 0
) -> Run:
    """One speculative run against a plain one."""
    length = options.max_tokens
    own = Run(own.tokens[:length], own.steps)
    other = decode(onto, make(), options, prompt, kv_bits=kv_bits)
    comparison = judge(onto, make, options, prompt, own, other, kv_bits=kv_bits)
    counts.tokens += len(other.tokens)
    counts.verdicts[comparison.verdict] += 1
    assert comparison.verdict is not Verdict.DIFFERENT, comparison.sentence
    if backend._loaded is None:
        assert comparison.verdict is Verdict.IDENTICAL, comparison.sentence
    return other


def sampled(temperature: float, tokens: int, *, seed: int = 3, width: int | None = None) -> Options:
    return Options(temperature=temperature, max_tokens=tokens, seed=seed, max_draft=width)


# A thin cut: every drafter, precision, temperature and width occurs; not every combination.
_THIN = [
    (name, PRECISIONS[n % 4], TEMPERATURES[n % 3], n % 8 + 1)
    for n, name in enumerate((*NETWORKS, *NETWORKS[::-1], *NETWORKS))
]


@pytest.mark.parametrize(("name", "precision", "temperature", "width"), _THIN)
def test_a_random_and_a_half_right_network_change_nothing(
    name: str, precision: str, temperature: float, width: int, folder: Path, counts: Counts
) -> None:
    onto = target(precision)
    drafter = network(folder, name, onto)
    own = plain(onto, sampled(temperature, 24), PROMPT)
    check(counts, onto, lambda: (drafter,), sampled(temperature, 12, width=width), PROMPT, own)
    partly = half(drafter, own.tokens, len(PROMPT))
    run = check(counts, onto, lambda: (partly,), sampled(temperature, 24, width=width), PROMPT, own)
    assert run.accepted > 0


@pytest.mark.parametrize("pattern", [*PATTERNS, "mixed"])
def test_drafts_wrong_in_any_pattern_change_nothing(pattern: str, counts: Counts) -> None:
    for precision, temperature, width in zip(PRECISIONS[1:], TEMPERATURES, (8, 3, 5), strict=True):
        onto = target(precision)
        own = plain(onto, sampled(temperature, 16), PROMPT)
        scripted = Scripted(own.tokens, len(PROMPT), pattern, onto.vocabulary)
        run = check(counts, onto, lambda: (scripted,), sampled(temperature, 16, width=width), PROMPT, own)  # noqa: B023
        if pattern == "all right":
            assert len(run.steps) == 1 + -(-15 // (width + 1))
        if pattern in ("all wrong", "first wrong"):
            assert run.accepted == 0


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_lookup_and_lookup_beside_a_network_change_nothing(temperature: float, folder: Path, counts: Counts) -> None:
    onto = target()
    # The bias makes the answer go round in circles, so that lookup has something to find.
    options = Options(temperature=temperature, max_tokens=48, logit_bias=dict.fromkeys(REPEATING, 9.0), seed=2)
    own = plain(onto, options, REPEATING)
    run = check(counts, onto, lambda: (Lookup(),), options, REPEATING, own)
    assert any(step.round and step.round.source == "lookup" and step.round.drafted for step in run.steps)
    partly = half(network(folder, "vanilla", onto), own.tokens, len(REPEATING))
    check(counts, onto, lambda: (Lookup(4, 5), partly), options, REPEATING, own)


@pytest.mark.parametrize("name", MIXES)
def test_penalties_bias_and_truncation_change_nothing(name: str, counts: Counts) -> None:
    onto = target()
    for temperature, pattern in ((0.0, "mixed"), (0.9, "every other wrong")):
        options = _mixed(MIXES[name], temperature, 20)
        own = plain(onto, options, PROMPT)
        scripted = Scripted(own.tokens, len(PROMPT), pattern, onto.vocabulary)
        check(counts, onto, lambda: (scripted,), options, PROMPT, own)  # noqa: B023


@pytest.mark.parametrize("kv_bits", [4, 8])
def test_a_packed_cache_changes_nothing(kv_bits: int, folder: Path, counts: Counts) -> None:
    onto = target()
    own = plain(onto, sampled(0.7, 20), PROMPT, kv_bits=kv_bits)
    scripted = Scripted(own.tokens, len(PROMPT), "mixed", onto.vocabulary)
    check(counts, onto, lambda: (scripted,), sampled(0.7, 20), PROMPT, own, kv_bits=kv_bits)
    partly = half(network(folder, "dflash", onto), own.tokens, len(PROMPT))
    check(counts, onto, lambda: (partly,), sampled(0.7, 20), PROMPT, own, kv_bits=kv_bits)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_joint_products_change_nothing(precision: str, folder: Path, counts: Counts) -> None:
    onto = tiny.target(precision)
    parts = onto._parts
    assert parts is not None
    assert joined.join(parts.layers, lambda: onto._probed(parts), TOLERANCE) == 2 * tiny.LAYERS
    own = plain(onto, sampled(0.7, 20), PROMPT)
    for name, width in zip(("vanilla", "dflash"), (8, 3), strict=True):
        partly = half(network(folder, name, onto), own.tokens, len(PROMPT))
        check(counts, onto, lambda: (partly,), sampled(0.7, 20, width=width), PROMPT, own)  # noqa: B023


def test_qwen3_with_its_own_head_changes_nothing(folder: Path, counts: Counts) -> None:
    onto = target(model_type="qwen3")
    own = plain(onto, sampled(0.7, 20), PROMPT)
    for name in ("gated", "dflash"):
        partly = half(network(folder, name, onto), own.tokens, len(PROMPT))
        check(counts, onto, lambda: (partly,), sampled(0.7, 20), PROMPT, own)  # noqa: B023


@pytest.mark.parametrize("prompt_length", [5, 11, 12, 13, 40])
def test_sliding_windows_change_nothing(prompt_length: int, counts: Counts) -> None:
    onto = windowed_target(window=12)
    assert [type(layer) for layer in onto.make_cache().layers] == [*[WindowCache] * 3, KVCache]
    prompt = [(7 * n * n + 3) % 90 for n in range(prompt_length)]
    own = plain(onto, sampled(0.7, 24), prompt)
    for pattern in ("mixed", "last wrong"):
        scripted = Scripted(own.tokens, len(prompt), pattern, onto.vocabulary)
        check(counts, onto, lambda: (scripted,), sampled(0.7, 24), prompt, own)  # noqa: B023


def test_a_window_cache_says_what_a_rotating_one_says() -> None:
    """Beyond the window too, and for a prompt that comes in chunks."""
    onto = windowed_target(window=12)
    tokens = mx.array([(5 * n * n + 1) % 90 for n in range(40)])
    model = cast(Any, onto.model)
    cache, theirs = onto.make_cache(), model.make_cache()
    assert [type(layer) for layer in theirs] == [*[RotatingKVCache] * 3, KVCache]
    for start, end in ((0, 17), (17, 18), (18, 19), *((n, n + 1) for n in range(19, 40))):
        ours = onto.forward(tokens[start:end], cache).logits
        reference = model(tokens[None, start:end], cache=theirs)[0]
        assert ours is not None
        assert mx.allclose(ours, reference, atol=1e-4, rtol=1e-4), f"rows {start} to {end}"


def test_the_prefill_chunk_changes_nothing() -> None:
    onto = target()
    prompt = [(7 * n * n + 3) % 90 for n in range(37)]
    tokens = {tuple(decode(onto, (Lookup(),), sampled(0.7, 12), prompt, chunk=chunk).tokens) for chunk in (1, 5, 37)}
    assert len(tokens) == 1


def _mixed(mix: Options, temperature: float, tokens: int, width: int | None = None, seed: int = 4) -> Options:
    return replace(mix, temperature=temperature, max_tokens=tokens, seed=seed, max_draft=width)


# How many tokens a round commits on average when drafts of a width are wrong in a pattern.
_PACE: dict[str, Callable[[int], float]] = {
    "all right": lambda width: width + 1,
    "last wrong": lambda width: width,
    "wrong in the middle": lambda width: width // 2 + 1,
    "every other wrong": lambda width: 2,
    "mixed": lambda width: width / 3 + 1,
}


@pytest.mark.slow
@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_network_at_every_width_changes_nothing(
    precision: str, temperature: float, folder: Path, counts: Counts
) -> None:
    onto = target(precision)
    own = plain(onto, sampled(temperature, 24), PROMPT)
    for name, width in itertools.product(NETWORKS, range(1, 9)):
        drafter = network(folder, name, onto)
        check(counts, onto, lambda: (drafter,), sampled(temperature, 8, width=width), PROMPT, own)  # noqa: B023
        partly = half(drafter, own.tokens, len(PROMPT))
        check(counts, onto, lambda: (partly,), sampled(temperature, 24, width=width), PROMPT, own)  # noqa: B023
    bias = Options(logit_bias=dict.fromkeys(REPEATING, 9.0))
    circling = plain(onto, _mixed(bias, temperature, 64), REPEATING)
    for width in range(1, 9):
        options = _mixed(bias, temperature, 64, width)
        check(counts, onto, lambda: (Lookup(),), options, REPEATING, circling)
        partly = half(network(folder, "vanilla", onto), circling.tokens, len(REPEATING))
        check(counts, onto, lambda: (Lookup(4, 5), partly), options, REPEATING, circling)  # noqa: B023


@pytest.mark.slow
@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_pattern_at_every_width_changes_nothing(precision: str, temperature: float, counts: Counts) -> None:
    """Widths up to lookup's 32, on a target of two layers: these drafts need no taps."""
    onto = small_target(precision)
    own = plain(onto, sampled(temperature, 1500), PROMPT)
    for pattern, width in itertools.product([*PATTERNS, "mixed"], (*range(1, 9), 16, 32)):
        pace = _PACE.get(pattern, lambda _: 1)(width)
        tokens = round(24 * pace)
        if width > 8:
            tokens = 1500 if pace > width / 4 else 40
        scripted = Scripted(own.tokens, len(PROMPT), pattern, onto.vocabulary, block=32)
        check(counts, onto, lambda: (scripted,), sampled(temperature, tokens, width=width), PROMPT, own)  # noqa: B023


@cache
def small_target(precision: str) -> Target:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiny, "LAYERS", 2)
        return tiny.target(precision, seed=3)


@pytest.mark.slow
def test_every_mix_of_options_changes_nothing(folder: Path, counts: Counts) -> None:
    targets = [target(), target("bfloat16"), target(model_type="qwen3"), windowed_target()]
    for (number, onto), (kind, mix), temperature in itertools.product(
        enumerate(targets), enumerate(MIXES.values()), (0.0, 0.8)
    ):
        kv_bits = (0, 4, 8)[(kind + number) % 3] if number != 3 else 0
        options = _mixed(mix, temperature, 48, seed=kind)
        own = plain(onto, options, PROMPT, kv_bits=kv_bits)
        for pattern in ("mixed", "every other wrong", "last wrong"):
            scripted = Scripted(own.tokens, len(PROMPT), pattern, onto.vocabulary)
            check(counts, onto, lambda: (scripted,), options, PROMPT, own, kv_bits=kv_bits)  # noqa: B023
        partly = half(network(folder, NETWORKS[kind % 4], onto), own.tokens, len(PROMPT))
        check(counts, onto, lambda: (partly,), options, PROMPT, own, kv_bits=kv_bits)  # noqa: B023


@pytest.mark.slow
def test_the_slow_suite_compared_at_least_200_000_tokens(counts: Counts) -> None:
    assert counts.tokens >= 200_000
