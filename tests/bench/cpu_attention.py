"""Attention of long chunks of a prompt on a processor, some five times as fast as MLX's there. For benchmarks alone.

MLX takes exponents one number at a time on x86, and multiplies packed keys row by row: reading 16,000 tokens would take
hours. What comes out is the same but for the order of sums; rounds of decoding are left to MLX.
"""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np
from mlx_lm.models import llama

LEAST_ROWS = 32  # of a chunk that is read here: a round of decoding has fewer
ROWS = 48  # at a time, so that their scores stay in the processor's cache

NAME = "scaled_dot_product_attention"  # by which a model's file calls it

_own: Any = vars(llama)[NAME]


def install() -> None:
    """For models of mlx-lm's `llama` file, such as the built-in one."""
    setattr(llama, NAME, attention)


def attention(
    queries: mx.array, keys: Any, values: Any, cache: Any, scale: float, mask: Any, sinks: Any = None
) -> mx.array:
    """Queries [1, heads, rows, size]; keys and values [1, kv_heads, tokens, size], or these packed."""
    rows = queries.shape[2]
    if rows < LEAST_ROWS or mask != "causal":
        return _own(queries, keys, values, cache=cache, scale=scale, mask=mask, sinks=sinks)
    if hasattr(cache, "bits"):
        packing: dict[str, Any] = {"group_size": cache.group_size, "bits": cache.bits}
        keys, values = (mx.dequantize(*each, **packing) for each in (keys, values))
    wanted, known, told = (np.asarray(each[0]) for each in (queries, keys, values))
    before, share = known.shape[1] - rows, len(wanted) // len(known)
    out = np.empty_like(wanted)
    room = np.empty(ROWS * known.shape[1], np.float32)
    for head, query in enumerate(wanted):
        key, value = known[head // share], told[head // share]
        for first in range(0, rows, ROWS):
            last = min(first + ROWS, rows)
            seen = before + last
            scores = room[: (last - first) * seen].reshape(-1, seen)
            np.matmul(query[first:last], key[:seen].T, out=scores)
            scores *= scale
            scores[:, before + first :][np.triu_indices(last - first, 1)] = -np.inf
            scores -= scores.max(axis=1, keepdims=True)
            np.exp(scores, out=scores)
            np.matmul(scores, value[:seen], out=out[head, first:last])
            out[head, first:last] /= scores.sum(axis=1, keepdims=True)
    return mx.array(out[None])
