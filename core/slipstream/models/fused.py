"""A whole forward of a few rows on NVIDIA GPUs, in five operations a layer where mlx-lm's model has sixteen.

Described once for each number of rows and then kept as a graph (`mx.compile`): of a small model the host's work was
five of six milliseconds. Only for layers as Llama has them; `Target` compares the results with the model's own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakMethod

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx_lm.models import llama, qwen2, qwen3

from slipstream.models import few_rows
from slipstream.models.cache import TargetCache
from slipstream.models.fused_kernels import Heads, add_norm, attend
from slipstream.models.fused_product import Norm, Product
from slipstream.models.joined import Part

TOKENS = 512  # of all rows together: beyond it a forward is no longer short
ROWS = 32  # whose caches one kernel takes
HEAD_ROWS = 16  # up to which the output head is multiplied by a kernel of ours
KEYS = few_rows.KEYS
STEP, WIDE, WIDE_STEP = 4, 16, 8  # tokens of several rows are filled up to a multiple of the first, or of the last
GRAPHS = 400  # shapes that are kept, of a few hundred kilobytes each

Call = Callable[[mx.array], mx.array]


@dataclass(frozen=True, slots=True)
class FusedLayer:
    """What a layer multiplies by, and how its heads are laid out."""

    qkv: Call  # queries, keys and values in one product
    out: Call
    gate_up: Call
    down: Call
    norms: tuple[nn.RMSNorm, nn.RMSNorm]  # before the attention, and behind it
    heads: Heads

    @classmethod
    def of(cls, layer: Any) -> FusedLayer | None:
        """One of mlx-lm's. None: it is of another kind."""
        if not isinstance(layer, llama.TransformerBlock | qwen2.TransformerBlock | qwen3.TransformerBlock):
            return None
        attention, mlp = layer.self_attn, layer.mlp
        qkv, gate_up = _joint(attention.q_proj), _joint(mlp.gate_proj)
        if qkv is None or gate_up is None:
            return None
        size = qkv.weight.shape[0] // (attention.n_heads + 2 * (attention.n_kv_heads or attention.n_heads))
        freqs = turning(attention.rope, size)
        if freqs is None or size not in few_rows.HEAD_SIZES:
            return None
        norms, eps = None, 0.0
        if isinstance(layer, qwen3.TransformerBlock):
            query_norm, key_norm = layer.self_attn.q_norm, layer.self_attn.k_norm
            norms, eps = (query_norm.weight, key_norm.weight), query_norm.eps
        heads = Heads(attention.n_heads, freqs, mx.array([attention.scale, eps], dtype=mx.float32), norms)
        around = (layer.input_layernorm, layer.post_attention_layernorm)
        return cls(qkv, attention.o_proj, gate_up, mlp.down_proj, around, heads)


class Graphs:
    """Functions that MLX keeps as graphs: one for each of the shapes that they are called with."""

    made = 0  # by all of them: a round in which one was made took longer than later ones will

    def __init__(self) -> None:
        self._kept: dict[Hashable, Callable[..., list[mx.array]]] = {}
        self._shapes: set[Hashable] = set()

    def has(self, first: Hashable, shapes: Hashable) -> bool:
        return (first, shapes) in self._shapes

    def of(
        self, function: Callable[..., list[mx.array]], first: Hashable, shapes: Hashable
    ) -> Callable[..., list[mx.array]]:
        """`function`, a method, with its first argument, a constant, to be called with arrays of such shapes."""
        if (first, shapes) not in self._shapes:
            if len(self._shapes) >= GRAPHS:  # rows of every width and capacity come together in the end
                self._kept.clear()
                self._shapes.clear()
            self._shapes.add((first, shapes))
            Graphs.made += 1
        if first not in self._kept:
            self._kept[first] = mx.compile(_with(first, WeakMethod(function)))
        return self._kept[first]


def _with(first: Hashable, method: WeakMethod[Callable[..., list[mx.array]]]) -> Callable[..., list[mx.array]]:
    """Held strongly, the owner of its graphs would be in a circle, and an unloaded model's weights stay for long."""

    def call(*arrays: Any) -> list[mx.array]:
        function = method()
        assert function is not None
        return function(first, *arrays)

    return call


