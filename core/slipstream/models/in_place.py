"""A layer's keys and values on NVIDIA GPUs, which one kernel may write into while it attends (`fused_kernels.attend`).

MLX's arrays are values: whoever holds one may rely on it. So the kernel writes only into arrays that nobody else has,
and whoever asks for them gets them evaluated, and makes the next pass of the kernel begin with a copy of its own.
"""

from __future__ import annotations

from typing import Any

import mlx.core as mx
from mlx_lm.models import cache as mlx_caches

from slipstream.models import few_rows

MASKED = range(4, 65)  # rows of a round for which MLX needs a mask as an array
LEAST = 512  # rows of arrays of our own, which double when they are full: each capacity is a graph of its own


class Pending:
    """What the last pass that wrote into caches returned: once it is evaluated, they are written.

    `buffers`: of all layers, as long as nobody else was handed any of them.
    """

    __slots__ = ("buffers", "result")

    def __init__(self) -> None:
        self.result: mx.array | None = None
        self.buffers: list[tuple[mx.array, mx.array]] | None = None

    def settle(self) -> None:
        if self.result is not None:
            mx.eval(self.result)
            self.result = None


class InPlaceCache(mlx_caches.KVCache):
    """Keys and values [1, heads, capacity, size] of one layer.

    Its causal mask is made once for all layers, where every layer would make it again. MLX's CUDA attention has a
    kernel of its own for up to three rows; more are put together from simpler operations, among them the mask's. On an
    H200 those were an eighth of the operations of a round. `few_rows` needs no mask.
    """

    def __init__(self) -> None:
        self.pending = Pending()  # one for all layers of a cache: `TargetCache`
        self._own = False  # whether nobody else has the arrays
        self._keys: mx.array | None = None
        self._values: mx.array | None = None
        super().__init__()

    def _given(self, array: mx.array | None) -> Any:
        self.pending.settle()
        self._hand_out()
        return array

    def _hand_out(self) -> None:
        self._own = False
        self.pending.buffers = None

    @property
    def keys(self) -> Any:
        return self._given(self._keys)

    @keys.setter
    def keys(self, keys: mx.array | None) -> None:
        self._keys = keys
        self._hand_out()

    @property
    def values(self) -> Any:
        return self._given(self._values)

    @values.setter
    def values(self, values: mx.array | None) -> None:
        self._values = values
        self._hand_out()

    def buffers(self, rows: int) -> tuple[mx.array, mx.array]:
        """Keys and values of its own, with room for `rows` more, to be written into."""
        assert self._keys is not None
        assert self._values is not None
        capacity = self._capacity(rows)
        if not self._own or capacity > self._keys.shape[2]:
            self.pending.settle()
            self._keys, self._values = (self._copied(array, capacity) for array in (self._keys, self._values))
            self._own = True
        return self._keys, self._values

    def like_buffers(self, rows: int) -> tuple[mx.array, mx.array]:
        """What `buffers` will return, in shape and type alone."""
        assert self._keys is not None
        assert self._values is not None
        capacity = self._capacity(rows)
        keys, values = (
            mx.zeros((*each.shape[:2], capacity, each.shape[3]), dtype=each.dtype)
            for each in (self._keys, self._values)
        )
        return keys, values

    def _capacity(self, rows: int) -> int:
        end = self.offset + rows
        if self._own and self._keys is not None and end <= self._keys.shape[2]:
            return self._keys.shape[2]
        return max(LEAST, 1 << (end - 1).bit_length())

    def _copied(self, array: mx.array, capacity: int) -> mx.array:
        room = mx.zeros((*array.shape[:2], capacity - self.offset, array.shape[3]), dtype=array.dtype)
        return mx.concatenate([array[:, :, : self.offset], room], axis=2)

    @property
    def lazy(self) -> list[mx.array]:
        """What has to be evaluated for it to be whole. To be looked at by nobody else."""
        return [each for each in (self._keys, self._values, self.pending.result) if each is not None]

    def empty(self) -> bool:
        return self._keys is None

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in (self._keys, self._values) if each is not None)

    def make_mask(self, N: int, return_array: bool = False, window_size: int | None = None) -> Any:  # noqa: N803
        made = return_array or (N in MASKED and not few_rows.covers(N, self._keys))
        return super().make_mask(N, return_array=made, window_size=window_size)
