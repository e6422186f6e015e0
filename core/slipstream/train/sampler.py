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

from slipstream.errors import UnsupportedModel
from slipstream.models.target import Target

ATTENTION = "scaled_dot_product_attention"  # mlx-lm's name for it in each model's file
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
        self._has_own_attention = hasattr(_module_of(target), ATTENTION)

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
        longest = max(len(ask.ids) for ask in asks)
        limit = max(ask.limit for ask in asks)
        place = _Place(self._has_own_attention)
        padding = np.array([longest - len(ask.ids) for ask in asks])
        caches = [Rows(place) for _ in range(self._layers)]
        padded = np.zeros((len(asks), longest), dtype=np.int32)
        for row, ask in enumerate(asks):
            padded[row, padding[row] :] = ask.ids
        hidden = self._prefill(mx.array(padded), mx.array(padding.astype(np.int32)), caches, place)
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
                chosen: mx.array | None = None
                if (~finished).mean() <= SHRINK:
                    keep = np.flatnonzero(~finished)
                    live = live[keep]
                    chosen = mx.array(keep.astype(np.int32))
                    token, temperatures, place.padding = token[chosen], temperatures[chosen], place.padding[chosen]
                for cache in caches:
                    cache.settle(chosen)
                mx.clear_cache()
            hidden = self._target.body(token[:, None], caches)[:, 0]
            place.position += 1
            token = self._next(hidden, temperatures)
            mx.async_eval(token)
            steps.append(token)
            made += 1
            if len(steps) > 2:
                mx.eval(steps[-3])  # else logits of many steps would be in memory at once
        return written

    def _prefill(self, tokens: mx.array, padding: mx.array, caches: list[Rows], place: _Place) -> mx.array:
        """Hidden states of the last tokens [rows, hidden]; a part of the rows at a time."""
        count, length = tokens.shape
        part = max(1, PREFILL_TOKENS // length)
        last: list[mx.array] = []
        for at in range(0, count, part):
            place.padding = padding[at : at + part]
            hidden = self._target.body(tokens[at : at + part], caches)[:, -1]
            mx.eval(hidden, [array for cache in caches for array in cache.arrays()])
            last.append(hidden)
        place.padding, place.position = padding, length
        for cache in caches:
            cache.settle(None)
        return mx.concatenate(last, axis=0)

    def _next(self, hidden: mx.array, temperatures: mx.array) -> mx.array:
        self._key, key = mx.random.split(self._key)
        return self._choose(self._target.logits_of(hidden), temperatures, key)


class _Place:
    """Where a batch is: shared by the caches of all layers."""

    def __init__(self, has_own_attention: bool) -> None:
        self.position = 0  # the next row to be written; 0: prompts are being read, a part of the batch at a time
        self.padding = mx.zeros((0,), dtype=mx.int32)  # [rows]
        self.has_own_attention = has_own_attention


Pair = tuple[mx.array, mx.array]  # keys and values [rows, kv_heads, n, head_dim]


class Rows:
    """One layer's keys and values of a batch, as mlx-lm's models use a cache.

    What is settled never changes: the rows of the last few steps lie in a small buffer beside it. MLX copies an array
    that is written into while the device still reads it, and there are gigabytes.
    """

    def __init__(self, place: _Place) -> None:
        self._place = place
        self._parts: list[Pair] = []  # of the prompts, by rows
        self._settled: Pair | None = None
        self._recent: Pair | None = None
        self._count = 0  # in use of `recent`

    @property
    def offset(self) -> int:
        return self._place.position

    @property
    def pieces(self) -> tuple[Pair, Pair]:
        """What is settled, and what came since."""
        assert self._settled is not None
        assert self._recent is not None
        keys, values = self._recent
        return self._settled, (keys[:, :, : self._count], values[:, :, : self._count])

    def arrays(self) -> list[mx.array]:
        return [array for pair in self._parts for array in pair]

    def settle(self, chosen: mx.array | None) -> None:
        """Put what came since to the rest, and go on with the chosen rows [n] alone. Waits for the device."""
        if self._parts:
            keys, values = (mx.concatenate(list(arrays)) for arrays in zip(*self._parts, strict=True))
            self._parts = []
        else:
            keys, values = (mx.concatenate([old, new], axis=2) for old, new in zip(*self.pieces, strict=True))
        if chosen is not None:
            keys, values = keys[chosen], values[chosen]
        mx.eval(keys, values)
        self._settled, self._recent, self._count = (keys, values), None, 0

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> Pair:
        if not self._place.position:
            self._parts.append((mx.contiguous(keys), mx.contiguous(values)))
            return keys, values
        if self._recent is None:
            rows, heads = keys.shape[:2]
            shapes = [(rows, heads, SYNC, array.shape[3]) for array in (keys, values)]
            self._recent = (mx.zeros(shapes[0], dtype=keys.dtype), mx.zeros(shapes[1], dtype=values.dtype))
        at = self._count
        recent_keys, recent_values = self._recent
        recent_keys[:, :, at : at + 1] = keys
        recent_values[:, :, at : at + 1] = values
        self._recent, self._count = (recent_keys, recent_values), at + 1
        if self._place.has_own_attention:
            return keys, values  # it takes the pieces
        old, new = self.pieces
        return mx.concatenate([old[0], new[0]], axis=2), mx.concatenate([old[1], new[1]], axis=2)

    def make_mask(self, count: int, return_array: bool = False, window_size: int | None = None) -> mx.array:
        """[rows, 1, count, keys]: not the padding, nothing later, and nothing before the window."""
        place = self._place
        end = place.position + count
        query = mx.arange(place.position, end)[:, None]
        key = mx.arange(end)[None]
        visible = key <= query
        if window_size is not None:
            visible = visible & (query - key < window_size)
        return visible[None, None] & (key[None, None] >= place.padding[:, None, None, None])


def _module_of(target: Target) -> Any:
    """The module that the model's file is. Any: what is looked up and changed in it is not typed."""
    return sys.modules[type(target.model).__module__]


@contextmanager
def own_attention(target: Target) -> Generator[None]:
    """Attention by products and a softmax for as long as the block runs.

    MLX's fused one has no kernel for many short queries with a mask, and wants all keys in one array.
    """
    module = _module_of(target)
    plain = getattr(module, ATTENTION, None)
    if plain is None:
        yield
        return

    def attend(
        queries: mx.array, keys: mx.array, values: mx.array, cache: Any, scale: float, mask: mx.array, **more: Any
    ) -> mx.array:
        if any(value is not None for value in more.values()):
            raise UnsupportedModel("models whose attention has sinks cannot write for training yet; choose another")
        pieces = ((keys, values),) if queries.shape[2] > 1 or not cache.offset else cache.pieces
        return grouped(queries, pieces, scale, mask)

    setattr(module, ATTENTION, attend)
    try:
        yield
    finally:
        setattr(module, ATTENTION, plain)


def grouped(queries: mx.array, pieces: Sequence[Pair], scale: float, mask: mx.array) -> mx.array:
    """Attention [rows, heads, n, width] over pieces side by side; queries that share a head of keys are one product."""
    count, heads, length, width = queries.shape
    shared = pieces[0][0].shape[1]
    folded = (queries * scale).reshape(count, shared, -1, width)
    parts = [folded @ keys.swapaxes(-1, -2) for keys, _ in pieces]
    scores = mx.concatenate(parts, axis=-1).reshape(count, shared, heads // shared, length, -1)
    scores = mx.where(mask[:, :, None], scores, mx.finfo(scores.dtype).min)
    weights = mx.softmax(scores, axis=-1, precise=True).reshape(count, shared, folded.shape[2], -1)
    ends = np.cumsum([keys.shape[2] for keys, _ in pieces])[:-1].tolist()
    split = mx.split(weights, ends, axis=-1) if ends else [weights]
    out = sum((part @ values for part, (_, values) in zip(split, pieces, strict=True)), mx.zeros((), queries.dtype))
    return out.reshape(count, heads, length, out.shape[-1])


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
    finished: Any = is_end.any(axis=1)
    for row, ask in enumerate(live):
        text = written[ask]
        if text and (text[-1] in ends or len(text) >= limits[ask]):
            finished[row] = True
            continue
        text += block[row, : min(counts[row], limits[ask] - len(text))].tolist()
        finished[row] |= len(text) >= limits[ask]
    return finished
