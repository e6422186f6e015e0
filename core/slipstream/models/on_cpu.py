"""What makes a model quick on a CPU whose products go through OpenBLAS. A Mac never comes here: its GPU does the work.

Nothing of it changes what is computed, except in the last digits: weights lie as OpenBLAS reads them, rotations come
from tables, and exponentials from `expm1`, which MLX takes from the C library: its own `exp` takes five times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, wraps
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from slipstream.models import backend
from slipstream.models.packed import ATTENTION

GATE = "swiglu"  # the name under which mlx-lm's model files call it
POSITIONS = 1024  # a table of rotations grows by so many at a time


def is_ours() -> bool:
    """Whether products go through OpenBLAS."""
    return mx.default_device() == mx.cpu and backend.openblas() is not None


def prepare(modules: Iterable[nn.Module], head: nn.Module | None = None) -> None:
    """Make the layers of a model quick, in place. `head`: its output head, which may be the embedding."""
    modules = list(modules)
    lay_out(modules)
    if isinstance(head, nn.Linear | nn.Embedding):
        head.weight = turned(head.weight)
    turn_by_tables(modules)
    for part in (part for module in modules for part in module.children().values() if isinstance(part, nn.Module)):
        file = type(part).__call__.__globals__
        _wrap(file, ATTENTION, _attention)
        _wrap(file, GATE, _gate)


def lay_out(modules: Iterable[nn.Module]) -> None:
    """Keep every plain weight [outputs, inputs] of modules and their parts column by column.

    So a few rows meet it. Row by row, OpenBLAS copies the weight into that order first, with every product anew: passes
    of one and of eight rows of SmolLM2-135M took 1.2 and 1.3 times as long.
    """
    for module in modules:
        for _, part in module.named_modules():
            if isinstance(part, nn.Linear):
                part.weight = turned(part.weight)


def turned(weight: mx.array) -> mx.array:
    """The same matrix, column by column in memory."""
    weight = mx.contiguous(weight.T).T
    mx.eval(weight)
    return weight


class Rotation(nn.Module):
    """`nn.RoPE` of whole heads from tables of cosines and sines, which MLX computes anew in each call."""

    def __init__(self, plain: nn.RoPE, tables: Tables) -> None:
        super().__init__()
        self._plain = plain.__call__  # not the module: it would be found as a part, and taught to take packed rows too
        self._size = plain.dims
        self._tables = tables

    def __call__(self, x: mx.array, offset: Any = 0) -> mx.array:
        """Turn heads [batch, heads, rows, size], the first row of them at position `offset`."""
        rows, size = x.shape[-2:]
        if not isinstance(offset, int) or size != self._size or x.dtype != mx.float32:
            return self._plain(x, offset=offset)
        cosines, sines = self._tables.rows(offset, rows)
        half = size // 2
        return x * cosines + mx.concatenate([x[..., half:], x[..., :half]], axis=-1) * sines


class Tables:
    """Cosines and sines [positions, size] of one rotation; a head's first half has the sine's other sign."""

    def __init__(self, dims: int, base: float, scale: float) -> None:
        self._dims, self._base, self._scale = dims, base, scale
        self._whole = self._made(POSITIONS)
        self._last: tuple[int, int] | None = None
        self._part = self._whole

    def rows(self, offset: int, rows: int) -> tuple[mx.array, mx.array]:
        """Of positions from `offset` on: made once for all layers of a pass."""
        if self._last != (offset, rows):
            end = offset + rows
            if end > self._whole[0].shape[0]:
                self._whole = self._made(-(-end // POSITIONS) * POSITIONS)
            cosines, sines = self._whole
            self._part = cosines[offset:end], sines[offset:end]
            self._last = offset, rows
        return self._part

    def _made(self, positions: int) -> tuple[mx.array, mx.array]:
        half = self._dims // 2
        frequencies = mx.exp(-mx.arange(half) * (mx.log(mx.array(self._base)) / half))
        angles = (mx.arange(positions) * self._scale)[:, None] * frequencies
        cosines, sines = mx.cos(angles), mx.sin(angles)
        tables = mx.concatenate([cosines, cosines], axis=-1), mx.concatenate([-sines, sines], axis=-1)
        mx.eval(tables)
        return tables


def turn_by_tables(modules: Sequence[nn.Module]) -> None:
    """Put a `Rotation` where modules or their parts keep a plain `nn.RoPE`. Equal ones share their tables."""
    made: dict[tuple[int, float, float], Tables] = {}
    for parent in [parent for module in modules for _, parent in module.named_modules()]:
        for name, part in parent.children().items():
            if type(part) is nn.RoPE and not part.traditional:
                kind = part.dims, part.base, part.scale
                if kind not in made:
                    made[kind] = Tables(*kind)
                setattr(parent, name, Rotation(part, made[kind]))


def silu(x: mx.array) -> mx.array:
    """x / (1 + exp(-x))."""
    return x / (mx.expm1(-x) + 2)


def attend(queries: mx.array, keys: mx.array, values: mx.array, scale: float, mask: mx.array | str | None) -> mx.array:
    """Attention of float32 heads, as `mx.fast.scaled_dot_product_attention` gives it.

    Queries [batch, heads, rows, size] and keys and values [batch, kv heads, keys, size]. The mask is bool or added,
    [rows, keys] or with heads and batch in front, or "causal". An exponential is the square of that of its half: what
    `expm1` loses to the rounding of one is small beside that, so that small weights keep most of their digits.
    """
    batch, heads, rows, size = queries.shape
    groups, count = keys.shape[1:3]
    shared = heads // groups
    own = (queries * (scale / 2)).reshape(batch, groups, shared * rows, size)
    halves = own @ keys.swapaxes(-1, -2)
    if mask is not None and not (rows == 1 and isinstance(mask, str)):
        added = _causal(rows, count) if isinstance(mask, str) else _added(mask) / 2
        each = halves.reshape(batch, groups, shared, rows, count)
        if added.ndim > 2:
            texts = added.shape[0] if added.ndim > 3 else 1
            added = added.reshape(texts, *_grouped(added.shape[-3], groups), *added.shape[-2:])
        halves = (each + added).reshape(halves.shape)
    weights = mx.square(mx.expm1(halves - mx.max(halves, axis=-1, keepdims=True)) + 1)
    out = (weights @ values) / mx.sum(weights, axis=-1, keepdims=True)
    return out.reshape(batch, heads, rows, values.shape[-1])


def _grouped(heads: int, groups: int) -> tuple[int, int]:
    """A mask's heads as [kv heads, heads of each]."""
    return (1, 1) if heads == 1 else (groups, heads // groups)


def _added(mask: mx.array) -> mx.array:
    """What a mask adds to scores: as in MLX, a number, so that a row that sees nothing gives numbers too."""
    return mx.where(mask, 0.0, mx.finfo(mx.float32).min) if mask.dtype == mx.bool_ else mask


@lru_cache(maxsize=1)
def _causal(rows: int, keys: int) -> mx.array:
    """What a causal mask adds to the scores of the last `rows` of `keys`: made once for all layers of a pass."""
    added = _added(mx.arange(keys)[None] <= mx.arange(keys - rows, keys)[:, None])
    mx.eval(added)
    return added


def forget() -> None:
    """Let go of the mask of the last pass, up to 32 MB: on the thread that made it, when its engine rests or closes."""
    _causal.cache_clear()


Call = Callable[..., Any]


def _wrap(file: dict[str, Any], name: str, around: Callable[[Call], Call]) -> None:
    """mlx-lm's model files look these up in their own globals, so that is where they are wrapped, once."""
    plain = file.get(name)
    if plain is not None and not hasattr(plain, "is_quick_on_cpu"):
        wrapped: Any = wraps(plain)(around(plain))
        wrapped.is_quick_on_cpu = True
        file[name] = wrapped


def _attention(plain: Call) -> Call:
    def attention(
        queries: Any, keys: Any, values: Any, cache: Any = None, scale: float = 1.0, mask: Any = None, **others: Any
    ) -> Any:
        rows = (queries, keys, values)
        is_plain = all(isinstance(each, mx.array) and each.dtype == mx.float32 for each in rows) and not others
        if is_plain and is_ours():
            return attend(queries, keys, values, scale, mask)
        return plain(queries, keys, values, cache=cache, scale=scale, mask=mask, **others)

    return attention


def _gate(plain: Call) -> Call:
    def gate(gate: mx.array, x: mx.array) -> mx.array:
        return silu(gate) * x if gate.dtype == mx.float32 and is_ours() else plain(gate, x)

    return gate
