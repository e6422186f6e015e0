"""The network that DSpark and DFlash share: a small transformer over [context rows ; block slots].

Context rows come from the target's hidden states; block slots are the anchor and mask tokens (docs/drafters.md).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.rope_utils import initialize_rope

from slipstream.drafters.context import Context, Rows, joined, parted
from slipstream.drafters.descriptor import Checkpoint, Descriptor
from slipstream.drafters.fused import FusedBlock
from slipstream.models import on_cpu
from slipstream.models.host import number, worst

logger = logging.getLogger(__name__)

MOST_PLACED = 32768  # rows at once: a kernel's grid is no longer
TOLERANCE = 4e-2  # of values around one: what half-precision arithmetic in another order may change


class DynamicConvolution(nn.Module):
    """DFlash 2's convolution along the slots of a block, its taps computed from the slots (drafters.md §3.4)."""

    def __init__(self, d: Descriptor) -> None:
        super().__init__()
        self.base_kernel = mx.zeros((2, d.conv_kernel, d.hidden))
        groups = d.hidden // d.conv_group
        self.kernel_projection = nn.Linear(d.hidden, 2 * d.conv_kernel * groups, bias=False)
        self._taps, self._groups, self._group = d.conv_kernel, groups, d.conv_group

    def kernels(self, hidden: mx.array) -> mx.array:
        """Taps before and after the sublayer for every slot: [2, block, taps, hidden]."""
        dynamic = self.kernel_projection(hidden).reshape(-1, 2, self._taps, self._groups, 1)
        wide = mx.broadcast_to(dynamic, (*dynamic.shape[:-1], self._group)).flatten(-2)  # a tap for each channel
        return (wide + self.base_kernel).transpose(1, 0, 2, 3)


def mixed(kernel: mx.array, rows: mx.array, widths: Sequence[int]) -> mx.array:
    """Rows [slots, hidden] with kernel [slots, taps, hidden]: tap t reads the slot t before, none before a block."""
    blocks = zip(parted(kernel, widths), parted(rows, widths), strict=True)
    return joined([_mixed(kernel, rows) for kernel, rows in blocks])


def _mixed(kernel: mx.array, rows: mx.array) -> mx.array:
    out = kernel[:, 0] * rows
    for tap in range(1, kernel.shape[1]):
        out = out + kernel[:, tap] * mx.pad(rows, [(tap, 0), (0, 0)])[: rows.shape[0]]
    return out


class Layer(nn.Module):
    """One layer. q, k and v are one product, gate and up another: small matrices cost launches, not arithmetic."""

    def __init__(self, d: Descriptor) -> None:
        super().__init__()
        q, kv = d.heads * d.head_dim, d.kv_heads * d.head_dim
        self.input_layernorm = nn.RMSNorm(d.hidden, eps=d.eps)
        self.post_attention_layernorm = nn.RMSNorm(d.hidden, eps=d.eps)
        if d.is_gemma:
            self.pre_feedforward_layernorm = nn.RMSNorm(d.hidden, eps=d.eps)
            self.post_feedforward_layernorm = nn.RMSNorm(d.hidden, eps=d.eps)
            self.layer_scalar = mx.ones((1,))
        self.qkv = nn.Linear(d.hidden, q * (2 if d.gated else 1) + kv * (1 if d.keys_are_values else 2), bias=False)
        self.o_proj = nn.Linear(q, d.hidden, bias=False)
        self.q_norm = nn.RMSNorm(d.head_dim, eps=d.eps)
        self.k_norm = nn.RMSNorm(d.head_dim, eps=d.eps)
        if d.sinks:
            self.attention_sink_bias = mx.zeros((d.heads,))
        self.gate_up = nn.Linear(d.hidden, 2 * d.intermediate, bias=False)
        self.down_proj = nn.Linear(d.intermediate, d.hidden, bias=False)
        if d.conv_kernel:
            self.attention_conv = DynamicConvolution(d)
            self.mlp_conv = DynamicConvolution(d)


