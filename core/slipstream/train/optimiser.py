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
BESIDE_MUON = 0.4  # of the learning rate, for what AdamW takes beside it: Muon bears a higher one
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
    names = sorted(parameters)  # in one order, however the dicts came about: sums are rounded
    norm = mx.sqrt(sum((mx.sum(mx.square(gradients[name])) for name in names), mx.zeros(())))
    scale = mx.minimum(1.0, clip / (norm + 1e-6))
    out: Tree = {}
    after: Tree = {}
    ahead: Tree = {}
    for name in names:
        value = parameters[name]
        gradient = gradients[name].astype(mx.float32) * scale
        if _by_muon(name, value, kind):
            first = MOMENTUM * state[f"m.{name}"] + (1 - MOMENTUM) * gradient
            ahead[name] = MOMENTUM * first + (1 - MOMENTUM) * gradient
            after[f"m.{name}"] = first
        else:
            one, two = BETAS
            first = one * state[f"m.{name}"] + (1 - one) * gradient
            second = two * state[f"v.{name}"] + (1 - two) * mx.square(gradient)
            change = (first / (1 - one**step)) / (mx.sqrt(second / (1 - two**step)) + EPS)
            after[f"m.{name}"], after[f"v.{name}"] = first, second
            out[name] = value - rate * (BESIDE_MUON if kind == "muon" else 1.0) * change
    for name, change in _orthogonal(ahead).items():
        out[name] = parameters[name] - rate * RMS * max(change.shape) ** 0.5 * change
    return out, after, norm


def _orthogonal(matrices: Tree) -> Tree:
    """Each made orthogonal; those of one shape together, for many small products cost launches, not arithmetic."""
    groups: dict[tuple[int, ...], list[str]] = {}
    for name, matrix in matrices.items():
        groups.setdefault(tuple(sorted(matrix.shape)), []).append(name)
    out: Tree = {}
    for names in groups.values():
        is_tall = {name: matrices[name].shape[0] > matrices[name].shape[1] for name in names}
        made = orthogonal(mx.stack([matrices[name].T if is_tall[name] else matrices[name] for name in names]))
        out |= {name: made[index].T if is_tall[name] else made[index] for index, name in enumerate(names)}
    return out


def orthogonal(x: mx.array) -> mx.array:
    """Of wide matrices [n, rows, columns] the nearest with singular values near one: Newton-Schulz, five steps.

    In bfloat16 (Jordan et al. 2024).
    """
    a, b, c = 3.4445, -4.7750, 2.0315
    x = (x / (mx.sqrt(mx.sum(mx.square(x), axis=(1, 2), keepdims=True)) + 1e-7)).astype(mx.bfloat16)
    for _ in range(5):
        gram = x @ x.swapaxes(-1, -2)
        x = a * x + (b * gram + c * (gram @ gram)) @ x
    return x.astype(mx.float32)


def _by_muon(name: str, value: mx.array, kind: Kind) -> bool:
    return kind == "muon" and value.ndim == 2 and not name.startswith(TABLES)
