"""A block drafter's passes on NVIDIA GPUs, in few operations and described once (`models/fused.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import mlx.core as mx

from slipstream.models import few_rows
from slipstream.models.fused import ROWS, TOKENS, FusedLayer, Stack, places, turning
from slipstream.models.fused_kernels import Heads, place

if TYPE_CHECKING:
    from slipstream.drafters.backbone import Backbone
    from slipstream.drafters.context import Context
    from slipstream.drafters.descriptor import Descriptor


class FusedBlock:
    """The backbone over a block of slots, and what it keeps of committed tokens."""

    def __init__(self, backbone: Backbone, stack: Stack, d: Descriptor) -> None:
        self._stack = stack
        self._heads = stack.layers[0].heads
        self._kv_heads = d.kv_heads
        self._norms = mx.stack([layer.k_norm.weight for layer in backbone.layers])
        self._is_causal = d.causal[0]
        mx.eval(self._norms)

    @classmethod
    def of(cls, backbone: Backbone, d: Descriptor, rope: Any) -> FusedBlock | None:
        """None: a drafter of another kind, or another machine."""
        freqs = turning(rope, d.head_dim)
        is_plain = not (d.is_gemma or d.gated or d.sinks or d.conv_kernel or d.keys_are_values or any(d.windows))
        if not mx.cuda.is_available() or freqs is None or not is_plain or len(set(d.causal)) != 1:
            return None
        if d.head_dim not in few_rows.HEAD_SIZES:
            return None
        numbers = mx.array([d.head_dim**-0.5, d.eps], dtype=mx.float32)
        layers = [
            FusedLayer(
                layer.qkv,
                layer.o_proj,
                layer.gate_up,
                layer.down_proj,
                (layer.input_layernorm, layer.post_attention_layernorm),
                Heads(d.heads, freqs, numbers, (layer.q_norm.weight, layer.k_norm.weight)),
            )
            for layer in backbone.layers
        ]
        return cls(backbone, Stack(layers, backbone.norm), d)

    @staticmethod
    def covers(contexts: Sequence[Context], slots: int) -> bool:
        """Whether so many slots behind each of these contexts are for it."""
        return (
            len(contexts) <= ROWS
            and len(contexts) * slots <= TOKENS
            and all(0 < context.length <= few_rows.KEYS for context in contexts)
        )

    def at(self, contexts: Sequence[Context], slots: int) -> mx.array:
        return places([context.length for context in contexts], [slots] * len(contexts), causal=self._is_causal)

    def buffers(self, contexts: Sequence[Context]) -> list[list[mx.array]]:
        """Of each layer: keys and values of each context in turn."""
        layers = range(len(self._stack.layers))
        return [[array for context in contexts for array in context.layer(layer)] for layer in layers]

    def run(self, slots: mx.array, at: mx.array, buffers: list[list[mx.array]]) -> mx.array:
        """Hidden states after the final norm of embedded slots [slots, hidden] of all requests."""
        normed, _ = self._stack.run(slots, at, buffers, writes=False)
        return normed

    def placed(self, kv: mx.array, positions: mx.array) -> mx.array:
        """Keys and values [layers, 2, kv heads, n, size] as contexts keep them, of what `context_kv` gives [n, …]."""
        return place(kv, positions, self._heads, self._norms, self._kv_heads)
