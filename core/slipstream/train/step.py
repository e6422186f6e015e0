"""One training step: the frozen target's states, the drafter's blocks, the loss, and the update."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import mlx.core as mx
import numpy as np

from slipstream.drafters.descriptor import Descriptor
from slipstream.models.target import Target
from slipstream.train.batches import Batch
from slipstream.train.loss import CE_WEIGHT, CONFIDENCE_WEIGHT, L1_WEIGHT, Head, Taught, confidence_loss, head_loss
from slipstream.train.network import W2, Network
from slipstream.train.optimiser import Kind, Tree, update

FC = "fc.weight"
D2T = "d2t"  # of a drafter that cannot say every token: how far each one's id is from its number
PLACES = 128  # places of a part that the target is asked about come in multiples of it: few shapes
EXACT = ("markov_head.markov_w", "confidence_head")  # these stay float32 in every precision


@dataclass(frozen=True, slots=True)
class Precision:
    """`network`: what the drafter's layers compute in. `logits`: the products with the vocabulary and what follows."""

    network: mx.Dtype = mx.bfloat16
    logits: mx.Dtype = mx.float32


@dataclass(frozen=True, slots=True)
class Weighting:
    """Of the loss's terms. Arrays where they change from step to step."""

    ce: mx.array | float = CE_WEIGHT
    l1: mx.array | float = L1_WEIGHT
    confidence: float = CONFIDENCE_WEIGHT

    def at(self, share: mx.array) -> Weighting:
        """At the start, when two distributions hardly overlap and L1 has no slope, cross entropy alone; then these."""
        return Weighting(share * self.ce + (1 - share), share * self.l1, self.confidence)


@dataclass(slots=True)
class Figures:
    """What a batch showed. All but the sums are of each prediction [texts, anchors, predictions]."""

    loss: mx.array
    ce: mx.array  # sums over the batch, weighted
    l1: mx.array
    bce: mx.array
    accept: mx.array
    right: mx.array
    agrees: mx.array
    confidence: mx.array | None


