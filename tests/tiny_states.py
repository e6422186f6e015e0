"""What a target's cache remembers, to compare two that should remember the same."""

from __future__ import annotations

import mlx.core as mx
from mlx_lm.models.cache import ArraysCache, KVCache

from slipstream.models import backend
from slipstream.models.cache import TargetCache, WindowCache


def arrays(cache: TargetCache) -> list[mx.array | None]:
    """All that a later forward can read."""
    out: list[mx.array | None] = []
    for layer in cache.layers:
        if isinstance(layer, ArraysCache):
            out += layer.cache
            continue
        assert isinstance(layer, KVCache)
        is_window = isinstance(layer, WindowCache)
        end = layer.offset - (layer.dropped if is_window else 0)
        assert layer.keys is not None
        assert layer.values is not None
        start = max(0, end - layer.window + 1) if is_window else 0
        out += [layer.keys[..., start:end, :], layer.values[..., start:end, :]]
    return out


def same(ours: mx.array | None, theirs: mx.array | None) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    if backend._loaded is not None:  # another BLAS: rows depend on how many are computed together
        return bool(mx.allclose(ours, theirs, atol=1e-3, rtol=1e-3).item())
    return bool(mx.array_equal(ours, theirs).item())


def all_same(ours: TargetCache, theirs: TargetCache) -> bool:
    """Whether two caches hold the same, looked at once."""
    pairs = list(zip(arrays(ours), arrays(theirs), strict=True))
    if backend._loaded is not None or any(one is None or other is None for one, other in pairs):
        return all(same(one, other) for one, other in pairs)
    equal = mx.stack([mx.array_equal(one, other) for one, other in pairs if one is not None and other is not None])
    return bool(mx.all(equal).item())
