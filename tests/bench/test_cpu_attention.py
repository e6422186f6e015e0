"""Attention by numpy against mlx-lm's own, over plain and packed keys and values."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import pytest
from mlx_lm.models.base import scaled_dot_product_attention

from bench.cpu_attention import LEAST_ROWS, ROWS, attention
from slipstream.models.cache import QuantisedCache
from slipstream.models.host import number

BEFORE = 70  # tokens in the cache
CAUSAL: Any = "causal"  # mlx-lm's annotation knows arrays alone


@pytest.mark.parametrize("rows", [LEAST_ROWS - 1, LEAST_ROWS, 2 * ROWS + 5])
@pytest.mark.parametrize("bits", [0, 4, 8])
def test_it_says_what_mlx_says(rows: int, bits: int) -> None:
    keys, values = mx.random.normal((2, 1, 3, BEFORE + rows, 64), key=mx.random.key(1))
    queries = mx.random.normal((1, 9, rows, 64), key=mx.random.key(2))
    cache = QuantisedCache(bits) if bits else None
    if cache is not None:
        keys, values = cache.update_and_fetch(keys, values)
    copy = queries[:]  # mlx-lm scales packed attention's queries where they stand
    expected = scaled_dot_product_attention(copy, keys, values, cache, scale=0.125, mask=CAUSAL)
    found = attention(queries, keys, values, cache=cache, scale=0.125, mask=CAUSAL)
    assert number(mx.max(mx.abs(found - expected))) < 1e-5