class Trainee:
    """A network and the target it learns from. Owned by the thread that trains.

    `scale` [taps * target hidden]: how large each tapped channel usually is. A target's layers differ by hundreds, and
    steps of one size suit all only when what they meet is alike; so while it learns, `fc` reads channels divided by it.
    `draft_ids` [Vd]: the target's ids of the tokens that can be drafted, ascending, where these are not all.
    """

    def __init__(
        self,
        d: Descriptor,
        target: Target,
        precision: Precision,
        part: int,
        scale: mx.array | None = None,
        draft_ids: mx.array | None = None,
    ) -> None:
        self.descriptor = d
        self._scale = mx.ones((len(d.taps) * target.hidden_size,)) if scale is None else scale
        self._network = Network(d, len(d.taps) * target.hidden_size)
        self._target = target
        self._precision = precision
        self._part = part
        self._whole_head = dense_head(target).astype(precision.logits)
        self._draft_ids = draft_ids
        self._head, self._numbers = self._whole_head, None
        if draft_ids is not None:
            numbers = np.full(target.vocabulary, -1, dtype=np.int32)
            numbers[np.array(draft_ids)] = np.arange(draft_ids.size)
            self._head, self._numbers = self._whole_head[draft_ids], mx.array(numbers)  # token -> its number, or -1
        mx.eval(self._head, self._whole_head)

    def figures(
        self, parameters: Mapping[str, mx.array], arrays: Mapping[str, mx.array], weighting: Weighting
    ) -> Figures:
        """Loss and figures of a batch's arrays. Differentiable in the parameters."""
        d, kind = self.descriptor, self._precision.network
        features, final = self._target.states(arrays["tokens"], d.taps)
        features = (mx.stop_gradient(features).astype(mx.float32) / self._scale).astype(kind)
        final = mx.stop_gradient(final)
        network_weights = {name: self._cast(name, value) for name, value in parameters.items()}
        anchors = arrays["anchors"]
        at = mx.take_along_axis(arrays["tokens"], anchors, axis=1)
        slots = self._network.run(
            network_weights,
            features,
            self._embed(at).astype(kind),
            self._embed(mx.full((d.block - 1,), d.mask_id, dtype=mx.int32)).astype(kind),
            anchors,
            arrays["before"],
        )
        rows, weights = np.array(arrays["rows"]).reshape(-1), arrays["weights"].reshape(-1)
        final = final.reshape(-1, final.shape[-1])

        def teacher(start: int, end: int) -> Taught:
            # Blocks overlap: what the target says at a place is asked once.
            places, where = np.unique(rows[start:end], return_inverse=True)
            places = np.resize(places, -(-len(places) // PLACES) * PLACES)
            said, at = self._taught(final[mx.array(places)]), mx.array(where.reshape(-1).astype(np.int32))
            return Taught(said.logits[at], said.total[at], said.best[at])

        head: Head = head_loss(
            slots.hidden,
            slots.through,
            network_weights.get(W2),
            self._head,
            teacher,
            self._numbered(arrays["labels"].reshape(-1)),
            weights,
            part=self._part,
            ce_weight=weighting.ce,
            l1_weight=weighting.l1,
        )
        total = arrays["total"] + 1e-6
        bce = mx.zeros(())
        if slots.confidence is not None:
            bce = confidence_loss(slots.confidence, head.accept, weights)
        shape = arrays["weights"].shape
        return Figures(
            loss=(head.loss + weighting.confidence * bce) / total,
            ce=head.ce,
            l1=head.l1,
            bce=mx.stop_gradient(bce),
            accept=head.accept.reshape(shape),
            right=head.right.reshape(shape),
            agrees=head.agrees.reshape(shape),
            confidence=None if slots.confidence is None else mx.stop_gradient(slots.confidence).reshape(shape),
        )

    def learned(self, published: Tree) -> Tree:
        """Weights as they learn, from weights that read the target's channels as they are."""
        return {name: value for name, value in published.items() if name != D2T} | {FC: published[FC] * self._scale}

    def published(self, learned: Tree) -> Tree:
        """The other way, with the names of the tokens that can be drafted."""
        out = learned | {FC: learned[FC] / self._scale}
        return out if self._draft_ids is None else out | {D2T: offsets(self._draft_ids)}

    def _cast(self, name: str, value: mx.array) -> mx.array:
        return value if name.startswith(EXACT) else value.astype(self._precision.network)

    def _embed(self, tokens: mx.array) -> mx.array:
        scale = self.descriptor.embed_scale
        scale = self._target.embed_scale if scale is None else scale
        rows = self._target.embed_rows(tokens)
        return rows if scale == 1.0 else rows * scale

    def _taught(self, final: mx.array) -> Taught:
        """The target's logits; by the dense table, in the precision that is wanted, where a model does nothing else."""
        rows = final.astype(self._whole_head.dtype)
        is_plain = self._target.has_plain_head
        logits = rows @ self._whole_head.T if is_plain else self._target.logits_of(final)
        said = Taught.of(logits.astype(mx.float32))
        if self._draft_ids is None:
            return said
        # A product of its own costs less than picking columns.
        draftable = rows @ self._head.T if is_plain else logits[:, self._draft_ids]
        return Taught(draftable.astype(mx.float32), said.total, self._numbered(said.best))

    def _numbered(self, tokens: mx.array) -> mx.array:
        """Numbers among the tokens that can be drafted, of the target's ids; -1 for others."""
        return tokens if self._numbers is None else self._numbers[tokens]


def offsets(draft_ids: mx.array) -> mx.array:
    """`d2t` as published: what is to be added to each number for the target's id."""
    return draft_ids.astype(mx.int64) - mx.arange(draft_ids.size)


def dense_head(target: Target) -> mx.array:
    """The target's output table [V, hidden], of whatever packing: what it makes of the unit vectors."""
    module = target.head
    weight: mx.array = module.weight
    if hasattr(module, "scales"):
        return mx.dequantize(
            weight, module.scales, module.get("biases"), group_size=module.group_size, bits=module.bits
        )
    return weight


def channel_scale(target: Target, taps: tuple[int, ...], texts: Sequence[Sequence[int]]) -> mx.array:
    """How large each tapped channel usually is. The median: at a few tokens some are a thousand times larger."""
    rows = [np.array(target.states(mx.array([list(ids)]), taps)[0][0, 1:].astype(mx.float32)) for ids in texts]
    usual = np.median(np.abs(np.concatenate(rows)), axis=0) / 0.6745
    return mx.array(np.maximum(usual, 0.05 * np.median(usual) + 1e-6).astype(np.float32))


def arrays_of(batch: Batch) -> dict[str, mx.array]:
    return {
        "tokens": mx.array(batch.tokens),
        "anchors": mx.array(batch.anchors),
        "before": mx.array(batch.before),
        "labels": mx.array(batch.labels),
        "rows": mx.array(batch.rows),
        "weights": mx.array(batch.weights),
        "total": mx.array(batch.total, dtype=mx.float32),
    }


class Step:
    """`run` learns from one batch. With a group, gradients are summed over its processes."""

    def __init__(
        self,
        trainee: Trainee,
        optimiser: Kind,
        weighting: Weighting,
        *,
        clip: float,
        ema: float,
        ramp: int,
        group: Any = None,
    ) -> None:
        """`ramp`: steps until the loss is as `weighting` says."""
        self._trainee = trainee
        self._weighting = weighting
        self._ema = ema
        self._group = group if group is not None and group.size() > 1 else None
        self._ramp = ramp
        # Its parts are compiled, not the step: MLX refuses a whole whose custom gradient refers to what is around it.
        self._update = mx.compile(partial(update, kind=optimiser, clip=clip))

    def run(
        self, parameters: Tree, state: Tree, average: Tree, batch: Batch, rate: float, step: int
    ) -> tuple[Tree, Tree, Tree, dict[str, mx.array]]:
        """Parameters, optimiser's state, their moving average, and figures; lazy. `step` counts from 1."""
        arrays = arrays_of(batch)
        weighting = self._weighting.at(mx.array(min(1.0, step / max(self._ramp, 1))))

        def loss(parameters: Tree) -> tuple[mx.array, dict[str, mx.array]]:
            found = self._trainee.figures(parameters, arrays, weighting)
            return found.loss, _summary(found, arrays["weights"])

        (_, summary), gradients = mx.value_and_grad(loss)(parameters)
        if self._group is not None:
            gradients, summary = _summed(gradients, self._group), _summed(summary, self._group)
        at = mx.array(float(step))
        after, state, norm = self._update(parameters, gradients, state, mx.array(rate), at)
        # Young averages forget faster, else the start would stay in them.
        keep = min(self._ema, (1 + step) / (10 + step))
        average = {name: keep * value + (1 - keep) * after[name] for name, value in average.items()}
        return after, state, average, summary | {"norm": norm}


def _summary(found: Figures, weights: mx.array) -> dict[str, mx.array]:
    """Sums that processes can add: loss terms, and by position what would be accepted."""
    valid = (weights > 0).astype(mx.float32)
    blocks = valid[..., 0]
    chance = mx.cumprod(found.accept * valid, axis=-1)
    same = mx.cumprod(found.agrees.astype(mx.float32) * valid, axis=-1)
    return {
        "loss": found.loss,
        "ce": found.ce,
        "l1": found.l1,
        "bce": found.bce,
        "weights": mx.sum(weights),
        "valid": mx.sum(valid, axis=(0, 1)),
        "accept": mx.sum(found.accept * valid, axis=(0, 1)),
        "agrees": mx.sum(found.agrees.astype(mx.float32) * valid, axis=(0, 1)),
        "blocks": mx.sum(blocks),
        "chance": mx.sum(chance),  # beside the target's own token: tokens per round at temperature 1, minus 1
        "same": mx.sum(same),  # the same, greedily
    }


def _summed(tree: dict[str, mx.array], group: Any) -> dict[str, mx.array]:
    """Each array added up over the group, in one exchange."""
    names = sorted(tree)
    joined = mx.distributed.all_sum(mx.concatenate([tree[name].reshape(-1) for name in names]), group=group)
    out: dict[str, mx.array] = {}
    at = 0
    for name in names:
        size = tree[name].size
        out[name] = joined[at : at + size].reshape(tree[name].shape)
        at += size
    return out
