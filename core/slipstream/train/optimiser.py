"""AdamW, and Muon for the matrices between hidden states; on float32 masters, as functions of flat dicts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import mlx.core as mx

Tree = dict[str, mx.array]  # by parameter path
Kind = Literal["adamw", "muon"]
BETAS, EPS = (0.9, 0.95), 1e-8
MOMENTUM = 0.95
RMS = 0.2  # of a Muon update, as AdamW's usually is: both can share a learning rate (Liu et al. 2025, Muon is scalable)
TABLES = ("markov_head", "confidence_head")  # looked up or of one row: AdamW's


@dataclass(frozen=True, slots=True)
class Schedule:
    """Learning rate by progress: linear warm-up, then cosine to `floor` of it."""

    rate: float
    warmup: int  # steps
    floor: float = 0.02

    def at(self, step: int, progress: float) -> float:
        """`step` counts from 0; `progress` from 0 to 1."""
        warm = min(1.0, (step + 1) / max(self.warmup, 1))
        cosine = 0.5 * (1 + math.cos(math.pi * min(max(progress, 0.0), 1.0)))
        return self.rate * warm * (self.floor + (1 - self.floor) * cosine)


def start(parameters: Mapping[str, mx.array], kind: Kind) -> Tree:
    """The optimiser's state before the first step: zeros."""
    state: Tree = {}
    for name, value in parameters.items():
        state[f"m.{name}"] = mx.zeros_like(value)
        if not _by_muon(name, value, kind):
            state[f"v.{name}"] = mx.zeros_like(value)
    return state


def update(
    parameters: Mapping[str, mx.array],
    gradients: Mapping[str, mx.array],
    state: Mapping[str, mx.array],
    rate: mx.array,
    step: mx.array,
    kind: Kind,
    clip: float = 1.0,
) -> tuple[Tree, Tree, mx.array]:
    """New parameters, new state, and the gradients' norm before clipping. `step` counts from 1."""
    norm = mx.sqrt(sum((mx.sum(mx.square(gradient)) for gradient in gradients.values()), mx.zeros(())))
    scale = mx.minimum(1.0, clip / (norm + 1e-6))
    out: Tree = {}
    after: Tree = {}
    for name, value in parameters.items():
        gradient = gradients[name].astype(mx.float32) * scale
        if _by_muon(name, value, kind):
            first = MOMENTUM * state[f"m.{name}"] + (1 - MOMENTUM) * gradient
            ahead = MOMENTUM * first + (1 - MOMENTUM) * gradient
            change = orthogonal(ahead) * (RMS * max(value.shape) ** 0.5)
            after[f"m.{name}"] = first
        else:
            one, two = BETAS
            first = one * state[f"m.{name}"] + (1 - one) * gradient
            second = two * state[f"v.{name}"] + (1 - two) * mx.square(gradient)
            change = (first / (1 - one**step)) / (mx.sqrt(second / (1 - two**step)) + EPS)
            after[f"m.{name}"], after[f"v.{name}"] = first, second
        out[name] = value - rate * change
    return out, after, norm


def orthogonal(matrix: mx.array) -> mx.array:
    """The nearest matrix with singular values near one: five Newton-Schulz steps in bfloat16 (Jordan et al. 2024)."""
    a, b, c = 3.4445, -4.7750, 2.0315
    is_tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if is_tall else matrix
    x = (x / (mx.sqrt(mx.sum(mx.square(x))) + 1e-7)).astype(mx.bfloat16)
    for _ in range(5):
        gram = x @ x.T
        x = a * x + (b * gram + c * (gram @ gram)) @ x
    return (x.T if is_tall else x).astype(mx.float32)


def _by_muon(name: str, value: mx.array, kind: Kind) -> bool:
    return kind == "muon" and value.ndim == 2 and not name.startswith(TABLES)
