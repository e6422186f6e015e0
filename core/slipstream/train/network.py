"""The drafter in training: the backbone that decodes, run on many anchors of many texts at once (drafters.md §2.6)."""

from __future__ import annotations

from dataclasses import dataclass

import mlx.core as mx
from mlx.utils import tree_unflatten

from slipstream.drafters.backbone import Backbone, Layer, backbone_weights
from slipstream.drafters.descriptor import Checkpoint, Descriptor, expected_shapes

Parameters = dict[str, mx.array]  # by published name
W1, W2 = "markov_head.markov_w1.weight", "markov_head.markov_w2.weight"
SPREAD = 0.02  # standard deviation of fresh weights


@dataclass(slots=True)
class Slots:
    """What the network made of every prediction of every block; n counts texts, anchors and predictions."""

    hidden: mx.array  # [n, hidden], after the final norm
    through: mx.array | None  # [n, rank]: what the Markov head's output table is multiplied by
    confidence: mx.array | None  # [n], before the sigmoid


class Network:
    """A drafter's backbone with weights that change: given by their published names, fused as decoding fuses them.

    Only for plain drafters of Qwen 3's kind: no windows, sinks, gates or convolutions.
    """

    def __init__(self, d: Descriptor, tap_width: int) -> None:
        self._d = d
        self._backbone = Backbone(d, tap_width)

    def run(
        self,
        weights: Parameters,
        features: mx.array,
        embedded: mx.array,
        masks: mx.array,
        anchors: mx.array,
        before: mx.array,
    ) -> Slots:
        """Run all blocks. `weights` may be what a gradient is taken by.

        `features` [texts, length, taps * target hidden]; `embedded` [texts, anchors, hidden]: of the anchors' tokens;
        `masks` [block - 1, hidden]; `anchors` [texts, anchors]: positions; `before` [texts, anchors, predictions]: the
        token before each prediction.
        """
        d = self._d
        texts, count = anchors.shape
        self._backbone.update(tree_unflatten(list(backbone_weights(Checkpoint(d, weights)).items())))
        filling = mx.broadcast_to(masks, (texts, count, d.block - 1, d.hidden))
        hidden = mx.concatenate([embedded[:, :, None], filling], axis=2)
        keys, values = self._context(features)
        visible = mx.arange(features.shape[1]) < anchors[..., None]  # [texts, anchors, length]
        turn = _Rotation(d, anchors[..., None] + mx.arange(d.block))
        for index, layer in enumerate(self._backbone.layers):
            attended = self._attention(index, layer, hidden, keys[index], values[index], visible, turn)
            hidden = hidden + attended
            hidden = hidden + self._backbone._mlp(layer, layer.post_attention_layernorm(hidden))
        hidden = self._backbone.norm(hidden)
        previous, through = self._markov(weights, hidden, before)
        confidence = None
        predicting = hidden[:, :, d.first :]
        if d.confidence:
            seen = predicting
            if d.confidence_with_markov and previous is not None:
                seen = mx.concatenate([seen, previous], axis=-1)
            confidence = _linear(weights, "confidence_head.proj", seen.astype(mx.float32)).reshape(-1)
        return Slots(
            predicting.reshape(-1, d.hidden),
            None if through is None else through.reshape(-1, d.rank),
            confidence,
        )

    def _context(self, features: mx.array) -> tuple[mx.array, mx.array]:
        """Every layer's keys, turned, and values of the context rows: [layers, texts, kv_heads, length, head_dim]."""
        d = self._d
        texts, length = features.shape[:2]
        both = self._backbone.context_kv(self._backbone.fuse(features))
        both = both.reshape(texts, length, d.layers, 2, d.kv_heads, d.head_dim).transpose(2, 3, 0, 4, 1, 5)
        turn = _Rotation(d, mx.arange(length))
        keys = [turn(layer.k_norm(both[index, 0])) for index, layer in enumerate(self._backbone.layers)]
        return mx.stack(keys), both[:, 1]

    def _attention(
        self,
        index: int,
        layer: Layer,
        hidden: mx.array,
        keys: mx.array,
        values: mx.array,
        visible: mx.array,
        turn: _Rotation,
    ) -> mx.array:
        """Slots [texts, anchors, block, hidden] over the context before their anchor and over their own block."""
        d = self._d
        texts, count, block = hidden.shape[:3]
        shared = d.heads // d.kv_heads
        q_width, kv_width = d.heads * d.head_dim, d.kv_heads * d.head_dim
        qkv = layer.qkv(layer.input_layernorm(hidden))
        queries, own_keys, own_values = mx.split(qkv, [q_width, q_width + kv_width], axis=-1)
        # [texts, kv_heads, anchors, queries that share a head of keys, head_dim]
        queries = queries.reshape(texts, count, block, d.heads, d.head_dim).transpose(0, 3, 1, 2, 4)
        queries = turn(layer.q_norm(queries)) * d.head_dim**-0.5
        queries = queries.reshape(texts, d.kv_heads, shared, count, block, d.head_dim).transpose(0, 1, 3, 2, 4, 5)
        queries = queries.reshape(texts, d.kv_heads, count, shared * block, d.head_dim)
        own_keys = own_keys.reshape(texts, count, block, d.kv_heads, d.head_dim).transpose(0, 3, 1, 2, 4)
        own_keys = turn(layer.k_norm(own_keys))
        own_values = own_values.reshape(texts, count, block, d.kv_heads, d.head_dim).transpose(0, 3, 1, 2, 4)

        length = keys.shape[2]
        far = queries.reshape(texts, d.kv_heads, -1, d.head_dim) @ keys.swapaxes(-1, -2)
        far = far.reshape(texts, d.kv_heads, count, shared * block, length)
        far = mx.where(visible[:, None, :, None], far, mx.finfo(far.dtype).min)
        near = queries @ own_keys.swapaxes(-1, -2)  # [texts, kv_heads, anchors, shared * block, block]
        if d.causal[index]:
            order = mx.arange(block)
            later = mx.tile(order[:, None] < order, (shared, 1))
            near = mx.where(later, mx.finfo(near.dtype).min, near)
        weights = mx.softmax(mx.concatenate([far, near], axis=-1), axis=-1, precise=True)
        far, near = mx.split(weights, [length], axis=-1)
        out = (far.reshape(texts, d.kv_heads, -1, length) @ values).reshape(queries.shape) + near @ own_values
        out = out.reshape(texts, d.kv_heads, count, shared, block, d.head_dim).transpose(0, 2, 4, 1, 3, 5)
        return layer.o_proj(out.reshape(texts, count, block, q_width))

    def _markov(
        self, weights: Parameters, hidden: mx.array, before: mx.array
    ) -> tuple[mx.array | None, mx.array | None]:
        """Embeddings of the tokens before, and what goes into the output table: [texts, anchors, predictions, rank]."""
        d = self._d
        if not d.markov:
            return None, None
        # Looked up in the table's own precision: its gradient is a sum over many rows.
        previous = weights[W1][before].astype(hidden.dtype)
        predicting = hidden[:, :, d.first :]
        if d.markov == "gated":
            gate = mx.sigmoid(
                _linear(weights, "markov_head.gate_proj", mx.concatenate([predicting, previous], axis=-1))
            )
            return previous, gate * previous
        if d.markov == "rnn":
            memory = mx.zeros_like(previous[:, :, 0])
            outs: list[mx.array] = []
            starts = [] if not d.first else [(previous[:, :, 0], hidden[:, :, 0])]  # as decoding does: from slot 0 on
            steps = [(previous[:, :, index], predicting[:, :, index]) for index in range(predicting.shape[2])]
            for embedded, at in starts + steps:
                joint = _linear(weights, "markov_head.joint_proj", mx.concatenate([memory, embedded, at], axis=-1))
                gate, candidate, out = mx.split(joint, 3, axis=-1)
                keep = mx.sigmoid(gate)
                memory = keep * memory + (1 - keep) * mx.tanh(candidate)
                outs.append(mx.tanh(out))
            return previous, mx.stack(outs[len(starts) :], axis=2)
        return previous, previous


