from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import mlx.core as mx
import numpy as np
import pytest

from slipstream.drafters.protocol import Proposal
from slipstream.engine.decide import Chooser
from slipstream.engine.sampling import gumbel
from slipstream.models.host import ints
from slipstream.types import Acceptance, Options

NOTHING = Proposal(mx.zeros((0,), dtype=mx.int32))

COUNT = 30_000
TARGET = (0.5, 0.3, 0.2)
DRAFTER = (0.9, 0.05, 0.05)


def rows_of(probs: Sequence[float], count: int) -> mx.array:
    return mx.broadcast_to(mx.log(mx.array(list(probs))), (count, len(probs)))


def answer(
    options: Options, drafter: Sequence[float] = DRAFTER, target: Sequence[float] = TARGET
) -> tuple[list[int], float]:
    """COUNT tokens at as many positions, each drafted and decided by the real code, and the share of drafts kept.

    The logits are the same everywhere, so that all positions can be decided at once: what a position becomes depends
    on its own draft and noise alone.
    """
    chooser = Chooser(options, len(target), prompt=(0,))
    logits = rows_of(drafter, COUNT)
    drafts = chooser.draw(logits, 1)
    decision = chooser.decide(rows_of(target, COUNT + 1), Proposal(drafts, logits=logits), 1)
    tokens = decision.tokens[:COUNT]
    if decision.accepted is None:
        accepted = tokens == drafts
    else:
        accepted = decision.accepted
        tokens = mx.where(accepted, drafts, tokens)
    return ints(tokens), float(np.array(accepted).mean())


def shares(tokens: Sequence[int]) -> list[float]:
    return [tokens.count(token) / len(tokens) for token in range(3)]


@pytest.mark.parametrize("acceptance", Acceptance)
def test_p03_sampling_keeps_the_models_distribution(acceptance: Acceptance) -> None:
    options = Options(temperature=1.0, seed=11, acceptance=acceptance)
    tokens, kept = answer(options)
    assert shares(tokens) == pytest.approx(TARGET, abs=0.01)
    distance = sum(abs(one - two) for one, two in zip(TARGET, DRAFTER, strict=True)) / 2
    if acceptance is Acceptance.REJECTION:
        assert kept == pytest.approx(1 - distance, abs=0.01)
    else:  # shared noise: at least this (Daliri et al. 2025)
        assert kept >= (1 - distance) / (1 + distance) - 0.01


@pytest.mark.parametrize("acceptance", Acceptance)
def test_p03_top_p(acceptance: Acceptance) -> None:
    tokens, _ = answer(Options(temperature=1.0, top_p=0.75, seed=11, acceptance=acceptance))
    assert shares(tokens) == pytest.approx((0.625, 0.375, 0.0), abs=0.01)
    assert 2 not in tokens


@pytest.mark.parametrize("acceptance", Acceptance)
@pytest.mark.parametrize("temperature", [1e-6, 1e-30, 5e-324])
def test_p03_a_temperature_near_zero_is_greedy(acceptance: Acceptance, temperature: float) -> None:
    tokens, kept = answer(Options(temperature=temperature, seed=11, acceptance=acceptance))
    assert set(tokens) == {0}
    assert kept == 1.0


@pytest.mark.parametrize("acceptance", Acceptance)
def test_p03_a_drafter_like_the_target_is_always_right(acceptance: Acceptance) -> None:
    for options in (Options(temperature=1.0), Options(temperature=0.7, top_p=0.9, top_k=2), Options()):
        _, kept = answer(replace(options, seed=5, acceptance=acceptance), drafter=TARGET)
        assert kept == 1.0


def test_rejection_of_a_certain_drafter_keeps_the_distribution() -> None:
    """Lookup has no probabilities: its draft counts as certain."""
    chooser = Chooser(Options(temperature=1.0, seed=2, acceptance=Acceptance.REJECTION), 3, prompt=(0,))
    drafts = mx.full((COUNT,), 1, dtype=mx.int32)
    decision = chooser.decide(rows_of(TARGET, COUNT + 1), Proposal(drafts), 1)
    assert decision.accepted is not None
    tokens = ints(mx.where(decision.accepted, drafts, decision.tokens[:COUNT]))
    assert shares(tokens) == pytest.approx(TARGET, abs=0.01)


