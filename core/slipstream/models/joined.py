"""Products of the same rows, made one: queries, keys and values, or gate and up, where products are short.

A GPU needs as long to be told of a small product as to compute it, so a layer of a small model is faster with two
products instead of five. mlx-lm's layers run as they are: the modules that they call hand out their parts of one
product, which is computed when the first of them is asked. OpenBLAS on a CPU gains by it too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from slipstream.models.host import number

logger = logging.getLogger(__name__)

GROUPS = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))  # as mlx-lm's model files name them
LARGEST = 8 * 2**20  # bytes: a larger product takes longer than its description, and gains nothing


@dataclass(slots=True)
class Joint:
    """One product, and the parts of its last result that nobody has asked for yet."""

    product: nn.Module
    ends: list[int]  # of all parts but the last, along the outputs
    rows: mx.array | None = None
    parts: dict[int, mx.array] = field(default_factory=dict[int, mx.array])

    def part(self, index: int, rows: mx.array) -> mx.array:
        """Of the product with `rows` [..., inputs]."""
        if self.rows is not rows or index not in self.parts:
            self.rows = rows
            product: Callable[[mx.array], mx.array] = self.product
            self.parts = dict(enumerate(mx.split(product(rows), self.ends, axis=-1)))
        part = self.parts.pop(index)
        if not self.parts:
            self.rows = None
        return part


class Part(nn.Module):
    """Stands where a product was. The first of a group keeps the joint weights, so that they are found and counted."""

    def __init__(self, joint: Joint, index: int) -> None:
        super().__init__()
        if index == 0:
            self.product = joint.product
        self._joint = joint
        self._index = index

    @property
    def joint(self) -> Joint:
        return self._joint

    def __call__(self, rows: mx.array) -> mx.array:
        return self._joint.part(self._index, rows)


@dataclass(frozen=True, slots=True)
class _Group:
    """Modules of one parent that were joined, and what they were before."""

    parent: nn.Module
    before: dict[str, nn.Module]
    joint: Joint

    def undo(self) -> None:
        for name, module in self.before.items():
            setattr(self.parent, name, module)


def join(layers: Iterable[nn.Module], probe: Callable[[], mx.array], tolerance: float) -> int:
    """Join what can be, and say how many products are one now.

    `probe`: runs the model on a few tokens, the same each time. Groups of which a layer did not ask every part with the
    same rows stay as they were, and all do if the results are further apart than `tolerance` of the largest.
    """
    before = probe()
    groups = [group for layer in layers for _, module in layer.named_modules() for group in _joined(module)]
    if not groups:
        return 0
    after = probe()
    apart, scale = (number(mx.max(mx.abs(each))) for each in (after - before, before))
    is_right = apart <= tolerance * max(scale, 1.0)
    kept = 0
    for group in groups:
        if is_right and group.joint.rows is None:
            kept += 1
        else:
            group.undo()
    if not is_right:
        logger.warning("products are left as they are: joined, they gave other results")
    return kept


def _joined(module: nn.Module) -> list[_Group]:
    """Join the groups of one module's children."""
    groups: list[_Group] = []
    for names in GROUPS:
        parts: list[Any] = [module.get(name) for name in names]
        if not _can_join(parts):
            continue
        ends = list(accumulate(part.weight.shape[0] for part in parts))[:-1]
        joint = Joint(_product(parts), ends)
        for index, name in enumerate(names):
            setattr(module, name, Part(joint, index))
        groups.append(_Group(module, dict(zip(names, parts, strict=True)), joint))
    return groups


def _can_join(parts: list[Any]) -> bool:
    """Whether they are plain products of one kind and packing, with as many inputs, and small."""
    if not all(type(part) in (nn.Linear, nn.QuantizedLinear) for part in parts):
        return False
    kinds = {
        (type(part), part.weight.shape[1:], part.weight.dtype, tuple(sorted(part)), *_packing(part)) for part in parts
    }
    return len(kinds) == 1 and sum(_bytes(part) for part in parts) <= LARGEST


def _packing(part: Any) -> tuple[Any, ...]:
    return tuple(getattr(part, name, None) for name in ("group_size", "bits", "mode"))


def _bytes(part: nn.Module) -> int:
    return sum(array.nbytes for array in part.parameters().values() if isinstance(array, mx.array))


def _product(parts: list[Any]) -> nn.Module:
    """One module for all outputs. Its arrays are new, those of the parts stay as they are."""
    product = copy(parts[0])
    for name in parts[0]:
        product[name] = mx.concatenate([part[name] for part in parts], axis=0)
    mx.eval(product.parameters())
    return product
