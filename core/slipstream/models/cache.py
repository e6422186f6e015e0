"""The target's cache: one object over mlx-lm's per-layer caches that can go back to an earlier length."""

from __future__ import annotations

from copy import copy
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_map
from mlx_lm.models import cache as mlx_caches
from mlx_lm.models.base import create_causal_mask

from slipstream.errors import InvalidRequest
from slipstream.models.in_place import InPlaceCache, Pending
from slipstream.models.recurrence import StateCache

ROUND = 64  # rows of the longest forward that can be taken back where that costs memory
# Values that share a scale and an offset where keys and values are packed: the first that divides both head sizes. The
# last divides every one that mlx-lm's families have.
KV_GROUPS = (64, 32)


class QuantisedCache(mlx_caches.QuantizedKVCache):
    """Keys and values in few bits, in the largest groups that heads divide into: each has a scale and an offset."""

    def __init__(self, bits: int) -> None:
        super().__init__(group_size=KV_GROUPS[-1], bits=bits)

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> Any:
        if self.empty():
            sizes = (keys.shape[-1], values.shape[-1])
            self.group_size = next(group for group in KV_GROUPS if not any(size % group for size in sizes))
        return super().update_and_fetch(keys, values)

    def put(self, keys: list[mx.array], values: list[mx.array], rows: int) -> None:
        """Begin from arrays that were kept."""
        self.keys, self.values, self.offset = keys, values, rows
        packed, scales, _ = keys
        self.group_size = packed.shape[-1] * (32 // self.bits) // scales.shape[-1]


class WindowCache(mlx_caches.KVCache):
    """A sliding-window layer's keys and values in temporal order, with the rows a round may still give back.

    mlx-lm's RotatingKVCache overwrites the row that leaves the window, so a rejected draft could not be taken back.
    Here the window slides along a buffer that is moved to its front when it runs full.
    """

    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = window
        self.dropped = 0  # rows before the buffer's first

    @property
    def reach(self) -> int:
        """How many rows can be taken back: after that the window before must still be whole."""
        return self.offset - (self.dropped + self.window - 1 if self.dropped else 0)

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        """The rows that the new ones can see: the window before the first of them, and themselves."""
        rows = keys.shape[2]
        start = self.offset - self.dropped
        capacity = 0 if self.empty() else self.keys.shape[2]
        if start + rows > capacity:
            start = self._make_room(start, rows, keys, values)
        end = start + rows
        self.keys[..., start:end, :] = keys
        self.values[..., start:end, :] = values
        self.offset += rows
        seen = slice(max(0, start - self.window + 1), end)
        return self.keys[..., seen, :], self.values[..., seen, :]

    def _make_room(self, start: int, rows: int, keys: mx.array, values: mx.array) -> int:
        """Drop what no row can see any more, and grow to a multiple of `step`. Returns where the next row goes."""
        drop = max(0, start - (self.window - 1 + ROUND))
        capacity = -(-(start - drop + rows) // self.step) * self.step

        def moved(old: mx.array | None, new: mx.array) -> mx.array:
            kept = new[..., :0, :] if old is None else old[..., drop:start, :]
            room = mx.zeros((*new.shape[:2], capacity - kept.shape[2], new.shape[3]), dtype=new.dtype)
            return mx.concatenate([kept, room], axis=2)

        self.keys, self.values = moved(self.keys, keys), moved(self.values, values)
        self.dropped += drop
        return start - drop

    def trim(self, n: int) -> int:
        assert n <= self.reach
        self.offset -= n
        return n

    def make_mask(self, N: int, return_array: bool = False, window_size: int | None = None) -> Any:  # noqa: N803
        window = min(window_size or self.window, self.window)
        before = min(self.offset, self.window - 1)  # rows that `update_and_fetch` will return in front of the new ones
        if N == 1 and before < window:
            return None
        if not return_array and before + N <= window:
            return "causal"
        return create_causal_mask(N, before, window_size=window)


_FREE = (mlx_caches.KVCache, InPlaceCache, QuantisedCache)  # can go back to any length


class ChunkCache(mlx_caches.ChunkedKVCache):
    """A chunked layer's cache that keeps the front rows its mask hides, to be able to go back over a chunk's border."""

    def maybe_trim_front(self) -> None:
        pass


class TargetCache:
    """What the target remembers of one request: `length` rows.

    `rewind` goes back to any length from `floor` on. Keys and values can go back to nothing, windows about as far as
    they look, recurrent states to the start of the last forward, if that was a round's.
    """

    def __init__(self, model: nn.Module, kv_bits: int = 0) -> None:
        self.layers: list[Any] = [_rewindable(layer, kv_bits) for layer in mlx_caches.make_prompt_cache(model)]
        if kv_bits and not any(isinstance(layer, QuantisedCache) for layer in _flat(self.layers)):
            kinds = ", ".join(sorted({type(layer).__name__ for layer in self.layers}))
            raise InvalidRequest(
                f"--kv-bits does not work with this model: it has only {kinds} layers; use --kv-bits 0"
            )
        self.length = 0
        self._sort()

    def _sort(self) -> None:
        """Remember which layers a round has to ask anything: most are plain rows, which can always go back."""
        self._states = [layer for layer in _flat(self.layers) if isinstance(layer, StateCache)]
        self._bound = [layer for layer in self.layers if type(layer) not in _FREE]
        self.is_in_place = all(type(layer) is InPlaceCache for layer in self.layers)
        self._pending = Pending()
        if self.is_in_place:
            for layer in self.layers:
                layer.pending = self._pending

    @property
    def floor(self) -> int:
        """The least length that `rewind` reaches now."""
        return max(0, self.length - min((_reach(layer) for layer in self._bound), default=self.length))

    @property
    def fixed_kinds(self) -> tuple[str, ...]:
        """Kinds of mlx-lm's caches here that cannot go back at all, once a round has been run."""
        return tuple(sorted({_kind(layer) for layer in _flat(self.layers) if not layer.is_trimmable()}))

    @property
    def state_kinds(self) -> tuple[str, ...]:
        """Kinds of mlx-lm's caches here that hold a recurrent state."""
        return tuple(sorted({_kind(layer) for layer in _flat(self.layers) if isinstance(layer, StateCache)}))

    def start(self, rows: int, *, noted: bool) -> None:
        """Told by the target before a forward of `rows` tokens. Only a noted one can be taken back in every layer."""
        for layer in self._states:
            layer.start(rows, noted=noted)

    def advance(self, rows: int) -> None:
        """Told by the target after it."""
        self.length += rows

    def buffers(self, rows: int) -> list[tuple[mx.array, mx.array]]:
        """Each layer's keys and values with room for `rows` more, for a kernel to write. Needs `is_in_place`."""
        self._pending.settle()
        made = self._pending.buffers
        if made is None or made[0][0].shape[2] < self.length + rows:
            made = self._pending.buffers = [layer.buffers(rows) for layer in self.layers]
        return made

    def like_buffers(self, rows: int) -> list[tuple[mx.array, mx.array]]:
        """The same in shape and type alone: nothing is copied."""
        return [layer.like_buffers(rows) for layer in self.layers]

    def written(self, rows: int, result: mx.array) -> None:
        """Told after a pass that wrote them, and which lazy array comes from it."""
        self._pending.result = result
        for layer in self.layers:
            layer.offset += rows
        self.length += rows

    def rewind(self, length: int) -> None:
        """Keep the first `length` rows."""
        assert self.floor <= length <= self.length
        surplus = self.length - length
        if surplus:
            for layer in self.layers:
                layer.trim(surplus)
        self.length = length

    def fork(self) -> TargetCache:
        """A second cache with the same rows, which goes its own way from here. Shares memory until either writes."""
        twin = copy(self)
        twin.layers = [_copied(layer) for layer in self.layers]
        twin._sort()
        return twin

    @property
    def state(self) -> list[Any]:
        """Every array, to be evaluated between prefill chunks."""
        return [
            layer.lazy if isinstance(layer, InPlaceCache) else layer.state for layer in self.layers if not layer.empty()
        ]

    @property
    def bytes(self) -> int:
        return sum(layer.nbytes for layer in self.layers if not layer.empty())


def _rewindable(layer: Any, kv_bits: int) -> Any:
    """Our stand-in for one of mlx-lm's caches, where that cannot go back."""
    if isinstance(layer, mlx_caches.CacheList):
        return mlx_caches.CacheList(*(_rewindable(part, kv_bits) for part in layer.caches))
    if isinstance(layer, mlx_caches.RotatingKVCache) and layer.keep == 0:
        return WindowCache(layer.max_size)
    if isinstance(layer, mlx_caches.ChunkedKVCache):
        return ChunkCache(layer.chunk_size)
    if type(layer) is mlx_caches.ArraysCache:
        return StateCache(len(layer.cache))
    if kv_bits and type(layer) is mlx_caches.KVCache:
        # Windows and states do not grow with the context, so packing them would save little.
        return QuantisedCache(kv_bits)
    return InPlaceCache() if type(layer) is mlx_caches.KVCache and mx.cuda.is_available() else layer


def _flat(layers: list[Any]) -> list[Any]:
    return [
        part for layer in layers for part in (layer.caches if isinstance(layer, mlx_caches.CacheList) else (layer,))
    ]


def _kind(layer: Any) -> str:
    return mlx_caches.ArraysCache.__name__ if isinstance(layer, StateCache) else type(layer).__name__


def _reach(layer: Any) -> int:
    """How many rows a layer can give back."""
    if isinstance(layer, mlx_caches.CacheList):
        return min(_reach(part) for part in layer.caches)
    if isinstance(layer, StateCache | WindowCache):
        return layer.reach
    if layer.empty():
        return 0
    return layer.offset if layer.is_trimmable() else 0


def _copied(layer: Any) -> Any:
    if isinstance(layer, mlx_caches.CacheList):
        return mlx_caches.CacheList(*(_copied(part) for part in layer.caches))
    if isinstance(layer, StateCache):
        return layer.copied()
    twin = copy(layer)
    for name in ("keys", "values"):  # written into in place, so each cache needs arrays of its own
        if (rows := getattr(layer, name, None)) is not None:
            setattr(twin, name, tree_map(lambda array: array[:], rows))
    return twin