def random_logits(rows: int, vocabulary: int = 40, seed: int = 0) -> mx.array:
    return mx.array(np.random.default_rng(seed).normal(size=(rows, vocabulary)) * 3, dtype=mx.float32)


OPTIONS = {
    "greedy": Options(),
    "sampled": Options(temperature=0.8, seed=3),
    "penalties": Options(repetition_penalty=1.5, presence_penalty=0.7, frequency_penalty=0.4),
    "penalties, sampled": Options(temperature=1.1, seed=9, repetition_penalty=0.8, presence_penalty=-0.5, top_k=9),
    "everything": Options(
        temperature=0.9, seed=1, repetition_penalty=1.3, frequency_penalty=0.6, logit_bias={3: 2.5, 8: -9.0}, top_p=0.9
    ),
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_rows_decided_together_are_rows_decided_one_by_one(options: Options) -> None:
    """A row's choice under speculation is the choice plain decoding makes when it gets there."""
    prompt, drafts = (1, 2, 3, 4, 2), [3, 30, 3, 8, 8]
    logits = random_logits(len(drafts) + 1)
    together = Chooser(options, 40, prompt)
    decision = together.decide(logits, Proposal(mx.array(drafts, dtype=mx.int32)), 5)
    alone = Chooser(options, 40, prompt)
    for row in range(len(drafts) + 1):
        assert ints(alone.decide(logits[row : row + 1], NOTHING, 5 + row).tokens)[0] == ints(decision.tokens)[row]
        alone.commit(drafts[row : row + 1])


def slow_choice(logits: np.ndarray, options: Options, prompt: Sequence[int], said: Sequence[int], position: int) -> int:
    scores = logits.astype(np.float64)
    for token in range(len(scores)):
        if token in prompt or token in said:
            scores[token] *= 1 / options.repetition_penalty if scores[token] > 0 else options.repetition_penalty
        count = list(said).count(token)
        scores[token] -= options.presence_penalty * (count > 0) + options.frequency_penalty * count
        scores[token] += options.logit_bias.get(token, 0.0)
    if options.temperature:
        scores = scores / options.temperature
        if options.top_k:
            scores = np.where(scores >= np.sort(scores)[-options.top_k], scores, -np.inf)
        if options.top_p < 1:
            mass = np.exp(scores - scores.max())
            mass /= mass.sum()
            scores = np.where([mass[mass > own].sum() < options.top_p for own in mass], scores, -np.inf)
        scores = scores + np.array(gumbel(options.seed, position, 1, len(scores)))[0]
    return int(np.argmax(scores))


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_choices_match_a_slow_reference(options: Options) -> None:
    prompt, drafts = (1, 2, 3, 4, 2), [3, 30, 3, 8, 8]
    for seed in range(6):
        logits = random_logits(len(drafts) + 1, seed=seed)
        chooser = Chooser(options, 40, prompt)
        chooser.commit([7, 7, 20])
        tokens = ints(chooser.decide(logits, Proposal(mx.array(drafts, dtype=mx.int32)), 8).tokens)
        for row, token in enumerate(tokens):
            said = [7, 7, 20, *drafts[:row]]
            assert token == slow_choice(np.array(logits)[row], options, prompt, said, 8 + row)


def test_bias_bans_and_forces() -> None:
    logits = random_logits(3)
    best = ints(mx.argmax(logits, axis=-1))[0]
    banned = ints(Chooser(Options(logit_bias={best: -1e4}), 40, (1,)).decide(logits, NOTHING, 1).tokens)
    assert best not in banned
    forced = Chooser(Options(logit_bias={17: 1e4}, temperature=1.0), 40, (1,)).decide(logits, NOTHING, 1)
    assert ints(forced.tokens) == [17, 17, 17]


def test_equal_logits_are_decided_for_the_lowest_id_everywhere() -> None:
    logits = mx.zeros((4, 40))
    chooser = Chooser(Options(), 40, (1,))
    assert ints(chooser.decide(logits, NOTHING, 1).tokens) == [0] * 4
    assert ints(chooser.draw(logits, 1)) == [0] * 4


def test_logprobs_are_the_models_own() -> None:
    logits = random_logits(4)
    chooser = Chooser(Options(logprobs=3, temperature=0.5, top_k=2, logit_bias={3: 5.0}, seed=4), 40, (1,))
    decision = chooser.decide(logits, NOTHING, 1)
    expected = np.array(logits - mx.logsumexp(logits, axis=-1, keepdims=True))
    choices = chooser.choices(decision, 3)
    assert len(choices) == 3
    for row, (choice, token) in enumerate(zip(choices, ints(decision.tokens), strict=False)):
        assert choice.logprob == pytest.approx(expected[row, token], abs=1e-5)
        best = np.argsort(-expected[row])[:3]
        assert [token for token, _ in choice.top] == best.tolist()
        assert [logprob for _, logprob in choice.top] == pytest.approx(expected[row, best], abs=1e-5)


def test_logprobs_without_alternatives() -> None:
    chooser = Chooser(Options(logprobs=0), 40, (1,))
    choices = chooser.choices(chooser.decide(random_logits(2), NOTHING, 1), 2)
    assert [choice.top for choice in choices] == [(), ()]
    off = Chooser(Options(), 40, (1,))
    assert off.choices(off.decide(random_logits(2), NOTHING, 1), 2) == ()


def test_margins_are_in_units_of_logits() -> None:
    logits = mx.array([[1.0, 4.0, 2.5, -1.0]])
    greedy = Chooser(Options(margins=True), 4, (0,))
    (margin,) = greedy.margins(greedy.decide(logits, NOTHING, 1), 1)
    assert (margin.scale, margin.gap, margin.at_edge) == (4.0, 1.5, False)

    options = Options(margins=True, temperature=0.5, seed=8)
    sampled = Chooser(options, 4, (0,))
    decision = sampled.decide(logits, NOTHING, 1)
    (margin,) = sampled.margins(decision, 1)
    scores = np.sort(np.array(logits / 0.5 + gumbel(8, 1, 1, 4))[0])
    assert margin.gap == pytest.approx((scores[-1] - scores[-2]) * 0.5, abs=1e-5)
    assert margin.scale == np.abs(np.array(logits)).max()


def test_the_scale_of_a_margin_is_that_of_the_likeliest_tokens() -> None:
    logits = mx.concatenate([mx.array([[5.0, 4.2, -float("inf")]]), mx.full((1, 30), 1.0), mx.full((1, 2), -60.0)], 1)
    chooser = Chooser(Options(margins=True), logits.shape[-1], (0,))
    (margin,) = chooser.margins(chooser.decide(logits, NOTHING, 1), 1)
    assert margin.scale == 5.0
    few = Chooser(Options(margins=True), 3, (0,))
    (margin,) = few.margins(few.decide(logits[:, :3], NOTHING, 1), 1)
    assert margin.scale == 5.0


def test_equal_best_logits_have_no_gap() -> None:
    chooser = Chooser(Options(margins=True), 3, (0,))
    (margin,) = chooser.margins(chooser.decide(mx.array([[28.25, 28.25, 1.0]]), NOTHING, 1), 1)
    assert margin.gap == 0.0


def test_a_choice_at_the_edge_of_truncation_is_marked() -> None:
    """With top-k 1 the noise has no say; with top-k 2 it may choose the other one."""
    logits = mx.array([[1.0, 0.99, -5.0]])
    seen: set[bool] = set()
    for seed in range(20):
        chooser = Chooser(Options(margins=True, temperature=1.0, top_k=1, seed=seed), 3, (0,))
        (margin,) = chooser.margins(chooser.decide(logits, NOTHING, 1), 1)
        noise = np.array(gumbel(seed, 1, 1, 3))[0]
        other_would_win = bool(0.99 + noise[1] > 1.0 + noise[0])
        assert margin.at_edge == other_would_win
        assert margin.gap == math.inf
        seen.add(margin.at_edge)
    assert seen == {True, False}


def test_margins_of_a_clear_choice_under_truncation_are_not_at_the_edge() -> None:
    options = Options(margins=True, temperature=0.5, top_k=2, top_p=0.9, min_p=0.1)
    chooser = Chooser(options, 3, (0,))
    (margin,) = chooser.margins(chooser.decide(mx.array([[30.0, 1.0, 0.0]]), NOTHING, 1), 1)
    assert not margin.at_edge
