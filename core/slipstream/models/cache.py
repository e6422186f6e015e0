"""The target's KV cache: one object over mlx-lm's per-layer caches that can go back to any earlier length."""

from __future__ import annotations

from typing import Any

import mlx.nn as nn
from mlx_lm.models import cache as mlx_caches

from slipstream.errors import InvalidRequest


class WindowCache(mlx_caches.KVCache):
    """A sliding-window layer's cache that keeps every row and hides the old ones by the mask.

    mlx-lm's RotatingKVCache overwrites rows, so a rejected draft could not be taken back. This costs memory at
    contexts beyond the window and nothing else.
    """

    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = window

    def make_mask(self, N: int, return_array: bool = False, window_size: int | None = None) -> Any:  # noqa: N803
        return mlx_caches.create_attention_mask(
            N, offset=self.offset, return_array=return_array, window_size=window_size or self.window
        )


class TargetCache:
    """What the target remembers of one request. `length` rows; `rewind` drops the newest."""

    def __init__(self, model: nn.Module, kv_bits: int = 0) -> None:
        self.layers: list[Any] = [_rewindable(layer, kv_bits) for layer in mlx_caches.make_prompt_cache(model)]
        self.length = 0

    @property
    def fixed_kinds(self) -> tuple[str, ...]:
        """Kinds of cache here that cannot go back: with any of them, nothing may be drafted."""
        return tuple(sorted({type(layer).__name__ for layer in self.layers if not layer.is_trimmable()}))

    def advance(self, rows: int) -> None:
        """Told by the target after a forward of `rows` tokens."""
        self.length += rows

    def rewind(self, length: int) -> None:
        """Keep the first `length` rows."""
        assert 0 <= length <= self.length
        surplus = self.length - length
        if surplus:
            for layer in self.layers:
                layer.trim(surplus)
        self.length = length

    @property
    def state(self) -> list[Any]:
        """Every array, to be evaluated between prefill chunks."""
        return [layer.state for layer in self.layers if not layer.empty()]

    @property
    def bytes(self) -> int:
        return sum(layer.nbytes for layer in self.layers if not layer.empty())


def _rewindable(layer: Any, kv_bits: int) -> Any:
    if isinstance(layer, mlx_caches.RotatingKVCache) and layer.keep == 0:
        layer = WindowCache(layer.max_size)
    if not kv_bits:
        return layer
    if type(layer) is not mlx_caches.KVCache:
        raise InvalidRequest(
            f"--kv-bits does not work with this model: it has {type(layer).__name__} layers; use --kv-bits 0"
        )
    return mlx_caches.QuantizedKVCache(group_size=KV_GROUP, bits=kv_bits)


KV_GROUP = 32  # divides every head size that mlx-lm's families have
