"""What DSpark and DFlash have in common around the backbone: weights, tables bound to the target, and state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import mlx.core as mx
import mlx.nn as nn

from slipstream.drafters.backbone import Backbone, backbone_weights
from slipstream.drafters.context import Context
from slipstream.drafters.descriptor import LOG_SNR_FEATURES, Checkpoint
from slipstream.drafters.formats import check_pair
from slipstream.drafters.protocol import Draw, Proposal, Wish
from slipstream.models import on_cpu
from slipstream.models.families import softcap
from slipstream.models.fused import Graphs
from slipstream.types import Mode

Picked = tuple[mx.array, mx.array, mx.array | None]
"""Tokens [requests, n], logits [requests, n, vocabulary] and confidence [requests, n]."""

GROUP_SIZES = (64, 32)  # of weights packed at load: the first that divides the width


class Tables(Protocol):
    """What a drafter needs of its target: the tables it may be bound to, and the numbers that must agree."""

    model_type: str
    hidden_size: int
    layer_count: int
    vocabulary: int
    embed_scale: float

    @property
    def dtype(self) -> mx.Dtype: ...
    def embed_rows(self, tokens: mx.array) -> mx.array: ...
    def head_rows(self, hidden: mx.array) -> mx.array: ...
    def head_part(self, ids: mx.array) -> Callable[[mx.array], mx.array]: ...


def proposals(
    wishes: Sequence[Wish], tokens: mx.array, logits: mx.array, confidence: mx.array | None = None
) -> list[Proposal]:
    """Each request's part of tokens [requests, n], logits [requests, n, vocabulary] and confidence [requests, n]."""
    return [
        Proposal(tokens[row], None if confidence is None else confidence[row], logits[row]).first(
            min(wish.limit, tokens.shape[1])
        )
        for row, wish in enumerate(wishes)
    ]


class BlockState:
    """One request's drafter context."""

    def __init__(self, context: Context) -> None:
        self.context = context

    @property
    def length(self) -> int:
        return self.context.length


