from __future__ import annotations

import mlx.core as mx
import pytest
from mlx_lm.models.base import create_attention_mask
from mlx_lm.models.cache import KVCache

import tiny
from slipstream.models.cache import TargetCache
from slipstream.models.in_place import InPlaceCache


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 8])
def test_a_mask_made_once_gives_what_the_layers_own_would(rows: int) -> None:
    """What CUDA's caches do (here run on the CPU): the same keys, values and logits, whoever makes the mask."""
    target = tiny.target()
    logits: list[mx.array] = []
    for kind in (KVCache, InPlaceCache):
        cache = TargetCache(target.model)
        cache.layers = [kind() for _ in cache.layers]
        target.forward(mx.array([3, 1, 4, 1, 5]), cache)
        found = target.forward(mx.array(list(range(rows))), cache).logits
        assert found is not None
        logits.append(found)
        mask = create_attention_mask(mx.zeros((1, rows, 8)), cache.layers[0])
        assert isinstance(mask, mx.array) == (kind is InPlaceCache and rows > 3)
    assert mx.array_equal(logits[0], logits[1])