class Backbone(nn.Module):
    """Shapes: features [n, taps * target hidden], slots [block, hidden]."""

    def __init__(self, d: Descriptor, tap_width: int) -> None:
        super().__init__()
        self._d = d
        self._tap_width = tap_width
        self.fc = nn.Linear(tap_width, d.hidden, bias=False)
        self.hidden_norm = nn.RMSNorm(d.hidden, eps=d.eps)
        # Context keys and values of every layer come from the same rows, so they are one product: [k; v] by layer.
        self._kinds = 1 if d.keys_are_values else 2
        self.context_kv = nn.Linear(d.hidden, d.layers * self._kinds * d.kv_heads * d.head_dim, bias=False)
        self.layers = [Layer(d) for _ in range(d.layers)]
        self.norm = nn.RMSNorm(d.hidden, eps=d.eps)
        self._rope: Any = _rope(d)
        self._fused: FusedBlock | None = None

    def fuse_layers(self) -> FusedBlock | None:
        """Let fewer operations do the work, where they can: once the weights are there. Returns what does."""
        fused = FusedBlock.of(self, self._d, self._rope)
        self._fused = fused if fused is not None and self._agrees(fused) else None
        return self._fused

    def _agrees(self, fused: FusedBlock) -> bool:
        """Whether it does what the layers do, on this machine. Tried once."""
        dtype = self.norm.weight.dtype
        features, slots = (
            mx.random.normal((rows, width), key=mx.random.key(rows)).astype(dtype)
            for rows, width in ((5, self._tap_width), (4, self._d.hidden))
        )
        ours, plain = Context(self._d.layers), Context(self._d.layers)
        try:
            self.observe([plain], [features])
            self._fused = fused
            self.observe([ours], [features])
            pairs = [(each[:, :, :5], ours.buffers()[name][:, :, :5]) for name, each in plain.buffers().items()]
            pairs.append((self.block([plain], [slots]), fused.run(slots, fused.at([ours], 4), fused.buffers([ours]))))
            apart = worst(
                [
                    number(mx.max(mx.abs(a - b)).astype(mx.float32))
                    / max(number(mx.max(mx.abs(a)).astype(mx.float32)), 1.0)
                    for a, b in pairs
                ]
            )
        except (RuntimeError, ValueError) as error:
            logger.warning("drafting takes more operations, which is slower: %s", str(error).splitlines()[0])
            return False
        if not apart <= TOLERANCE:  # NaN too
            logger.warning("drafting takes more operations, which is slower: fewer were off by %.3g", apart)
        return apart <= TOLERANCE

    def fuse(self, features: mx.array) -> mx.array:
        """Target hidden states -> context rows [n, hidden], shared by all layers."""
        return self.hidden_norm(self.fc(features))

    def observe(self, contexts: Sequence[Context], features: Sequence[mx.array]) -> None:
        """Append the context rows of committed tokens, of each request's to its own context."""
        d, rows = self._d, Rows(contexts, [each.shape[0] for each in features])
        kv = self.context_kv(self.fuse(joined(features)))
        if self._fused is not None and kv.shape[0] <= MOST_PLACED:
            placed = self._fused.placed(kv, rows.positions)
            for index in range(d.layers):
                rows.write(index, placed[index, :1], placed[index, 1:])
            rows.advance()
            return
        # [n, layers, k or v, kv_heads, head_dim] -> [layers, k or v, kv_heads, n, head_dim]
        kv = kv.reshape(-1, d.layers, self._kinds, d.kv_heads, d.head_dim).transpose(1, 2, 3, 0, 4)
        for index, layer in enumerate(self.layers):
            keys, values = self._placed(layer, kv[index : index + 1, 0], kv[index : index + 1, -1], rows.offset)
            rows.write(index, keys, values)
        rows.advance()

    def block(self, contexts: Sequence[Context], slots: Sequence[mx.array]) -> mx.array:
        """Run embedded slots [block, hidden] behind each context; hidden states of all after the final norm.

        Several blocks are one sequence to all products; each block attends to itself and its own context, which stays.
        """
        rows = Rows(contexts, [block.shape[0] for block in slots])
        hidden = joined(slots)
        for index in range(len(self.layers)):
            hidden = self.layer(index, rows, hidden)
        return self.norm(hidden)

    def layer(self, index: int, rows: Rows, hidden: mx.array) -> mx.array:
        d, layer = self._d, self.layers[index]
        before_mlp = layer.pre_feedforward_layernorm if d.is_gemma else layer.post_attention_layernorm
        normed = layer.input_layernorm(hidden)
        if d.conv_kernel:
            before, after = layer.attention_conv.kernels(normed)
            seen = mixed(before, normed, rows.widths)
            out = mixed(after, self._attention(index, rows, seen), rows.widths)
        else:
            out = self._attention(index, rows, normed)
        hidden = hidden + (layer.post_attention_layernorm(out) if d.is_gemma else out)

        normed = before_mlp(hidden)
        if d.conv_kernel:
            before, after = layer.mlp_conv.kernels(normed)
            out = mixed(after, self._mlp(layer, mixed(before, normed, rows.widths)), rows.widths)
        else:
            out = self._mlp(layer, normed)
        if d.is_gemma:
            return (hidden + layer.post_feedforward_layernorm(out)) * layer.layer_scalar
        return hidden + out

    def _mlp(self, layer: Layer, rows: mx.array) -> mx.array:
        gate, up = mx.split(layer.gate_up(rows), 2, axis=-1)
        activated = nn.gelu_approx(gate) if self._d.is_gemma else _silu(gate)
        return layer.down_proj(activated * up)

    def _attention(self, index: int, rows: Rows, slots: mx.array) -> mx.array:
        """Slots [slots, hidden] of each block over its context and the block."""
        d, layer = self._d, self.layers[index]
        q_width, kv_width = d.heads * d.head_dim, d.kv_heads * d.head_dim
        qkv = layer.qkv(slots)
        gate = None
        if d.gated:  # each head's rows are [queries ; gate]
            both, keys, values = mx.split(qkv, [2 * q_width, 2 * q_width + kv_width], axis=-1)
            queries, gate = mx.split(both.reshape(-1, d.heads, 2 * d.head_dim), 2, axis=-1)
        elif d.keys_are_values:
            queries, keys = mx.split(qkv, [q_width], axis=-1)
            values = keys
        else:
            queries, keys, values = mx.split(qkv, [q_width, q_width + kv_width], axis=-1)
        queries = queries.reshape(1, -1, d.heads, d.head_dim).transpose(0, 2, 1, 3)
        keys = keys.reshape(1, -1, d.kv_heads, d.head_dim).transpose(0, 2, 1, 3)
        values = values.reshape(1, -1, d.kv_heads, d.head_dim).transpose(0, 2, 1, 3)
        queries = self._turned(layer.q_norm(queries), rows.offset)
        keys, values = self._placed(layer, keys, values, rows.offset)
        each = zip(rows.contexts, rows.part(queries), rows.part(keys), rows.part(values), strict=True)
        out = joined([self._attended(index, context, *own) for context, *own in each])
        if gate is not None:
            out = out * mx.sigmoid(gate.reshape(-1, q_width))
        return layer.o_proj(out)

    def _attended(self, index: int, context: Context, queries: mx.array, keys: mx.array, values: mx.array) -> mx.array:
        """One block's heads [block, queries' width] over its context and itself."""
        d, start, size = self._d, context.length, queries.shape[2]
        all_keys, all_values = context.write(index, keys, values)
        window = d.windows[index]
        # The oldest row that any slot can see: the first slot's window decides.
        oldest = 0 if window is None else max(0, start - window + 1)
        keys, values = (each[..., oldest : start + size, :] for each in (all_keys, all_values))
        scale = 1.0 if d.is_gemma else d.head_dim**-0.5
        mask = _mask(size, start, oldest, window, d.causal[index])
        sinks = self.layers[index].attention_sink_bias.astype(queries.dtype) if d.sinks else None
        if sinks is None and queries.dtype == mx.float32 and on_cpu.is_ours():
            out = on_cpu.attend(queries, keys, values, scale, mask)
        else:
            out = mx.fast.scaled_dot_product_attention(queries, keys, values, scale=scale, mask=mask, sinks=sinks)
        return out.transpose(0, 2, 1, 3).reshape(size, -1)

    def _placed(
        self, layer: Layer, keys: mx.array, values: mx.array, offset: int | mx.array
    ) -> tuple[mx.array, mx.array]:
        """Keys and values [1, kv_heads, n, head_dim] as the context keeps them: normed, and keys turned."""
        if self._d.is_gemma:
            values = mx.fast.rms_norm(values, None, self._d.eps)
        return self._turned(layer.k_norm(keys), offset), values

    def _turned(self, heads: mx.array, offset: int | mx.array) -> mx.array:
        """Rotary embedding of [1, heads, n, head_dim]; MLX takes a position for each member of a batch."""
        if isinstance(offset, int):
            return self._rope(heads, offset=offset)
        return self._rope(heads.transpose(2, 1, 0, 3), offset=offset).transpose(2, 1, 0, 3)


