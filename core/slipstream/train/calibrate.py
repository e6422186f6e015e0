"""Temperatures of the confidence head, one a position, so that what it promises comes true (drafters.md §2.4)."""

from __future__ import annotations

from typing import Any

import numpy as np

GRID = np.exp(np.linspace(np.log(0.25), np.log(4.0), 61))
BINS = 20


def temperatures(confidence: Any, prefix: Any, possible: Any) -> tuple[float, ...]:
    """One after the other: each makes the chance of the whole prefix, up to its position, agree with what happened.

    `confidence` [blocks, predictions] before the sigmoid; `prefix` [blocks]: drafts right before the first wrong one;
    `possible` [blocks]: drafts that could be right. Blocks whose confidence is no number are left out.
    """
    chosen: list[float] = []
    before = np.ones(len(confidence))
    is_told = np.isfinite(confidence).all(axis=1)
    for position in range(confidence.shape[1]):
        counts = (possible > position) & is_told
        happened = (prefix > position)[counts]
        if not counts.any():
            chosen.append(1.0)
            continue
        chances = [before * sigmoid(confidence[:, position] / temperature) for temperature in GRID]
        errors = [calibration_error(chance[counts], happened) for chance in chances]
        best = int(np.argmin(errors))
        chosen.append(round(float(GRID[best]), 4))
        before = chances[best]
    return tuple(chosen)


def calibration_error(chance: Any, happened: Any) -> float:
    """Expected calibration error over bins of equal width."""
    bins = np.minimum((chance * BINS).astype(int), BINS - 1)
    error = 0.0
    for index in range(BINS):
        inside = bins == index
        if inside.any():
            error += inside.mean() * abs(chance[inside].mean() - happened[inside].mean())
    return float(error)


def sigmoid(values: Any) -> Any:
    return 1 / (1 + np.exp(-values))
