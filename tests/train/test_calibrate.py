"""Temperatures of confidences, fitted to what was kept, and the check whether they come true."""

from __future__ import annotations

import math

import numpy as np
import pytest

from slipstream.train.calibrate import sigmoid, temperatures
from slipstream.train.evaluate import calibration

BLOCKS, PREDICTIONS = 4000, 3


def drafts() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Confidences that promise twice as much, before the sigmoid, as comes true; and what came."""
    chance = np.random.default_rng(1)
    honest = chance.normal(1.0, 1.0, (BLOCKS, PREDICTIONS))
    kept = chance.random((BLOCKS, PREDICTIONS)) < sigmoid(honest)
    return 2 * honest, np.cumprod(kept, axis=1).sum(axis=1), np.full(BLOCKS, PREDICTIONS)


def test_temperatures_make_confidences_come_true() -> None:
    assert temperatures(*drafts()) == pytest.approx((2.0,) * PREDICTIONS, rel=0.15)


def test_confidences_that_are_no_numbers_change_no_temperature() -> None:
    confidence, prefix, possible = drafts()
    void = np.full((50, PREDICTIONS), 1.0)
    void[:, 1] = math.nan
    with_void = np.concatenate([confidence, void])
    fitted = temperatures(with_void, np.append(prefix, [0] * 50), np.append(possible, [PREDICTIONS] * 50))
    assert fitted == temperatures(confidence, prefix, possible)
    assert temperatures(void, np.zeros(50), np.full(50, PREDICTIONS)) == (1.0,) * PREDICTIONS


def test_rounds_without_numbers_are_not_judged() -> None:
    promises = [((0.9, 0.5), 1)] * 5
    assert calibration([*promises, ((0.9, math.nan), 0)]) == calibration(promises)
