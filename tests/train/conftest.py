"""A tiny target that says something, and conversations that it wrote."""

from __future__ import annotations

import numpy as np
import pytest

import tiny
from slipstream.models.target import Target
from slipstream.train.corpus import Conversation
from slipstream.train.design import TargetShape
from slipstream.train.sampler import Ask, Sampler

NOTHING = frozenset({tiny.VOCABULARY})  # an end token that never comes


@pytest.fixture(scope="session")
def target() -> Target:
    return tiny.target()


@pytest.fixture(scope="session")
def shape(target: Target) -> TargetShape:
    return TargetShape.of(
        tiny.target_config(),
        layers=target.layer_count,
        hidden=target.hidden_size,
        vocabulary=target.vocabulary,
        context=target.context,
    )


@pytest.fixture(scope="session")
def conversations(target: Target) -> list[Conversation]:
    rng = np.random.default_rng(3)
    prompts = [tuple(int(token) for token in rng.integers(0, tiny.VOCABULARY, 6 + n % 5)) for n in range(24)]
    asks = [Ask(prompt, 0.0, 24 + n % 9) for n, prompt in enumerate(prompts)]
    answers = Sampler(target, 0).sample(asks, NOTHING, 8)
    return [
        Conversation((*prompt, *answer), len(prompt), f"kind {n % 2}", 0.0)
        for n, (prompt, answer) in enumerate(zip(prompts, answers, strict=True))
    ]
