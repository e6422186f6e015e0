"""The target's own texts, many at once: what plain decoding says."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest

import tiny
import tiny_families
from slipstream.models import on_cpu
from slipstream.models.target import Target
from slipstream.train.sampler import Ask, Sampler
from slipstream.types import Options
from tiny_runs import plain, windowed_target


def prompts(count: int) -> list[tuple[int, ...]]:
    rng = np.random.default_rng(4)
    return [tuple(int(token) for token in rng.integers(0, tiny.VOCABULARY, 3 + 5 * n % 31)) for n in range(count)]


def check(target: Target, limits: list[int], ends: set[int], width: int) -> None:
    asks = [Ask(prompt, 0.0, limit) for prompt, limit in zip(prompts(len(limits)), limits, strict=True)]
    texts = Sampler(target, 0).sample(asks, ends, width)
    for ask, text in zip(asks, texts, strict=True):
        said = plain(target, Options(max_tokens=ask.limit, ignore_eos=True), ask.ids).tokens
        end = next((place + 1 for place, token in enumerate(said) if token in ends), ask.limit)
        assert text == said[:end]


def test_greedy_texts_are_what_plain_decoding_says(target: Target) -> None:
    check(target, [40, 7, 33, 64, 1], {tiny.VOCABULARY}, width=2)


def test_texts_end_at_their_own_end(target: Target) -> None:
    check(target, [70, 70, 70, 70, 40, 70], {5, 17, 40}, width=6)


def test_windows_are_kept() -> None:
    check(windowed_target(), [30, 12, 40], {tiny.VOCABULARY}, width=3)


def test_padding_spoils_nothing_where_attention_is_a_cpu_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gemma 4's attention is in another file than its model, so the sampler's own is not used. Padding sees nothing."""
    monkeypatch.setattr(on_cpu, "is_ours", lambda: True)
    check(tiny_families.target("gemma4"), [12, 12, 12], {tiny.VOCABULARY}, width=3)


def test_tokens_are_drawn_as_often_as_the_target_says(target: Target) -> None:
    prompt = prompts(1)[0]
    logits = target.logits_of(target.states(mx.array([prompt]), (0,))[1][0, -1])
    for temperature in (0.5, 1.0):
        texts = Sampler(target, 1).sample([Ask(prompt, temperature, 1)] * 500, set(), 500)
        counts = np.bincount([text[0] for text in texts], minlength=tiny.VOCABULARY)
        expected = 500 * np.array(mx.softmax(logits / temperature))
        often = expected > 8
        assert (((counts - expected) ** 2 / expected)[often].sum()) < 2 * often.sum() + 20
