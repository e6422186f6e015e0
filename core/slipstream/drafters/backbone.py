"""The network that DSpark and DFlash share: a small Qwen3-style transformer over [context rows ; block slots].

Context rows come from the target's hidden states; block slots are the anchor and mask tokens (docs/drafters.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.rope_utils import initialize_rope

from slipstream.drafters.formats import Checkpoint, Descriptor

CAPACITY_STEP = 256  # context buffers grow by so many rows


class Layer(nn.Module):
    """One layer. q, k and v are one product, gate and up another: small matrices cost launches, not arithmetic."""

    def __init__(self, d: Descriptor) -> None:
        super().__init__()
        q, kv = d.heads * d.head_dim, d.kv_heads * d.head_dim
        self.input_layernorm = nn.RMSNorm(d.hidden, eps=d.eps)
        self.post_attention_layernorm = nn.RMSNorm(d.hidden, eps=d.eps)
        self.qkv = nn.Linear(d.hidden, q + 2 * kv, bias=False)
        self.o_proj = nn.Linear(q, d.hidden, bias=False)
        self.q_norm = nn.RMSNorm(d.head_dim, eps=d.eps)
        self.k_norm = nn.RMSNorm(d.head_dim, eps=d.eps)
        self.gate_up = nn.Linear(d.hidden, 2 * d.intermediate, bias=False)
        self.down_proj = nn.Linear(d.intermediate, d.hidden, bias=False)


class Context:
    """Keys and values of one request's committed tokens, every layer's, in temporal order.

    Buffers have room to spare; a block's own rows are written behind `length` and forgotten by not advancing it.
    """

    def __init__(self, d: Descriptor, buffers: Mapping[str, mx.array] | None = None, length: int = 0) -> None:
        """`buffers`: of a context that was kept, with `length` rows in use."""
        kept = buffers or {}
        self.length = length
        self.keys = [kept.get(f"keys.{layer}") for layer in range(d.layers)]  # [1, kv_heads, capacity, head_dim]
        self.values = [kept.get(f"values.{layer}") for layer in range(d.layers)]

    def write(self, layer: int, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        """Put rows [1, kv_heads, n, head_dim] behind the context of one layer. Returns the layer's whole buffers."""
        end = self.length + keys.shape[2]
        old_keys, old_values = self.keys[layer], self.values[layer]
        if old_keys is None or old_values is None or old_keys.shape[2] < end:
            old_keys, old_values = self._grown(old_keys, keys, end), self._grown(old_values, values, end)
        old_keys[..., self.length : end, :] = keys
        old_values[..., self.length : end, :] = values
        self.keys[layer], self.values[layer] = old_keys, old_values
        return old_keys, old_values

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