class BlockDrafter(ABC):
    """Embedding, backbone and output head of a drafter that fills a block of slots at once.

    `dtype` is what it computes in. `bits`: 0 for plain weights, 4 or 8 to pack them when loaded. Raises PairMismatch
    when the checkpoint belongs to another target.
    """

    mode: Mode

    def __init__(self, checkpoint: Checkpoint, target: Tables, *, dtype: mx.Dtype, bits: int) -> None:
        d = checkpoint.descriptor
        check_pair(
            checkpoint,
            hidden=target.hidden_size,
            layers=target.layer_count,
            vocabulary=target.vocabulary,
            target=target.model_type,
        )
        self.descriptor = d
        self.taps = d.taps
        self.block = d.proposals
        self._target = target
        self._dtype = dtype
        self._bits = bits
        self.backbone = Backbone(d, len(d.taps) * target.hidden_size)
        self._fill(self.backbone, backbone_weights(checkpoint))
        self._own_embed = self._table(checkpoint, "embed_tokens", embedding=True) if d.own_embed else None
        self._own_head = self._table(checkpoint, "lm_head") if d.own_head else None
        if d.own_embed:
            scale = 1.0 if d.embed_scale is None else d.embed_scale
        else:
            scale = target.embed_scale if d.embed_scale is None else d.embed_scale
        self._embed_scale = scale
        self._noise = self._noise_rows(checkpoint)
        self._masks = self._embed(mx.full((d.block - 1,), d.mask_id, dtype=mx.int32))  # [block - 1, hidden]
        if self._noise is not None:
            self._masks = self._masks + self._noise[1:]
        # The target's ids of the tokens it can propose, where these are not all.
        self.draft_ids = None
        if d.is_reduced:
            self.draft_ids = (mx.arange(d.draft_vocabulary) + checkpoint.weights["d2t"]).astype(mx.int32)
        self._head = self._output_head(target)
        mx.eval(self._masks, self.backbone.parameters())
        self._fused = self.backbone.fuse_layers()
        self._graphs = Graphs()

    @property
    def is_fused(self) -> bool:
        """Whether greedy drafts are made in few operations."""
        return self._fused is not None

    @abstractmethod
    def pick(self, hidden: mx.array, last: mx.array, wishes: Sequence[Wish] | None) -> Picked:
        """Choose drafts from hidden states [requests, slots, hidden] and the tokens before them [requests].

        None: all want the likeliest.
        """

    def propose(self, state: BlockState, last: int, limit: int, draw: Draw) -> Proposal:
        return self.propose_together([Wish(self, state, last, limit, draw)])[0]

    def propose_together(self, wishes: Sequence[Wish]) -> list[Proposal]:
        fused = self._fused
        # Each number of drafts would be a graph for each number of requests; slots cost next to nothing there.
        is_whole = fused is not None and len(wishes) > 1
        count = self.block if is_whole else min(max(wish.limit for wish in wishes), self.block)
        last = mx.array([wish.last for wish in wishes], dtype=mx.int32)
        slots = self._slots_for(count)
        contexts = [wish.state.context for wish in wishes]
        if fused is not None and all(wish.is_greedy for wish in wishes) and fused.covers(contexts, slots):
            buffers = fused.buffers(contexts)
            run = self._graphs.of(self._likeliest, count, tuple(each.shape for each in buffers[0]))
            picked = run(last, fused.at(contexts, slots), buffers)
            tokens, logits, confidence = (*picked, None) if len(picked) == 2 else picked
        else:
            tokens, logits, confidence = self.pick(self.hidden(wishes), last, wishes)
        return proposals(wishes, tokens, logits, confidence)

    def describe(self, state: BlockState, most: int) -> None:
        """Make the graphs of up to `most` drafts behind one context, so that no round has to. Runs nothing."""
        fused, contexts = self._fused, [state.context]
        for count in range(1, min(most, self.block) + 1):
            slots = self._slots_for(count)
            if fused is None or not fused.covers(contexts, slots):
                return
            buffers = fused.buffers(contexts)
            shapes = tuple(each.shape for each in buffers[0])
            if not self._graphs.has(count, shapes):
                run = self._graphs.of(self._likeliest, count, shapes)
                run(mx.zeros((1,), mx.int32), fused.at(contexts, slots), buffers)

    def _likeliest(self, count: int, last: mx.array, at: mx.array, buffers: list[list[mx.array]]) -> list[mx.array]:
        """What greedy requests are proposed, as one graph: `pick`, without the confidence where there is none."""
        d, rows, fused = self.descriptor, last.shape[0], self._fused
        assert fused is not None
        anchors = self._anchors(last)
        masks = mx.broadcast_to(self._masks[: self._slots_for(count) - 1], (rows, self._slots_for(count) - 1, d.hidden))
        slots = mx.concatenate([anchors[:, None], masks], axis=1).reshape(-1, d.hidden)
        hidden = fused.run(slots, at, buffers).reshape(rows, -1, d.hidden)[:, : d.first + count]
        return [each for each in self.pick(hidden, last, None) if each is not None]

    def _slots_for(self, count: int) -> int:
        """Slots that must run for so many drafts: all that see each other."""
        return self.descriptor.first + count if all(self.descriptor.causal) else self.descriptor.block

    def begin(self) -> BlockState:
        return BlockState(Context(self.descriptor.layers))

    def observe(self, state: BlockState, tokens: Sequence[int], taps: Mapping[int, mx.array]) -> None:
        self.observe_together([state], [tokens], [taps])

    def observe_together(
        self, states: Sequence[BlockState], tokens: Sequence[Sequence[int]], taps: Sequence[Mapping[int, mx.array]]
    ) -> None:
        del tokens  # it reads hidden states alone
        features = [mx.concatenate([each[layer] for layer in self.taps], axis=-1).astype(self._dtype) for each in taps]
        self.backbone.observe([state.context for state in states], features)

    def arrays(self, state: BlockState) -> list[mx.array]:
        return state.context.arrays()

    def buffers(self, state: BlockState) -> dict[str, mx.array]:
        return state.context.buffers()

    def restore(self, buffers: Mapping[str, mx.array], length: int) -> BlockState:
        return BlockState(Context(self.descriptor.layers, buffers, length))

    def hidden(self, wishes: Sequence[Wish]) -> mx.array:
        """Final hidden states of each request's first slots [requests, slots, hidden], as far as any wish needs them.

        Slots that see each other must all run. Where none sees a later one, those that are not wanted are left out.
        """
        count = min(max(wish.limit for wish in wishes), self.block)
        slots = [self.slots(wish.last)[: self._slots_for(count)] for wish in wishes]
        hidden = self.backbone.block([wish.state.context for wish in wishes], slots)
        return hidden.reshape(len(wishes), -1, self.descriptor.hidden)[:, : self.descriptor.first + count]

    def drawn(self, wishes: Sequence[Wish] | None, logits: mx.array, slot: int) -> mx.array:
        """A token for each request [requests], each by its own rule, from one slot's logits of the tokens it proposes.

        Where all are greedy these need not be spread over the target's vocabulary.
        """
        if wishes is None or all(wish.is_greedy for wish in wishes):
            return self.likeliest(logits)
        logits = self.spread(logits)
        if len(wishes) == 1:
            return wishes[0].draw(logits, slot)
        return mx.concatenate([wish.draw(logits[row : row + 1], slot) for row, wish in enumerate(wishes)])

    def drawn_at_once(self, wishes: Sequence[Wish] | None, logits: mx.array) -> mx.array:
        """The same for slots that do not depend on each other: tokens [requests, slots] of [requests, slots, …]."""
        if wishes is None or all(wish.is_greedy for wish in wishes):
            return self.likeliest(logits).astype(mx.int32)
        spread = self.spread(logits)
        return mx.stack([wish.draw(spread[row], 0) for row, wish in enumerate(wishes)])

    def likeliest(self, logits: mx.array) -> mx.array:
        """The target's ids of the likeliest tokens [...] of logits [..., draft vocabulary]; unsigned if it has all."""
        best = mx.argmax(logits, axis=-1)
        return best if self.draft_ids is None else self.draft_ids[best]

    def slots(self, last: int) -> mx.array:
        """Layer inputs of the block: the anchor's embedding, then masks. [block, hidden]"""
        return mx.concatenate([self._anchors(mx.array([last], dtype=mx.int32)), self._masks], axis=0)

    def _anchors(self, last: mx.array) -> mx.array:
        """The first slots of blocks behind tokens `last` [requests]: [requests, hidden]."""
        anchors = self._embed(last)
        return anchors if self._noise is None else anchors + self._noise[:1]

    def spread(self, logits: mx.array) -> mx.array:
        """Logits of the tokens it can propose [..., draft vocabulary] over the target's [..., vocabulary]."""
        if self.draft_ids is None:
            return logits
        return spread_over(logits, mx.broadcast_to(self.draft_ids, logits.shape), self.descriptor.vocabulary)

    def base_logits(self, hidden: mx.array) -> mx.array:
        """Logits [n, vocabulary] of slots' hidden states, before any Markov bias."""
        d = self.descriptor
        logits = self._head(hidden if d.own_head else hidden.astype(self._target.dtype))
        if d.multiplier != 1.0:
            logits = logits * d.multiplier
        return logits if d.softcap is None else softcap(logits, d.softcap)

    def _output_head(self, target: Tables) -> Callable[[mx.array], mx.array]:
        """Its own head, or the target's, of which only the rows that it can propose are multiplied."""
        if self._own_head is not None:
            return self._own_head
        return target.head_rows if self.draft_ids is None else target.head_part(self.draft_ids)

    def _embed(self, tokens: mx.array) -> mx.array:
        table = self._own_embed
        rows = self._target.embed_rows(tokens) if table is None else table(tokens)
        rows = rows.astype(self._dtype)
        return rows if self._embed_scale == 1.0 else rows * self._embed_scale

    def _noise_rows(self, checkpoint: Checkpoint) -> mx.array | None:
        """What is added to each slot to say how noisy it is [block, hidden]: the anchor not, masks fully (§4.8)."""
        d, weights = self.descriptor, checkpoint.weights
        if d.log_snr is None:
            return None
        least, most = d.log_snr
        level = mx.array([most] + [least] * (d.block - 1))
        half = LOG_SNR_FEATURES // 2
        angles = (1000.0 * (level - least) / (most - least))[:, None] * 10000.0 ** (-mx.arange(half) / half)
        features = mx.concatenate([mx.sin(angles), mx.cos(angles)], axis=-1)

        def linear(name: str, rows: mx.array) -> mx.array:
            weight, bias = (weights[f"{name}.{part}"].astype(mx.float32) for part in ("weight", "bias"))
            return rows @ weight.T + bias

        return linear("log_snr_fc2", nn.silu(linear("log_snr_fc1", features))).astype(self._dtype)

    def _table(self, checkpoint: Checkpoint, path: str, *, embedding: bool = False) -> Any:
        """A Linear or Embedding of the checkpoint, packed as asked."""
        weight = checkpoint.weights[f"{path}.weight"]
        rows, columns = weight.shape
        holder = _Holder(nn.Embedding(rows, columns) if embedding else nn.Linear(columns, rows, bias=False))
        self._fill(holder, {"module.weight": weight})
        return holder.module

    def _fill(self, module: nn.Module, weights: dict[str, mx.array]) -> None:
        """Load weights into a module, packed and in the type asked for."""
        module.load_weights([(name, tensor.astype(mx.float32)) for name, tensor in weights.items()], strict=True)
        if self._bits:
            # Packed from float32: from a half type each group's scale would be rounded twice.
            nn.quantize(
                module, class_predicate=lambda path, layer: "conv" not in path and packing_of(layer, self._bits)
            )
        module.set_dtype(self._dtype)
        if on_cpu.is_ours():
            on_cpu.prepare([module])


def spread_over(rows: mx.array, ids: mx.array, vocabulary: int) -> mx.array:
    """Rows [..., k] put at ids [..., k] of [..., vocabulary]; minus infinity elsewhere."""
    out = mx.full((*rows.shape[:-1], vocabulary), -mx.inf, dtype=rows.dtype)
    return mx.put_along_axis(out, ids.astype(mx.int32), rows, axis=-1)


class _Holder(nn.Module):
    """Gives a lone layer a name, so that nn.quantize can replace it."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module


def packing_of(layer: Any, bits: int) -> bool | dict[str, Any]:
    """How to pack a layer, or False for those that stay plain. Any: nn.quantize's own convention."""
    if not hasattr(layer, "to_quantized"):
        return False
    width: int = layer.weight.shape[-1]
    # At least two groups a row: with a single one, MLX's CUDA products are wrong (0.32.4; device.md).
    group = next((size for size in GROUP_SIZES if width % size == 0 and width > size), None)
    return {"bits": bits, "group_size": group} if group else False
