"""A model taken apart: where its layers, its embedding and its head are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from slipstream.models import on_cpu
from slipstream.models.families import Family


@dataclass(frozen=True, slots=True)
class Parts:
    """A model taken apart as its family says."""

    shape: Family
    body: Any
    embed: Any
    head: Any  # None: tied to the embedding
    args: Any
    layers: list[nn.Module]

    @classmethod
    def of(cls, model: nn.Module, shape: Family) -> Parts:
        """Raises AttributeError when the model is laid out otherwise."""
        root: Any = attrgetter(shape.root)(model) if shape.root else model
        body: Any = attrgetter(shape.body)(root)
        return cls(
            shape=shape,
            body=body,
            embed=attrgetter(shape.embed)(body),
            head=getattr(root, shape.head, None),
            args=root.args,
            layers=list(attrgetter(shape.layers)(body)),
        )

    def head_rows(self, hidden: mx.array) -> mx.array:
        return self.embed.as_linear(hidden) if self.head is None else self.head(hidden)

    def logits(self, hidden: mx.array) -> mx.array:
        hidden = self.shape.before_head(hidden, self.args)
        return self.shape.after_head(self.head_rows(hidden), self.args)


def part_of(table: Any, ids: mx.array) -> Callable[[mx.array], mx.array]:
    """The product with rows `ids` [m] of a Linear or an Embedding, packed as the table is."""
    bias = table.bias[ids] if "bias" in table else None
    weight = table.weight[ids]
    if not hasattr(table, "bits"):
        weight = on_cpu.turned(weight) if on_cpu.is_ours() else weight
        mx.eval(weight)
        return lambda hidden: hidden @ weight.T if bias is None else mx.addmm(bias, hidden, weight.T)
    scales, biases = table.scales[ids], None if table.get("biases") is None else table.biases[ids]
    packing: dict[str, Any] = {"group_size": table.group_size, "bits": table.bits, "mode": table.mode}
    mx.eval(weight, scales, [] if biases is None else biases)

    def product(hidden: mx.array) -> mx.array:
        out = mx.quantized_matmul(hidden, weight, scales, biases, transpose=True, **packing)
        return out if bias is None else out + bias

    return product