@dataclass(frozen=True, slots=True)
class Products:
    """What a layer multiplies by, as kernels of ours take it."""

    qkv: Product
    out: Product
    gate_up: Product
    down: Product

    @classmethod
    def of(cls, layer: FusedLayer) -> Products | None:
        """None: its weights or its norms are of another kind."""
        found = [Product.of(each) for each in (layer.qkv, layer.out, layer.gate_up, layer.down)]
        qkv, out, gate_up, down = found
        if qkv is None or out is None or gate_up is None or down is None:
            return None
        is_plain = all(each.bias is None for each in (out, gate_up, down))
        dtypes = {each.dtype for each in (qkv, out, gate_up, down)} | {norm.weight.dtype for norm in layer.norms}
        return cls(qkv, out, gate_up, down) if is_plain and len(dtypes) == 1 else None


class Stack:
    """Layers and the norm behind them."""

    def __init__(self, layers: Sequence[FusedLayer], norm: nn.RMSNorm, *, is_deep: bool = False) -> None:
        """`is_deep`: there are so many that kernels for their products are worth compiling."""
        self.layers = layers
        self._norm = norm
        norms = [norm, *(each for layer in layers for each in layer.norms)]
        self._eps = {each.eps: mx.array([each.eps], dtype=mx.float32) for each in norms}
        mx.eval(list(self._eps.values()), [layer.heads.arrays for layer in layers])
        ours = [Products.of(layer) for layer in layers] if is_deep else []
        known = [each for each in ours if each is not None]
        self._products = known if len(known) == len(layers) else []

    @property
    def norm(self) -> Norm:
        """Behind the layers."""
        return Norm(self._norm.weight, self._eps[self._norm.eps])

    def run(
        self, hidden: mx.array, at: mx.array, buffers: Sequence[Sequence[mx.array]], *, writes: bool
    ) -> tuple[mx.array, list[mx.array]]:
        """Of hidden states [tokens, width]: those after the norm, and those behind each layer.

        `at`, and `buffers` of each layer, as `attend` takes them.
        """
        is_ours = bool(self._products) and hidden.dtype == self._products[0].qkv.dtype
        return (self._with_our_products if is_ours else self._with_mlx_products)(hidden, at, buffers, writes=writes)

    def _with_our_products(
        self, hidden: mx.array, at: mx.array, buffers: Sequence[Sequence[mx.array]], *, writes: bool
    ) -> tuple[mx.array, list[mx.array]]:
        """Five operations a layer."""
        found: list[mx.array] = []
        for layer, product, rows in zip(self.layers, self._products, buffers, strict=True):
            before, behind = (Norm(each.weight, self._eps[each.eps]) for each in layer.norms)
            attended = attend(product.qkv(hidden, norm=before), at, layer.heads, rows, writes=writes)
            hidden = product.out(attended, plus=hidden)
            hidden = product.down(product.gate_up(hidden, norm=behind, gated=True), plus=hidden)
            found.append(hidden)
        return self._norm(hidden), found

    def _with_mlx_products(
        self, hidden: mx.array, at: mx.array, buffers: Sequence[Sequence[mx.array]], *, writes: bool
    ) -> tuple[mx.array, list[mx.array]]:
        """Eight, with MLX's products."""
        normed = self.layers[0].norms[0](hidden)
        after = [*(layer.norms[0] for layer in self.layers[1:]), self._norm]  # behind each layer
        found: list[mx.array] = []
        for layer, rows, then in zip(self.layers, buffers, after, strict=True):
            attended = attend(layer.qkv(normed), at, layer.heads, rows, writes=writes)
            behind = layer.norms[1]
            hidden, normed = add_norm(hidden, layer.out(attended), behind.weight, self._eps[behind.eps])
            gate, up = mx.split(layer.gate_up(normed), 2, axis=-1)
            hidden, normed = add_norm(hidden, layer.down(nn.silu(gate) * up), then.weight, self._eps[then.eps])
            found.append(hidden)
        return normed, found