class _Rotation:
    """Rotary turning by given positions, in float32; halves are paired (i, i + dims / 2)."""

    def __init__(self, d: Descriptor, positions: mx.array) -> None:
        frequencies = d.rope.theta ** (-mx.arange(0, d.head_dim, 2, dtype=mx.float32) / d.head_dim)
        angles = positions[..., None].astype(mx.float32) * frequencies
        self._cos, self._sin = mx.cos(angles), mx.sin(angles)  # [*positions, head_dim / 2]
        if positions.ndim == 3:  # [texts, anchors, block]: a head comes before the anchors
            self._cos, self._sin = self._cos[:, None], self._sin[:, None]

    def __call__(self, rows: mx.array) -> mx.array:
        one, two = mx.split(rows, 2, axis=-1)
        return mx.concatenate(_turned(one, two, self._cos, self._sin), axis=-1).astype(rows.dtype)


@mx.compile
def _turned(one: mx.array, two: mx.array, cos: mx.array, sin: mx.array) -> list[mx.array]:
    one, two = one.astype(mx.float32), two.astype(mx.float32)
    return [one * cos - two * sin, two * cos + one * sin]


def _linear(weights: Parameters, path: str, rows: mx.array) -> mx.array:
    return rows @ weights[f"{path}.weight"].T.astype(rows.dtype) + weights[f"{path}.bias"].astype(rows.dtype)


def fresh(d: Descriptor, tap_width: int, seed: int, norm: mx.array | None = None) -> Parameters:
    """New weights in float32: small and random, the Markov head silent and confidence even at first, norms one.

    `norm`: the target's own final norm, which its output table was made for.
    """
    shapes = expected_shapes(d) | {"fc.weight": (d.hidden, tap_width)}
    shapes.pop("d2t", None)  # it is chosen, not learned
    keys = mx.random.split(mx.random.key(seed), len(shapes))
    weights: Parameters = {}
    for key, (name, shape) in zip(keys, sorted(shapes.items()), strict=True):
        if "norm" in name:
            weights[name] = mx.ones(shape)
        elif name == W2 or name.startswith("confidence_head") or name.endswith("bias"):
            weights[name] = mx.zeros(shape)
        else:
            weights[name] = mx.random.normal(shape, key=key) * SPREAD
    if norm is not None and norm.shape == weights["norm.weight"].shape:
        weights["norm.weight"] = norm.astype(mx.float32)
    mx.eval(weights)
    return weights
