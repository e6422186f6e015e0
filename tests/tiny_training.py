"""Drafters of tests' size to be trained, and weights for them."""

from __future__ import annotations

import mlx.core as mx

import tiny
from slipstream.train.design import Design


def design(**choices: object) -> Design:
    given = {"layers": 2, "taps": tiny.TAPS, "mask_id": 3, "rank": 16, "proposals": 4} | choices
    return Design(**given)  # type: ignore[arg-type]


def noisy(weights: dict[str, mx.array], seed: int = 5) -> dict[str, mx.array]:
    """Weights in which nothing is zero or one, so that every part matters."""
    keys = iter(mx.random.split(mx.random.key(seed), len(weights)))
    return {
        name: value + 0.15 * mx.random.normal(value.shape, key=key)
        for (name, value), key in zip(weights.items(), keys, strict=False)
    }
