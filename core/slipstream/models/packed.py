"""Several requests in one forward: their tokens packed one behind the other, each row's attention its own.

Norms, projections, experts and head see one sequence of tokens, so a weight is read once for all rows. Where a layer
looks at other tokens, each row looks at its own, through its own cache. mlx-lm's models run as they are: what they call
an offset, a mask, keys or a cache is an object that stands for one of each row, and the few places where those are used
(rotation, attention, recurrent mixers) take it apart. Nothing here knows an architecture by name; whether a model can
be run this way, and how, is found by trying (`Target.pack`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from itertools import accumulate, pairwise
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models import cache as mlx_caches

ATTENTION = "scaled_dot_product_attention"  # the name under which mlx-lm's model files call it


class Packing(StrEnum):
    """How far into a layer the rows stay together."""

    ATTENTION = "attention"  # to the attention itself: queries, keys and values are projected for all rows at once
    MIXER = "mixer"  # to the attention or recurrent module: that one runs once for each row


@dataclass(slots=True)
class Switch:
    """Whether packed rows are under way, and how they go."""

    packing: Packing | None = None
    is_on: bool = False


class Rows:
    """One value for each row, in a place where a model expects one value: a mask, keys, values."""

    __slots__ = ("each", "widths")

    def __init__(self, each: Iterable[Any], widths: tuple[int, ...]) -> None:
        self.each = list(each)
        self.widths = widths  # tokens of each row


class PackedLayer:
    """One layer's caches of all rows, to a model that knows of one request."""

    def __init__(self, each: Sequence[Any], widths: tuple[int, ...], positions: mx.array) -> None:
        self.each = list(each)
        self.widths = widths
        self.offset = positions  # [tokens]: each token's own, see `_rotates_each`

    @property
    def is_attention(self) -> bool:
        return all(hasattr(layer, "update_and_fetch") for layer in self.each)

    def __getitem__(self, index: int) -> PackedLayer:
        """A part of a layer that has several caches."""
        assert all(isinstance(layer, mlx_caches.CacheList) for layer in self.each)
        return PackedLayer([layer[index] for layer in self.each], self.widths, self.offset)

    def make_mask(self, _: int, **how: Any) -> Rows | None:
        masks = [layer.make_mask(width, **how) for layer, width in zip(self.each, self.widths, strict=True)]
        return None if all(mask is None for mask in masks) else Rows(masks, self.widths)

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[Rows, Rows]:
        """Keys and values [1, heads, tokens, width] of all rows go to each one's cache."""
        fetched = [
            layer.update_and_fetch(keys[:, :, start:end], values[:, :, start:end])
            for layer, (start, end) in zip(self.each, spans(self.widths), strict=True)
        ]
        return Rows((pair[0] for pair in fetched), self.widths), Rows((pair[1] for pair in fetched), self.widths)


def spans(widths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Where each row's tokens begin and end."""
    return pairwise(accumulate(widths, initial=0))


def packed_layers(caches: Sequence[Sequence[Any]], lengths: Sequence[int], widths: Sequence[int]) -> list[PackedLayer]:
    """The layers of several rows' caches, of which each holds `lengths` tokens and gets `widths` more."""
    positions = mx.array(
        [length + at for length, width in zip(lengths, widths, strict=True) for at in range(width)], dtype=mx.int32
    )
    return [PackedLayer(layers, tuple(widths), positions) for layers in zip(*caches, strict=True)]


def open_up(layers: Iterable[nn.Module], switch: Switch) -> None:
    """Teach a model's layers to take packed rows. While `switch` is off they do what they did."""
    for layer in layers:
        for mixer in layer.children().values():
            if isinstance(mixer, nn.Module) and _takes(mixer, "cache"):
                for _, part in mixer.named_modules():
                    if part is not mixer and _takes(part, "offset"):
                        _replace_call(part, lambda plain: _rotates_each(plain, switch))
                _wrap_attention(type(mixer).__call__.__globals__)
                _replace_call(mixer, lambda plain: _runs_each(plain, switch))


def _takes(module: nn.Module, name: str) -> bool:
    return name in inspect.signature(type(module).__call__).parameters


Call = Callable[..., Any]


def _replace_call(module: nn.Module, around: Callable[[Call], Call]) -> None:
    """The class changes, not the module: weights and paths stay."""
    plain: Any = type(module)
    module.__class__ = type(f"Packed{plain.__name__}", (plain,), {"__call__": around(plain.__call__)})


def _rotates_each(plain: Call, switch: Switch) -> Call:
    """Rotary embedding of tokens that each have a position of their own: MLX takes one for each member of a batch."""

    @wraps(plain)
    def call(self: Any, x: mx.array, offset: Any = 0, **others: Any) -> mx.array:
        if not switch.is_on or not isinstance(offset, mx.array) or offset.ndim == 0:
            return plain(self, x, offset=offset, **others)
        # [1, heads, tokens, width] -> [tokens, heads, 1, width], and back
        return plain(self, x.transpose(2, 1, 0, 3), offset=offset, **others).transpose(2, 1, 0, 3)

    return call


def _runs_each(plain: Call, switch: Switch) -> Call:
    """A mixer that goes through the rows one by one, unless rows can go on together to its attention."""

    @wraps(plain)
    def call(self: Any, x: mx.array, *args: Any, **kwargs: Any) -> Any:
        if not switch.is_on:
            return plain(self, x, *args, **kwargs)
        marks = [value for value in (*args, *kwargs.values()) if isinstance(value, PackedLayer | Rows)]
        caches = [mark for mark in marks if isinstance(mark, PackedLayer)]
        if not marks or (switch.packing is Packing.ATTENTION and all(cache.is_attention for cache in caches)):
            return plain(self, x, *args, **kwargs)
        widths = marks[0].widths
        outputs = [
            plain(
                self,
                x[:, start:end],
                *(_of_row(value, row) for value in args),
                **{name: _of_row(value, row) for name, value in kwargs.items()},
            )
            for row, (start, end) in enumerate(spans(widths))
        ]
        if isinstance(outputs[0], tuple):  # beside the hidden states, what a later layer is given again
            hidden, *others = zip(*outputs, strict=True)
            return (mx.concatenate(list(hidden), axis=1), *(Rows(values, widths) for values in others))
        return mx.concatenate(outputs, axis=1)

    return call


def _of_row(value: Any, row: int) -> Any:
    return value.each[row] if isinstance(value, PackedLayer | Rows) else value


def _wrap_attention(file: dict[str, Any]) -> None:
    """Attention is looked up by mlx-lm's model files in their own globals, so that is where it is wrapped."""
    plain = file.get(ATTENTION)
    if plain is None or hasattr(plain, "takes_packed_rows"):
        return

    @wraps(plain)
    def attend(queries: mx.array, keys: Any, values: Any, cache: Any = None, mask: Any = None, **others: Any) -> Any:
        if not isinstance(keys, Rows):
            return plain(queries, keys, values, cache=cache, mask=mask, **others)
        return mx.concatenate(
            [
                plain(
                    queries[:, :, start:end],
                    keys.each[row],
                    values.each[row],
                    cache=_of_row(cache, row),
                    mask=_of_row(mask, row),
                    **others,
                )
                for row, (start, end) in enumerate(spans(keys.widths))
            ],
            axis=2,
        )

    attend.takes_packed_rows = True  # type: ignore[attr-defined]
    file[ATTENTION] = attend
