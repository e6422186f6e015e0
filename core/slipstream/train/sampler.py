"""The target writes: many texts at once, in lock step, for training data. Its own caches and attention, no rounds.

Texts are padded at the front, so all are at the same position and the padding is hidden by a mask. Rotary positions
are relative, so it does not matter that they begin later.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import numpy as np

from slipstream.models.target import Target

CAPACITY_STEP = 64  # what attention looks at grows by so many rows: few shapes
SYNC = 32  # steps between two looks at who has finished
PREFILL_TOKENS = 1 << 16  # in one pass
USUAL_LENGTH = 416  # tokens of a text for which the whole width is meant
SHRINK = 0.85  # go on with fewer rows when no more than this share is unfinished


@dataclass(frozen=True, slots=True)
class Ask:
    """A text to be continued. `temperature` 0 is greedy."""

    ids: tuple[int, ...]
    temperature: float
    limit: int  # new tokens at most


class Sampler:
    """Continues texts of one target. Thread of the engine. Only for targets whose caches all hold keys and values."""

    def __init__(self, target: Target, seed: int) -> None:
        self._target = target
        self._layers = len(target.make_cache().layers)
        self._key = mx.random.key(seed)
        self.tokens = 0  # written so far
        self._choose = mx.compile(_choose)

    def sample(self, asks: Sequence[Ask], ends: Collection[int], width: int) -> list[list[int]]:
        """Continuations in the order of `asks`, each up to its end token, which is kept, or its limit.

        `width`: texts in one batch, fewer if they are long. Those of like length go together.
        """
        order = sorted(range(len(asks)), key=lambda index: len(asks[index].ids))
        out: list[list[int]] = [[] for _ in asks]
        with own_attention(self._target):
            while order:
                # The longest first: what does not fit beside them goes with shorter ones.
                longest = asks[order[-1]]
                rows = max(1, min(width, width * USUAL_LENGTH // (len(longest.ids) + longest.limit)))
                chosen, order = order[-rows:], order[:-rows]
                for index, written in zip(chosen, self._batch([asks[i] for i in chosen], ends), strict=True):
                    out[index] = written
                    self.tokens += len(written)
                mx.clear_cache()
        return out

    def _batch(self, asks: Sequence[Ask], ends: Collection[int]) -> list[list[int]]:
        longest = _rounded(max(len(ask.ids) for ask in asks), 16)
        limit = max(ask.limit for ask in asks)
        place = _Place(longest, _rounded(longest + limit, CAPACITY_STEP))
        padding = np.array([longest - len(ask.ids) for ask in asks])
        place.padding = mx.array(padding.astype(np.int32))
        caches = [Rows(place) for _ in range(self._layers)]
        padded = np.zeros((len(asks), longest), dtype=np.int32)
        for row, ask in enumerate(asks):
            padded[row, padding[row] :] = ask.ids
        hidden = self._prefill(mx.array(padded), caches, place)
        temperatures = mx.array(np.array([[ask.temperature] for ask in asks], dtype=np.float32))
        limits = np.array([ask.limit for ask in asks])

        written: list[list[int]] = [[] for _ in asks]
        live = np.arange(len(asks))  # the ask of each row
        ends_list = sorted(ends)
        token = self._next(hidden, temperatures)
        steps: list[mx.array] = [token]
        made = 1
        while True:
            if made % SYNC == 0 or made >= limit:
                block = np.array(mx.stack(steps, axis=1))  # [rows, steps]
                steps = []
                finished = _extend(written, live, block, ends_list, limits)
                if finished.all() or made >= limit:
                    break
                if (~finished).mean() <= SHRINK:
                    keep = np.flatnonzero(~finished)
                    live = live[keep]
                    chosen = mx.array(keep.astype(np.int32))
                    token, temperatures, place.padding = token[chosen], temperatures[chosen], place.padding[chosen]
                    for cache in caches:
                        cache.keep(chosen)
            hidden = self._target.body(token[:, None], caches)[:, 0]
            place.position += 1
            token = self._next(hidden, temperatures)
            mx.async_eval(token)
            steps.append(token)
            made += 1
        return written

    def _prefill(self, tokens: mx.array, caches: list[Rows], place: _Place) -> mx.array:
        """Hidden states of the last tokens [rows, hidden]; a part of the rows at a time."""
        count, length = tokens.shape
        part = max(1, PREFILL_TOKENS // length)
        padding, last = place.padding, list[mx.array]()
        for cache in caches:
            cache.reserve(count)
        place.position = 0
        for at in range(0, count, part):
            place.padding, place.rows = padding[at : at + part], slice(at, at + part)
            hidden = self._target.body(tokens[at : at + part], caches)[:, -1]
            mx.eval(hidden, [array for cache in caches for array in cache.arrays()])
            last.append(hidden)
        place.padding, place.rows, place.position = padding, slice(0, None), length
        return mx.concatenate(last, axis=0)

    def _next(self, hidden: mx.array, temperatures: mx.array) -> mx.array:
        self._key, key = mx.random.split(self._key)
        return self._choose(self._target.logits_of(hidden), temperatures, key)


class _Place:
    """Where a batch is: shared by the caches of all layers."""

    def __init__(self, position: int, capacity: int) -> None:
        self.position = position  # the next row to be written
        self.capacity = capacity
        self.padding = mx.zeros((0,), dtype=mx.int32)  # [rows]
        self.rows = slice(0, None)  # of the batch that are being run


class Rows:
    """One layer's keys and values of a batch, as mlx-lm's models use a cache."""

    def __init__(self, place: _Place) -> None:
        self._place = place
        self._rows = 0
        self._keys: mx.array | None = None  # [rows, kv_heads, capacity, head_dim]
        self._values: mx.array | None = None

    @property
    def offset(self) -> int:
        return self._place.position

    def reserve(self, count: int) -> None:
        self._rows = count

    def arrays(self) -> list[mx.array]:
        return [array for array in (self._keys, self._values) if array is not None]

    def keep(self, chosen: mx.array) -> None:
        assert self._keys is not None
        assert self._values is not None
        self._keys, self._values = self._keys[chosen], self._values[chosen]
        mx.eval(self._keys, self._values)

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        place = self._place
        start, end = place.position, place.position + keys.shape[2]
        if self._keys is None or self._values is None:
            shape = (self._rows, keys.shape[1], place.capacity)
            self._keys = mx.zeros((*shape, keys.shape[3]), dtype=keys.dtype)
            self._values = mx.zeros((*shape, values.shape[3]), dtype=values.dtype)
        self._keys[place.rows, :, start:end] = keys
        self._values[place.rows, :, start:end] = values
        seen = min(_rounded(end, CAPACITY_STEP), place.capacity)
        return self._keys[place.rows, :, :seen], self._values[place.rows, :, :seen]

    def make_mask(self, count: int, return_array: bool = False, window_size: int | None = None) -> mx.array:
        """[rows, 1, count, seen]: not the padding, nothing later, and nothing before the window."""
        place = self._place
        end = place.position + count
        query = mx.arange(place.position, end)[:, None]
        key = mx.arange(min(_rounded(end, CAPACITY_STEP), place.capacity))[None]
        visible = key <= query
        if window_size is not None:
            visible = visible & (query - key < window_size)
        return visible[None, None] & (key[None, None] >= place.padding[:, None, None, None])


@contextmanager
def own_attention(target: Target) -> Generator[None]:
    """Attention by two products and a softmax for as long as the block runs.

    MLX's fused one has no kernel for many short queries with a mask, and repeats the keys of grouped heads.
    """
    module: Any = sys.modules[type(target.model).__module__]
    plain = getattr(module, "scaled_dot_product_attention", None)
    if plain is None:
        yield
        return

    def attend(
        queries: mx.array, keys: mx.array, values: mx.array, cache: Any, scale: float, mask: Any, sinks: Any = None
    ) -> mx.array:
        if sinks is not None or not isinstance(mask, mx.array):
            return plain(queries, keys, values, cache=cache, scale=scale, mask=mask, sinks=sinks)
        return grouped(queries, keys, values, scale, mask)

    module.scaled_dot_product_attention = attend
    try:
        yield
    finally:
        module.scaled_dot_product_attention = plain


def grouped(queries: mx.array, keys: mx.array, values: mx.array, scale: float, mask: mx.array) -> mx.array:
    """Attention [rows, heads, n, width]; the queries that share a head of keys are one product."""
    count, heads, length, width = queries.shape
    shared = keys.shape[1]
    folded = (queries * scale).reshape(count, shared, -1, width)
    scores = (folded @ keys.swapaxes(-1, -2)).reshape(count, shared, heads // shared, length, -1)
    scores = mx.where(mask[:, :, None], scores, mx.finfo(scores.dtype).min)
    weights = mx.softmax(scores, axis=-1, precise=True).reshape(count, shared, -1, keys.shape[2])
    return (weights @ values).reshape(count, heads, length, values.shape[-1])


def _choose(logits: mx.array, temperatures: mx.array, key: mx.array) -> mx.array:
    """A token for each row of logits [rows, vocabulary], at its temperature [rows, 1]."""
    scores = logits.astype(mx.float32)
    noise = mx.random.gumbel(scores.shape, key=key)
    drawn = scores / mx.maximum(temperatures, 1e-4) + noise
    return mx.argmax(mx.where(temperatures > 0, drawn, scores), axis=-1).astype(mx.int32)


def _extend(written: list[list[int]], live: Any, block: Any, ends: list[int], limits: Any) -> Any:
    """Add new tokens [rows, steps] up to the first end or the limit. Which rows are finished [rows]."""
    is_end = np.isin(block, ends)
    counts = np.where(is_end.any(axis=1), is_end.argmax(axis=1) + 1, block.shape[1])
    finished = is_end.any(axis=1)
    for row, ask in enumerate(live):
        text = written[ask]
        if text and (text[-1] in ends or len(text) >= limits[ask]):
            finished[row] = True
            continue
        text += block[row, : min(counts[row], limits[ask] - len(text))].tolist()
        finished[row] |= len(text) >= limits[ask]
    return finished


def _rounded(number: int, step: int) -> int:
    return -(-number // step) * step
