from __future__ import annotations

import math

import mlx.core as mx
import numpy as np
import pytest

from slipstream.engine.sampling import Salt, gumbel, rejection, truncate, uniform
from slipstream.types import MAX_SEED


def test_noise_depends_on_seed_and_position_alone() -> None:
    whole = gumbel(7, 100, 9, 50)
    for first, count in ((100, 1), (103, 1), (104, 5), (100, 3)):
        assert mx.array_equal(gumbel(7, first, count, 50), whole[first - 100 : first - 100 + count])
    assert mx.array_equal(uniform(7, 5, 9)[3:4], uniform(7, 8, 1))


def test_seeds_positions_and_streams_have_noise_of_their_own() -> None:
    rows = [
        gumbel(seed, position, 1, 64, salt)
        for seed in (0, 1, 2**32, MAX_SEED)
        for position in (0, 1, 2, 5000)
        for salt in (Salt.CHOICE, Salt.DRAFT, Salt.RESIDUAL)
    ]
    table = np.array(mx.concatenate(rows))
    assert len(np.unique(table, axis=0)) == len(rows)
    correlation = np.corrcoef(table)
    assert np.abs(correlation - np.eye(len(rows))).max() < 0.6


def test_noise_has_the_moments_of_gumbel() -> None:
    noise = np.array(gumbel(3, 0, 400, 500))
    assert np.isfinite(noise).all()
    assert noise.mean() == pytest.approx(np.euler_gamma, abs=0.01)
    assert noise.var() == pytest.approx(math.pi**2 / 6, abs=0.02)
    # One token's noise over positions, and one position's over tokens, are as independent as the rest.
    assert noise.mean(axis=0).std() == pytest.approx(math.pi / math.sqrt(6 * 400), rel=0.15)
    assert noise.mean(axis=1).std() == pytest.approx(math.pi / math.sqrt(6 * 500), rel=0.15)


def test_coins_are_uniform() -> None:
    coins = np.array(uniform(3, 0, 4000))
    assert ((coins >= 0) & (coins < 1)).all()
    assert coins.mean() == pytest.approx(0.5, abs=0.02)
    assert coins.var() == pytest.approx(1 / 12, abs=0.005)


def slow_truncate(scores: np.ndarray, top_k: int, top_p: float, min_p: float) -> np.ndarray:
    """One row, by the words of `truncate`'s promise."""
    kept = np.ones(len(scores), dtype=bool)
    if top_k:
        kept &= np.array([np.sum(scores > score) < top_k for score in scores])
    if top_p < 1:
        inside = np.where(kept, scores.astype(np.float64), -np.inf)
        mass = np.exp(inside - inside.max())
        mass /= mass.sum()
        kept &= np.array([mass[inside > score].sum() < top_p or score == inside.max() for score in inside])
    if min_p > 0:
        kept &= scores >= scores[kept].max() + math.log(min_p)
    return np.where(kept, scores, -np.inf)


@pytest.mark.parametrize("top_k", [0, 1, 3, 10, 40, 99])
@pytest.mark.parametrize("top_p", [1.0, 0.93, 0.5, 0.0])
@pytest.mark.parametrize("min_p", [0.0, 0.07, 1.0])
def test_truncation_matches_a_slow_reference(top_k: int, top_p: float, min_p: float) -> None:
    rng = np.random.default_rng(top_k)
    smooth = rng.normal(size=(4, 40)) * 2
    tied = np.round(smooth)  # many equal scores
    scores = np.concatenate([smooth, tied]).astype(np.float32)
    ours = np.array(truncate(mx.array(scores), top_k, top_p, min_p))
    expected = np.stack([slow_truncate(row, top_k, top_p, min_p) for row in scores])
    np.testing.assert_array_equal(ours, expected)


def test_truncation_does_not_depend_on_the_order_of_tokens() -> None:
    scores = mx.array(np.round(np.random.default_rng(1).normal(size=(1, 40)) * 2), dtype=mx.float32)
    order = mx.array(np.random.default_rng(2).permutation(40))
    direct = truncate(scores, 7, 0.8, 0.02)
    assert mx.array_equal(truncate(scores[:, order], 7, 0.8, 0.02), direct[:, order])


def test_something_always_stays() -> None:
    for row in ([0.0, 0.0, 0.0], [0.0, -1e9, -1e30], [0.0, -math.inf, -math.inf]):
        for top_k, top_p, min_p in ((1, 0.0, 1.0), (0, 1e-30, 0.0), (0, 1.0, 1.0), (3, 0.0, 0.0)):
            kept = truncate(mx.array([row]), top_k, top_p, min_p)
            assert mx.max(kept).item() == 0.0


def test_rejection_without_residual_mass_draws_from_the_target() -> None:
    probs = mx.array([[0.5, 0.5]])
    accepted, following = rejection(mx.array([0]), probs, mx.concatenate([probs, probs]), mx.array([0.999]))
    assert accepted.tolist() == [True]
    assert following.tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_rejection_of_a_drafter_that_overflowed_draws_from_the_target() -> None:
    void, own = mx.full((1, 2), math.nan), mx.array([[0.75, 0.25], [1.0, 0.0]])
    accepted, following = rejection(mx.array([0]), void, own, mx.array([0.0]))
    assert accepted.tolist() == [False]
    assert following.tolist() == own.tolist()


def test_rejection_of_a_draft_the_drafter_held_impossible() -> None:
    """Its own probability is zero: no division by it, and the target's share decides."""
    draft, own = mx.array([[0.0, 1.0]]), mx.array([[1.0, 0.0], [1.0, 0.0]])
    accepted, following = rejection(mx.array([0]), draft, own, mx.array([0.5]))
    assert accepted.tolist() == [True]
    assert following[0].tolist() == [1.0, 0.0]
