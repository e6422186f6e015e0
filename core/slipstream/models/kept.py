"""A target's cache in pieces that can be kept apart from it, and put back together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import mlx.core as mx
from mlx_lm.models import cache as mlx_caches

from slipstream.models.cache import ROUND, QuantisedCache, TargetCache, WindowCache
from slipstream.models.host import ints
from slipstream.models.in_place import InPlaceCache

CAPACITY_STEP = 256  # mlx-lm's: buffers have room for a multiple of so many tokens

Arrays = Mapping[str, mx.array]

# Layers whose state of a token is rows of its own: [1, heads, tokens, width], or such arrays of packed numbers.
_BY_ROWS = (mlx_caches.KVCache, QuantisedCache, InPlaceCache, WindowCache)


def has_fixed(cache: TargetCache) -> bool:
    """Whether any layer's state can only be kept whole."""
    return any(not _is_by_rows(layer) for _, layer in _leaves(cache.layers))


def rows(cache: TargetCache, start: int, stop: int) -> Arrays:
    """The rows of tokens [start, stop), evaluated, in arrays of their own."""
    return cut(_buffers(cache), start, stop)


def row_bytes(cache: TargetCache) -> int:
    """For each token. 0 while the cache is empty."""
    return bytes_per_row(_buffers(cache))


def fixed(cache: TargetCache) -> Arrays:
    """What can only be kept whole, as it is now: evaluated, and not changed by what the cache does next."""
    found: dict[str, mx.array] = {}
    for name, layer in _leaves(cache.layers):
        if not _is_by_rows(layer) and not layer.empty():
            found |= {f"{name}.{path}": leaf for path, leaf in _flat(_state(layer))}
    mx.eval(list(found.values()))
    return found


def restore(cache: TargetCache, pieces: Sequence[Arrays], whole: Arrays, length: int) -> None:
    """Fill an empty cache with the rows of its first `length` tokens, piece after piece, and what was kept whole."""
    assert cache.length == 0
    joined = join(pieces, length)
    for name, layer in _leaves(cache.layers):
        if _is_by_rows(layer):
            keys, values = (_nested(joined, f"{name}.{kind}") for kind in ("keys", "values"))
            if isinstance(layer, QuantisedCache):
                layer.put(keys, values, length)
            else:
                layer.keys, layer.values, layer.offset = keys, values, length
        else:
            state = _filled(_state(layer), whole, name)
            if isinstance(layer, WindowCache):
                vars(layer).update(zip(vars(layer), state, strict=True))
            else:
                layer.state = state
    cache.length = length
    mx.eval(cache.state)


def cut(buffers: Arrays, start: int, stop: int) -> Arrays:
    """Rows [start, stop) of each array, evaluated, contiguous, and never a view that would keep the whole buffer."""
    index = mx.arange(start, stop)

    def copy(buffer: mx.array) -> mx.array:
        # With one head a slice is contiguous as it is, and would share.
        part = mx.take(buffer, index, axis=2) if buffer.shape[1] == 1 else buffer[:, :, start:stop]
        return mx.contiguous(part)

    out = {name: copy(buffer) for name, buffer in buffers.items()}
    mx.eval(list(out.values()))
    return out


def join(pieces: Sequence[Arrays], length: int) -> Arrays:
    """Buffers with room to spare, so that the next row does not copy them again."""
    capacity = (length // CAPACITY_STEP + 1) * CAPACITY_STEP
    out: dict[str, mx.array] = {}
    for name in pieces[0]:
        first = pieces[0][name]
        room = mx.zeros((*first.shape[:2], capacity - length, *first.shape[3:]), dtype=first.dtype)
        out[name] = mx.concatenate([*(piece[name] for piece in pieces), room], axis=2)
    return out


def bytes_per_row(buffers: Arrays) -> int:
    return sum(buffer.nbytes // buffer.shape[2] for buffer in buffers.values() if buffer.shape[2])


def _leaves(layers: Sequence[Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for index, layer in enumerate(layers):
        if isinstance(layer, mlx_caches.CacheList):
            yield from _leaves(layer.caches, f"{prefix}{index}.")
        else:
            yield f"{prefix}{index}", layer


def _is_by_rows(layer: Any) -> bool:
    """A window that drops the rows it no longer sees cannot be cut at an earlier token."""
    return type(layer) in _BY_ROWS and not hasattr(layer, "dropped")


def _state(layer: Any) -> Any:
    return list(vars(layer).values()) if isinstance(layer, WindowCache) else layer.state


def _buffers(cache: TargetCache) -> Arrays:
    """Keys and values of every layer that has rows, with the room behind them."""
    found: dict[str, mx.array] = {}
    for name, layer in _leaves(cache.layers):
        if not _is_by_rows(layer) or layer.keys is None:
            continue
        for kind in ("keys", "values"):
            array = getattr(layer, kind)
            found |= {f"{name}.{kind}{path}": leaf for path, leaf in _rows_of(array)}
    return found


def _rows_of(array: Any) -> Iterator[tuple[str, mx.array]]:
    if isinstance(array, mx.array):
        yield "", array
        return
    for index, part in enumerate(array):
        yield f".{index}", part


def _nested(arrays: Arrays, name: str) -> Any:
    """One array, or the parts of a packed one as the list that mlx-lm writes into."""
    if name in arrays:
        return arrays[name]
    found: list[mx.array] = []
    while f"{name}.{len(found)}" in arrays:
        found.append(arrays[f"{name}.{len(found)}"])
    return found


def _flat(state: Any, path: str = "s") -> Iterator[tuple[str, mx.array]]:
    """Arrays and whole numbers in a nest of tuples; what is None is left out."""
    if isinstance(state, mx.array):
        yield path, mx.contiguous(state)
    elif isinstance(state, bool | int):
        yield f"{path}#", mx.array([int(state)], dtype=mx.int32)
    elif isinstance(state, list | tuple):
        for index, item in enumerate(cast(Sequence[Any], state)):
            yield from _flat(item, f"{path}.{index}")
    else:
        assert state is None, type(state)


def _filled(state: Any, arrays: Arrays, layer: str, path: str = "s") -> Any:
    """The nest of a fresh layer's state with kept values in it."""
    name = f"{layer}.{path}"
    if name in arrays:
        return arrays[name]
    if f"{name}#" in arrays:
        return ints(arrays[f"{name}#"])[0]
    if isinstance(state, list | tuple):
        items = cast(Sequence[Any], state)
        filled = [_filled(item, arrays, layer, f"{path}.{index}") for index, item in enumerate(items)]
        return filled if isinstance(state, list) else tuple(filled)
    return state


def stretched(buffers: Arrays, length: int) -> Arrays:
    """Rows repeated to `length`: for what a forward behind so many tokens costs, where its numbers do not matter."""
    out: dict[str, mx.array] = {}
    for name, rows_ in buffers.items():
        times = -(-length // rows_.shape[2])
        out[name] = mx.concatenate([rows_] * times, axis=2)[:, :, :length]
    return out


def stretch(cache: TargetCache, like: TargetCache, length: int) -> None:
    """Fill an empty cache to `length` rows by repeating those of another. The numbers in it mean nothing."""
    short = rows(like, 0, like.length)
    restore(cache, [stretched(short, length)], fixed(like), length)
    for _, layer in _leaves(cache.layers):
        if isinstance(layer, WindowCache):  # kept whole, so it still has the few rows of `like`
            held = min(length, layer.window + ROUND)
            layer.keys, layer.values = stretched({"keys": layer.keys, "values": layer.values}, held).values()
            layer.offset, layer.dropped = length, length - held
    mx.eval(cache.state)