class Fused:
    """The forward of one model."""

    def __init__(self, embed: Call, stack: Stack, logits: Call, head: Product | None) -> None:
        self._embed = embed
        self._stack = stack
        self._logits = logits
        self._head = head
        self._graphs = Graphs()

    @classmethod
    def of(cls, embed: Call, layers: Sequence[Any], norm: Any, logits: Call, head: Any = None) -> Fused | None:
        """`embed`: ids to hidden states; `logits`: those after the norm to logits. None: not a model for this.

        `head`: the module whose product with them the logits are, if they are no more than that.
        """
        ours = [FusedLayer.of(layer) for layer in layers]
        known = [layer for layer in ours if layer is not None]
        norms = [norm, *(each for layer in known for each in layer.norms)]
        if len(known) < len(ours) or not all(type(each) is nn.RMSNorm for each in norms):
            return None
        dtypes = {each.weight.dtype for each in norms} | {
            each.dtype for layer in known for each in layer.heads.norms or ()
        }
        if dtypes != {embed(mx.array([0])).dtype}:
            return None
        stack = Stack(known, norm, is_deep=True)
        return cls(embed, stack, logits, None if head is None else Product.of(head))

    @staticmethod
    def covers(caches: Sequence[TargetCache], widths: Sequence[int]) -> bool:
        """Whether rows with these caches can get so many tokens each in one pass."""
        return (
            sum(widths) <= TOKENS
            and len(widths) <= ROWS
            and all(
                cache.is_in_place and 0 < cache.length <= KEYS - width - WIDE_STEP
                for cache, width in zip(caches, widths, strict=True)
            )
        )

    def forward(
        self, tokens: mx.array, caches: Sequence[TargetCache], widths: Sequence[int], taps: Sequence[int]
    ) -> tuple[mx.array, dict[int, mx.array]]:
        """Logits of all `tokens` [tokens] of rows one behind the other, and tapped hidden states [tokens, hidden].

        The tokens are added to the caches.
        """
        count = sum(widths)
        padded = list(widths)
        if len(widths) > 1:  # rows of all widths together: fewer kinds of graph
            padded[-1] += -count % (STEP if count <= WIDE else WIDE_STEP)
            tokens = mx.concatenate([tokens, mx.zeros((sum(padded) - count,), tokens.dtype)])
        at = places([cache.length for cache in caches], padded)
        arrays = [cache.buffers(width) for cache, width in zip(caches, padded, strict=True)]
        buffers = [[array for row in arrays for array in row[layer]] for layer in range(len(self._stack.layers))]
        wanted = tuple(taps)
        run = self._graphs.of(self._pass, wanted, (tokens.shape, *(each.shape for each in buffers[0])))
        logits, *tapped = run(tokens, at, buffers)
        for cache, width in zip(caches, widths, strict=True):
            cache.written(width, logits)
        if tokens.shape[0] > count:
            logits, tapped = logits[:count], [rows[:count] for rows in tapped]
        return logits, dict(zip(wanted, tapped, strict=True))

    def describe(self, cache: TargetCache, taps: Sequence[int], most: int) -> None:
        """Make the graphs of up to `most` tokens after what one cache holds, so that no round has to. Runs nothing."""
        buffers = [list(layer) for layer in cache.like_buffers(most)]
        for width in range(1, most + 1):
            tokens, shapes = mx.zeros((width,), mx.int32), tuple(each.shape for each in buffers[0])
            if not self._graphs.has(tuple(taps), (tokens.shape, *shapes)):
                run = self._graphs.of(self._pass, tuple(taps), (tokens.shape, *shapes))
                run(tokens, places([cache.length], [width]), buffers)

    def _pass(
        self, taps: tuple[int, ...], tokens: mx.array, at: mx.array, buffers: list[list[mx.array]]
    ) -> list[mx.array]:
        embedded = self._embed(tokens)
        normed, found = self._stack.run(embedded, at, buffers, writes=True)
        head = self._head if tokens.shape[0] <= HEAD_ROWS else None
        if head is not None and head.dtype == normed.dtype:
            logits = head(found[-1], norm=self._stack.norm)
        else:
            logits = self._logits(normed)
        return [logits, *(embedded if tap < 0 else found[tap] for tap in taps)]


def _joint(part: Any) -> Any:
    """The product that a part belongs to, an `nn.Linear` or a packed one. None: to none."""
    return part.joint.product if isinstance(part, Part) else None


def places(lengths: Sequence[int], widths: Sequence[int], *, causal: bool = True) -> mx.array:
    """What `attend` is told of the tokens behind caches of these lengths: [4, tokens]."""
    rows = np.repeat(np.arange(len(widths)), widths)
    held, first = np.array(lengths)[rows], (np.cumsum(widths) - widths)[rows]
    own = np.arange(len(rows)) - first
    seen = held + (own + 1 if causal else np.array(widths)[rows])
    return mx.array(np.stack([rows, held + own, first, seen]).astype(np.int32))


def turning(rope: Any, size: int) -> mx.array | None:
    """Radians a position of each pair of a head. None: heads are turned in another way."""
    if getattr(rope, "traditional", False) or getattr(rope, "dims", None) != size:
        return None
    if isinstance(rope, nn.RoPE):
        return mx.array([rope.scale * rope.base ** (-2 * pair / size) for pair in range(size // 2)])
    found = getattr(rope, "_freqs", None)  # wavelengths, as those that stretch each differently keep them
    return None if found is None or hasattr(rope, "mscale") else 1.0 / found
