"""What a block drafter keeps of committed tokens: keys and values of each request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

import mlx.core as mx

CAPACITY_STEP = 256  # context buffers grow by so many rows


def joined(parts: Sequence[mx.array]) -> mx.array:
    """Rows of several requests one behind the other."""
    return parts[0] if len(parts) == 1 else mx.concatenate(list(parts))


def parted(rows: mx.array, widths: Sequence[int], axis: int = 0) -> list[mx.array]:
    """The way back."""
    return [rows] if len(widths) == 1 else list(mx.split(rows, list(accumulate(widths[:-1])), axis=axis))


class Context:
    """Keys and values of one request's committed tokens, every layer's, in temporal order.

    Buffers have room to spare; a block's own rows are written behind `length` and forgotten by not advancing it.
    """

    def __init__(self, layers: int, buffers: Mapping[str, mx.array] | None = None, length: int = 0) -> None:
        """`buffers`: of a context that was kept, with `length` rows in use."""
        kept = buffers or {}
        self.length = length
        self.keys = [kept.get(f"keys.{layer}") for layer in range(layers)]  # [1, kv_heads, capacity, head_dim]
        self.values = [kept.get(f"values.{layer}") for layer in range(layers)]

    def write(self, layer: int, keys: mx.array, values: mx.array, at: int | None = None) -> tuple[mx.array, mx.array]:
        """Put rows [1, kv_heads, n, head_dim] behind the context of one layer, or at a row behind its end.

        Returns the layer's whole buffers.
        """
        start = self.length if at is None else at
        end = start + keys.shape[2]
        old_keys, old_values = self.keys[layer], self.values[layer]
        if old_keys is None or old_values is None or old_keys.shape[2] < end:
            old_keys, old_values = self._grown(old_keys, keys, end), self._grown(old_values, values, end)
        old_keys[..., start:end, :] = keys
        old_values[..., start:end, :] = values
        self.keys[layer], self.values[layer] = old_keys, old_values
        return old_keys, old_values

    def layer(self, index: int) -> tuple[mx.array, mx.array]:
        """Keys and values of one layer, which has some."""
        keys, values = self.keys[index], self.values[index]
        assert keys is not None
        assert values is not None
        return keys, values

    def arrays(self) -> list[mx.array]:
        return list(self.buffers().values())

    def buffers(self) -> dict[str, mx.array]:
        named = {"keys": self.keys, "values": self.values}
        return {
            f"{kind}.{layer}": array
            for kind, arrays in named.items()
            for layer, array in enumerate(arrays)
            if array is not None
        }

    @staticmethod
    def _grown(old: mx.array | None, like: mx.array, rows: int) -> mx.array:
        capacity = -(-rows // CAPACITY_STEP) * CAPACITY_STEP
        have = 0 if old is None else old.shape[2]
        room = mx.zeros((1, like.shape[1], capacity - have, like.shape[3]), dtype=like.dtype)
        return room if old is None else mx.concatenate([old, room], axis=2)


class Rows:
    """Rows that follow each request's context, `widths` of them, one request behind the other."""

    def __init__(self, contexts: Sequence[Context], widths: Sequence[int]) -> None:
        self.contexts = contexts
        self.widths = widths
        self.offset: int | mx.array = contexts[0].length  # of the first row, or of each row
        if len(contexts) > 1:
            self.offset = mx.array(
                [context.length + at for context, width in zip(contexts, widths, strict=True) for at in range(width)],
                dtype=mx.int32,
            )

    @property
    def positions(self) -> mx.array:
        """Of each row [n]."""
        if isinstance(self.offset, int):
            return mx.arange(self.offset, self.offset + self.widths[0], dtype=mx.int32)
        return self.offset

    def part(self, heads: mx.array) -> list[mx.array]:
        """Each request's part of [1, heads, n, head_dim]."""
        return parted(heads, self.widths, axis=2)

    def write(self, layer: int, keys: mx.array, values: mx.array) -> None:
        """Put rows [1, heads, n, head_dim] behind each request's context of a layer."""
        for context, own_keys, own_values in zip(self.contexts, self.part(keys), self.part(values), strict=True):
            context.write(layer, own_keys, own_values)

    def advance(self) -> None:
        """Once every layer has its rows."""
        for context, width in zip(self.contexts, self.widths, strict=True):
            context.length += width