def _silu(rows: mx.array) -> mx.array:
    return on_cpu.silu(rows) if rows.dtype == mx.float32 and on_cpu.is_ours() else nn.silu(rows)


def _rope(d: Descriptor) -> Any:
    rope: Any = initialize_rope(d.rope.dims, d.rope.theta, d.rope.interleaved, d.rope.scaling, d.max_position)
    if d.rope.scaling and (factor := d.rope.scaling.get("attention_factor")) is not None:
        rope.mscale = float(factor)  # YaRN's factor on queries and keys, where the config fixes it
    return rope


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
    d, weights, layers = checkpoint.descriptor, checkpoint.weights, range(checkpoint.descriptor.layers)
    kv = "k" if d.keys_are_values else "kv"

    def fused(*parts: str) -> mx.array:
        return mx.concatenate([weights[f"{part}.weight"] for part in parts], axis=0)

    def norm(name: str) -> mx.array:
        weight = weights[f"{name}.weight"]
        return weight.astype(mx.float32) + 1.0 if d.offset_norms else weight

    out = {"fc.weight": weights["fc.weight"]} | {f"{name}.weight": norm(name) for name in ("hidden_norm", "norm")}
    for index in layers:
        at = f"layers.{index}."
        norms = ["input_layernorm", "post_attention_layernorm"]
        if d.is_gemma:
            norms += ["pre_feedforward_layernorm", "post_feedforward_layernorm"]
            out[f"{at}layer_scalar"] = weights[f"{at}layer_scalar"]
        out |= {f"{at}{name}.weight": norm(at + name) for name in norms}
        out |= {f"{at}{name}.weight": norm(f"{at}self_attn.{name}") for name in ("q_norm", "k_norm")}
        if d.sinks:
            out[f"{at}attention_sink_bias"] = weights[f"{at}self_attn.attention_sink_bias"]
        if d.conv_kernel:
            for conv in ("attention_conv", "mlp_conv"):
                for name in ("base_kernel", "kernel_projection.weight"):
                    out[f"{at}{conv}.{name}"] = weights[f"{at}{conv}.{name}"]
        out[f"{at}o_proj.weight"] = weights[f"{at}self_attn.o_proj.weight"]
        out[f"{at}qkv.weight"] = fused(*(f"{at}self_attn.{name}_proj" for name in "q" + kv))
        out[f"{at}gate_up.weight"] = fused(*(f"{at}mlp.{name}_proj" for name in ("gate", "up")))
        out[f"{at}down_proj.weight"] = weights[f"{at}mlp.down_proj.weight"]
    out["context_kv.weight"] = fused(*(f"layers.{index}.self_attn.{name}_proj" for index in layers for name in kv))
    return out