class Backbone(nn.Module):
    """Shapes: features [n, taps * target hidden], slots [block, hidden]."""

    def __init__(self, d: Descriptor, tap_width: int) -> None:
        super().__init__()
        self._d = d
        self.fc = nn.Linear(tap_width, d.hidden, bias=False)
        self.hidden_norm = nn.RMSNorm(d.hidden, eps=d.eps)
        # Context keys and values of every layer come from the same rows, so they are one product: [k; v] by layer.
        self.context_kv = nn.Linear(d.hidden, d.layers * 2 * d.kv_heads * d.head_dim, bias=False)
        self.layers = [Layer(d) for _ in range(d.layers)]
        self.norm = nn.RMSNorm(d.hidden, eps=d.eps)
        self._rope: Any = initialize_rope(d.head_dim, d.rope_theta, False, d.rope_scaling, d.max_position)

    def fuse(self, features: mx.array) -> mx.array:
        """Target hidden states -> context rows [n, hidden], shared by all layers."""
        return self.hidden_norm(self.fc(features))

    def observe(self, context: Context, features: mx.array) -> None:
        """Append the context rows of committed tokens."""
        d, rows = self._d, features.shape[0]
        kv = self.context_kv(self.fuse(features))
        # [n, layers, k or v, kv_heads, head_dim] -> [layers, k or v, kv_heads, n, head_dim]
        kv = kv.reshape(rows, d.layers, 2, d.kv_heads, d.head_dim).transpose(1, 2, 3, 0, 4)
        for index, layer in enumerate(self.layers):
            keys = self._rope(layer.k_norm(kv[index : index + 1, 0]), offset=context.length)
            context.write(index, keys, kv[index : index + 1, 1])
        context.length += rows

    def block(self, context: Context, slots: mx.array) -> mx.array:
        """Run embedded slots [block, hidden] after the context; hidden states after the final norm. Context is kept."""
        hidden = slots
        for index in range(len(self.layers)):
            hidden = self.layer(index, context, hidden)
        return self.norm(hidden)

    def layer(self, index: int, context: Context, hidden: mx.array) -> mx.array:
        d, layer, start = self._d, self.layers[index], context.length
        size = hidden.shape[0]
        q_width, kv_width = d.heads * d.head_dim, d.kv_heads * d.head_dim
        qkv = layer.qkv(layer.input_layernorm(hidden))
        queries, keys, values = mx.split(qkv, [q_width, q_width + kv_width], axis=-1)
        queries = queries.reshape(1, size, d.heads, d.head_dim).transpose(0, 2, 1, 3)
        keys = keys.reshape(1, size, d.kv_heads, d.head_dim).transpose(0, 2, 1, 3)
        values = values.reshape(1, size, d.kv_heads, d.head_dim).transpose(0, 2, 1, 3)
        queries = self._rope(layer.q_norm(queries), offset=start)
        keys = self._rope(layer.k_norm(keys), offset=start)
        all_keys, all_values = context.write(index, keys, values)

        window = d.windows[index]
        # The oldest row that any slot can see: the first slot's window decides.
        oldest = 0 if window is None else max(0, start - window + 1)
        out = mx.fast.scaled_dot_product_attention(
            queries,
            all_keys[..., oldest : start + size, :],
            all_values[..., oldest : start + size, :],
            scale=d.head_dim**-0.5,
            mask=_mask(size, start, oldest, window, d.causal[index]),
        )
        hidden = hidden + layer.o_proj(out.transpose(0, 2, 1, 3).reshape(size, q_width))
        gate, up = mx.split(layer.gate_up(layer.post_attention_layernorm(hidden)), 2, axis=-1)
        return hidden + layer.down_proj(nn.silu(gate) * up)


def _mask(size: int, start: int, oldest: int, window: int | None, causal: bool) -> mx.array | None:
    """[block, keys] bool, or None when every slot sees everything. A key is in the window iff q - k < window."""
    if window is None and not causal:
        return None
    query = mx.arange(start, start + size)[:, None]
    key = mx.arange(oldest, start + size)[None]
    visible = mx.ones((size, start + size - oldest), dtype=mx.bool_)
    if window is not None:
        visible = visible & (query - key < window)
    return visible & (key <= query) if causal else visible


def backbone_weights(checkpoint: Checkpoint) -> dict[str, mx.array]:
    """The checkpoint's backbone tensors under this module's names, with products fused along their outputs."""
    weights, layers = checkpoint.weights, range(checkpoint.descriptor.layers)

    def fused(*parts: str) -> mx.array:
        return mx.concatenate([weights[f"{part}.weight"] for part in parts], axis=0)

    out = {f"{name}.weight": weights[f"{name}.weight"] for name in ("fc", "hidden_norm", "norm")}
    for index in layers:
        at = f"layers.{index}."
        for name in ("input_layernorm", "post_attention_layernorm"):
            out[f"{at}{name}.weight"] = weights[f"{at}{name}.weight"]
        for name in ("o_proj", "q_norm", "k_norm"):
            out[f"{at}{name}.weight"] = weights[f"{at}self_attn.{name}.weight"]
        out[f"{at}qkv.weight"] = fused(*(f"{at}self_attn.{name}_proj" for name in "qkv"))
        out[f"{at}gate_up.weight"] = fused(*(f"{at}mlp.{name}_proj" for name in ("gate", "up")))
        out[f"{at}down_proj.weight"] = weights[f"{at}mlp.down_proj.weight"]
    out["context_kv.weight"] = fused(*(f"layers.{index}.self_attn.{name}_proj" for index in layers for name in "kv"))
    return out
