"""The arithmetic of choosing tokens: truncation, position-keyed noise, and the rejection rule. Pure functions."""

from __future__ import annotations

from enum import IntEnum

import mlx.core as mx

_MASK64 = 2**64 - 1


class Salt(IntEnum):
    """Separate streams of noise for one seed and position."""

    CHOICE = 0  # the target's decision, and the draft of it
    DRAFT = 1  # rejection sampling: the drafter's own draw
    UNIFORM = 2  # rejection sampling: the coin
    RESIDUAL = 3  # rejection sampling: correction and bonus


def _key(seed: int, position: int, salt: Salt) -> tuple[int, int]:
    """64 well-mixed bits of (seed, position, salt), by two rounds of splitmix64 (Steele, Lea, Flood 2014)."""
    x = seed
    for word in (position, salt):
        x = (x + 0x9E3779B97F4A7C15 * (2 * word + 1)) & _MASK64
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK64
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK64
        x ^= x >> 31
    return x >> 32, x & 0xFFFFFFFF


def gumbel(seed: int, first: int, count: int, vocabulary: int, salt: Salt = Salt.CHOICE) -> mx.array:
    """Gumbel noise [count, vocabulary] for absolute positions first, first + 1, …: a pure function of its arguments.

    Each row comes from its own key, so it does not matter with which others it is asked for.
    """
    keys = mx.array([_key(seed, first + row, salt) for row in range(count)], dtype=mx.uint32)
    return mx.vmap(lambda key: mx.random.gumbel((vocabulary,), key=key))(keys)


def uniform(seed: int, first: int, count: int) -> mx.array:
    """One number in [0, 1) for each position [count]."""
    keys = mx.array([_key(seed, first + row, Salt.UNIFORM) for row in range(count)], dtype=mx.uint32)
    return mx.vmap(lambda key: mx.random.uniform(shape=(), key=key))(keys)


def truncate(scores: mx.array, top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0) -> mx.array:
    """Scores [rows, vocabulary] (logits over temperature) with what the request excludes at -inf.

    In this order: the top k; the nucleus, in which a token stays while the mass strictly before it is below top_p;
    at least min_p times the likeliest. Equal scores stay or go together, so the result does not depend on order.
    """
    vocabulary = scores.shape[-1]
    lowest = -mx.inf
    if 0 < top_k < vocabulary:
        kth = mx.min(mx.topk(scores, top_k, axis=-1), axis=-1, keepdims=True)
        scores = mx.where(scores >= kth, scores, lowest)
    if top_p < 1.0:
        ordered = mx.sort(scores, axis=-1)[:, ::-1]
        mass = mx.softmax(ordered, axis=-1, precise=True)
        before = mx.cumsum(mass, axis=-1) - mass
        inside = (before < top_p) | (mx.arange(vocabulary) == 0)
        threshold = mx.min(mx.where(inside, ordered, mx.inf), axis=-1, keepdims=True)
        scores = mx.where(scores >= threshold, scores, lowest)
    if min_p > 0.0:
        best = mx.max(scores, axis=-1, keepdims=True)
        scores = mx.where(scores >= best + mx.log(mx.array(min_p)), scores, lowest)
    return scores


def rejection(
    drafted: mx.array, draft_probs: mx.array, target_probs: mx.array, uniforms: mx.array
) -> tuple[mx.array, mx.array]:
    """The classic rule (Leviathan et al. 2023; Chen et al. 2023), for every position at once.

    drafted [k], draft_probs [k, V], target_probs [k + 1, V], uniforms [k].
    Returns accepted [k] (bool, each position by itself: the prefix counts) and next_probs [k + 1, V]: row n is the
    distribution of the token after n accepted drafts, the residual for n < k, the target's own for n = k.
    """
    count = drafted.shape[0]
    rows = mx.arange(count)
    target_at = target_probs[rows, drafted]
    draft_at = mx.maximum(draft_probs[rows, drafted], 1e-8)
    accepted = uniforms < mx.minimum(1.0, target_at / draft_at)
    residual = mx.maximum(target_probs[:count] - draft_probs, 0.0)
    mass = mx.sum(residual, axis=-1, keepdims=True)
    # Without mass both distributions agree up to rounding; then a draw of the target's own is right. So it is where a
    # drafter's arithmetic overflowed: nothing compares with what is no number, so the draft falls too.
    residual = mx.where(mass > 1e-8, residual / mx.maximum(mass, 1e-30), target_probs[:count])
    return accepted, mx.concatenate([residual, target_probs[count:]], axis=0)
