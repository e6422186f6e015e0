"""Attention of a few rows on a GPU, against MLX's own over the same slices of a cache's buffer."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import pytest

import tiny
from slipstream.models import few_rows
from slipstream.models.cache import TargetCache


def test_elsewhere_nothing_is_covered_and_nothing_changes() -> None:
    if mx.cuda.is_available():
        pytest.skip("there is such a GPU")
    target = tiny.target()
    before = target.forward(mx.array([3, 1, 4, 1, 5]), TargetCache(target.model)).logits
    layers: Any = target.model.layers
    few_rows.open_up(layers)
    after = target.forward(mx.array([3, 1, 4, 1, 5]), TargetCache(target.model)).logits
    assert before is not None
    assert after is not None
    assert mx.array_equal(before, after)
    assert not few_rows.covers(5, mx.zeros((1, 2, 70, 64)))


@pytest.mark.device
@pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16])
@pytest.mark.parametrize("size", few_rows.HEAD_SIZES)
def test_the_kernel_gives_what_mlx_gives(size: int, dtype: mx.Dtype) -> None:
    for rows, length, batch in ((4, 4, 1), (5, 67, 1), (8, 300, 2), (16, 4096, 1)):
        shapes = ((batch, rows, 6, size), (batch, 2, 4352, size), (batch, 2, 4352, size))
        queries, keys, values = (
            mx.random.normal(shape, key=mx.random.key(seed)).astype(dtype) for seed, shape in enumerate(shapes)
        )
        queries, keys, values = queries.transpose(0, 2, 1, 3), keys[:, :, :length], values[:, :, :length]
        assert few_rows.covers(rows, keys)
        ours = few_rows.attend(queries, keys, values, size**-0.5)
        own = mx.fast.scaled_dot_product_attention(queries, keys, values, scale=size**-0.5, mask="causal")
        assert ours.shape == own.shape
        difference = mx.max(mx.abs(ours.astype(mx.float32) - own.astype(mx.float32)))
        assert float(difference) <= (1e-5 if dtype == mx.float32 else 2e-2)
