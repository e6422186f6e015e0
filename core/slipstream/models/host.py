"""Evaluated arrays as Python values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import mlx.core as mx


def ints(array: mx.array) -> list[int]:
    return cast(list[int], array.tolist())


def floats(array: mx.array) -> list[float]:
    return cast(list[float], array.tolist())


def rows(array: mx.array) -> list[list[Any]]:
    """A matrix; Any: ids or numbers, as the array has."""
    return cast(list[list[Any]], array.tolist())


def number(array: mx.array) -> float:
    return float(cast(float, array.item()))


def worst(differences: Sequence[float]) -> float:
    """The largest, or NaN where any is: `max` leaves it out, since it compares with nothing."""
    return math.nan if any(math.isnan(each) for each in differences) else max(differences)
