"""Every packaging against a dense float64 rendering of drafters.md, each publisher's conventions written out again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from numpy.typing import NDArray

import tiny_drafters as td
import tiny_families
from slipstream.drafters import formats
from slipstream.drafters.dflash import DFlash
from slipstream.drafters.dspark import DSpark
from slipstream.engine.load import Precision, load_drafter
from slipstream.models.host import ints
from slipstream.models.target import Target

Array = NDArray[np.float64]
ROWS, ANCHOR = 21, 7


@dataclass(frozen=True)
class Says:
    """What a publisher's files mean."""

    first: int
    block: int
    theta: float = 1e4
    turned: int = td.HEAD_DIM  # dims of a head that are rotated
    interleaved: bool = False
    frequencies: str = "plain"  # plain, yarn or proportional
    windows: tuple[int | None, ...] = (None, None)
    causal: tuple[bool, ...] = (False, False)
    embed_scale: float = 1.0
    multiplier: float = 1.0
    cap: float | None = None
    offset: float = 0.0  # added to norms


MEANINGS = {
    "deepspec": Says(0, 7),
    "deepspec gated": Says(0, 7),
    "deepspec rnn": Says(0, 7),
    "deepspec without heads": Says(0, 7),
    "deepspec gemma4": Says(0, 7, theta=1e6, frequencies="proportional", embed_scale=8.0, cap=30.0),
    "flat": Says(0, 7),
    "speculators": Says(0, 8),
    "speculators sliding": Says(1, 8, theta=5000.0, windows=(8, 8), causal=(True, True)),
    "speculators mixed": Says(0, 8, windows=(8, None), causal=(True, False)),
    "speculators dflash": Says(1, 8, windows=(8, None)),
    "specforge": Says(0, 7, frequencies="yarn"),
    "lfm2.5": Says(0, 9, interleaved=True),
    "ornith": Says(0, 7, turned=td.HEAD_DIM // 4, offset=1.0),
    "nemotron": Says(1, 7, windows=(8, 8), causal=(True, True)),
    "dflash with a markov head": Says(1, 16),
    "zlab old": Says(1, 16),
    "zlab sliding": Says(1, 9, windows=(8, None), causal=(True, False), embed_scale=2.0, multiplier=0.5, cap=5.0),
    "zlab causal": Says(1, 9, causal=(True, True)),
    "dflash2": Says(1, 8, windows=(8, 8)),
}


def test_every_packaging_has_a_meaning() -> None:
    assert MEANINGS.keys() == td.PACKAGINGS.keys()


class Dense:
    """One block after ROWS context rows, straight from the text of the specification."""

    def __init__(self, says: Says, weights: dict[str, Array], embed: Array, head: Array) -> None:
        self.says, self.w, self.embed, self.head = says, weights, embed, head
        self.is_gemma = "layers.0.layer_scalar" in weights

    def norm(self, x: Array, name: str | None) -> Array:
        out = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
        return out if name is None else out * (self.w[f"{name}.weight"] + self.says.offset)

    def rope(self, x: Array, positions: NDArray[Any]) -> Array:
        """x [n, heads, head_dim]."""
        says, dims = self.says, self.says.turned
        pairs = np.arange(dims // 2)
        inverse = says.theta ** (-2.0 * pairs / dims)
        factor = 1.0
        if says.frequencies == "proportional":
            inverse = np.where(pairs < math.floor(0.25 * dims / 2), inverse, 0.0)
        if says.frequencies == "yarn":
            factor = 0.1 * math.log(32.0) + 1.0

            def at(rotations: float) -> float:
                return dims * math.log(64 / (rotations * 2 * math.pi)) / (2 * math.log(says.theta))

            low, high = max(math.floor(at(32.0)), 0), min(math.ceil(at(1.0)), dims - 1)
            ramp = np.clip((pairs - low) / max(high - low, 0.001), 0, 1)
            inverse = inverse / 32.0 * ramp + inverse * (1 - ramp)
        angle = positions[:, None, None] * inverse
        cos, sin = np.cos(angle) * factor, np.sin(angle) * factor
        turned, rest = x[..., :dims], x[..., dims:]
        if says.interleaved:
            one, two = turned[..., 0::2], turned[..., 1::2]
            both = np.stack([one * cos - two * sin, two * cos + one * sin], axis=-1)
            return np.concatenate([both.reshape(turned.shape), rest], axis=-1)
        one, two = np.split(turned, 2, axis=-1)
        return np.concatenate([one * cos - two * sin, two * cos + one * sin, rest], axis=-1)

    def keys_and_values(self, layer: int, x: Array, positions: NDArray[Any]) -> tuple[Array, Array]:
        at = f"layers.{layer}.self_attn."
        keys = (x @ self.w[at + "k_proj.weight"].T).reshape(len(x), -1, td.HEAD_DIM)
        values = keys
        if at + "v_proj.weight" in self.w:
            values = (x @ self.w[at + "v_proj.weight"].T).reshape(len(x), -1, td.HEAD_DIM)
        if self.is_gemma:
            values = self.norm(values, None)
        return self.rope(self.norm(keys, at + "k_norm"), positions), values

    def attention(self, layer: int, x: Array, context: Array) -> Array:
        says, at = self.says, f"layers.{layer}.self_attn."
        slots = np.arange(ROWS, ROWS + len(x))
        queries = (x @ self.w[at + "q_proj.weight"].T).reshape(len(x), td.HEADS, -1)
        gate = None
        if queries.shape[-1] == 2 * td.HEAD_DIM:
            queries, gate = np.split(queries, 2, axis=-1)
        queries = self.rope(self.norm(queries, at + "q_norm"), slots)
        old, new = self.keys_and_values(layer, context, np.arange(ROWS)), self.keys_and_values(layer, x, slots)
        keys, values = (np.concatenate(pair) for pair in zip(old, new, strict=True))
        keys, values = (np.repeat(part, td.HEADS // part.shape[1], axis=1) for part in (keys, values))
        scores = np.einsum("qhd,khd->hqk", queries, keys) * (1.0 if self.is_gemma else td.HEAD_DIM**-0.5)
        distance = slots[:, None] - np.arange(len(keys))[None]
        window = says.windows[layer]
        hidden = (distance >= window) if window else np.zeros(distance.shape, dtype=bool)
        if says.causal[layer]:
            hidden = hidden | (distance < 0)
        scores = np.where(hidden, -np.inf, scores)
        if (sinks := self.w.get(at + "attention_sink_bias")) is not None:
            scores = np.concatenate([scores, np.broadcast_to(sinks[:, None, None], (*scores.shape[:2], 1))], axis=-1)
        shares = softmax(scores)[..., : len(keys)]
        out = np.einsum("hqk,khd->qhd", shares, values)
        if gate is not None:
            out = out * sigmoid(gate)
        return out.reshape(len(x), -1) @ self.w[at + "o_proj.weight"].T

    def convolved(self, name: str, side: int, normed: Array, x: Array) -> Array:
        base = self.w.get(f"{name}.base_kernel")
        if base is None:
            return x
        dynamic = (normed @ self.w[f"{name}.kernel_projection.weight"].T).reshape(len(x), 2, 2, -1)
        group = td.HIDDEN // dynamic.shape[-1]
        out = np.zeros_like(x)
        for slot in range(len(x)):
            for tap in range(2):
                if slot - tap >= 0:
                    out[slot] += (base[side, tap] + np.repeat(dynamic[slot, side, tap], group)) * x[slot - tap]
        return out

    def hidden(self, features: Array) -> Array:
        context = self.norm(features @ self.w["fc.weight"].T, "hidden_norm")
        x = self.embed[[ANCHOR] + [td.MASK] * (self.says.block - 1)] * self.says.embed_scale
        for layer in range(td.LAYERS):
            at = f"layers.{layer}."
            normed = self.norm(x, at + "input_layernorm")
            out = self.attention(layer, self.convolved(at + "attention_conv", 0, normed, normed), context)
            out = self.convolved(at + "attention_conv", 1, normed, out)
            x = x + (self.norm(out, at + "post_attention_layernorm") if self.is_gemma else out)
            normed = self.norm(x, at + ("pre_feedforward_layernorm" if self.is_gemma else "post_attention_layernorm"))
            seen = self.convolved(at + "mlp_conv", 0, normed, normed)
            gate, up = (seen @ self.w[f"{at}mlp.{name}_proj.weight"].T for name in ("gate", "up"))
            gate = gelu(gate) if self.is_gemma else gate * sigmoid(gate)
            out = (gate * up) @ self.w[at + "mlp.down_proj.weight"].T
            out = self.convolved(at + "mlp_conv", 1, normed, out)
            x = x + (self.norm(out, at + "post_feedforward_layernorm") if self.is_gemma else out)
            if self.is_gemma:
                x = x * self.w[at + "layer_scalar"]
        return self.norm(x, "norm")

    def draft(self, hidden: Array) -> list[int]:
        """The greedy walk."""
        says, w = self.says, self.w
        logits = (hidden @ self.head.T)[says.first :] * says.multiplier
        if says.cap is not None:
            logits = says.cap * np.tanh(logits / says.cap)
        ids = np.arange(logits.shape[1]) + w.get("d2t", np.zeros(logits.shape[1])).astype(int)
        previous, memory, out = ANCHOR, np.zeros(td.RANK), []
        for slot in range(0 if says.first == 0 else -1, len(logits)):
            h = hidden[slot + says.first]
            row = logits[max(slot, 0)]
            if "markov_head.markov_w1.weight" in w:
                embedded = w["markov_head.markov_w1.weight"][previous]
                through = embedded
                if "markov_head.gate_proj.weight" in w:
                    joined = np.concatenate([h, embedded])
                    gate = w["markov_head.gate_proj.weight"] @ joined + w["markov_head.gate_proj.bias"]
                    through = sigmoid(gate) * embedded
                elif "markov_head.joint_proj.weight" in w:
                    joined = np.concatenate([memory, embedded, h])
                    joint = w["markov_head.joint_proj.weight"] @ joined + w["markov_head.joint_proj.bias"]
                    keep, candidate, told = np.split(joint, 3)
                    memory = sigmoid(keep) * memory + (1 - sigmoid(keep)) * np.tanh(candidate)
                    through = np.tanh(told)
                row = row + w["markov_head.markov_w2.weight"] @ through
            if "candidate_selector.predecessor_codebook" in w:
                weight = w["candidate_selector.predecessor_codebook"][previous] * (
                    w["candidate_selector.hidden_projection.weight"] @ h
                )
                best = np.argsort(-row)[: td.TOP]
                scores = row[best] + w["candidate_selector.successor_codebook"][best] @ weight
                row = np.full_like(row, -np.inf)
                row[best] = scores
            if slot >= 0:
                previous = int(ids[np.argmax(row)])
                out.append(previous)
        return out


def softmax(x: Array) -> Array:
    out = np.exp(x - x.max(-1, keepdims=True))
    return out / out.sum(-1, keepdims=True)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


@pytest.fixture(scope="module")
def target() -> Target:
    return tiny_families.target("qwen3")


def as_array(value: Any) -> Array:
    return np.array(value.astype(mx.float32)).astype(np.float64)


@pytest.mark.parametrize("packaging", td.PACKAGINGS)
def test_a_packaging_means_what_its_publisher_means(packaging: str, target: Target, tmp_path: Path) -> None:
    folder = td.write_drafter(tmp_path / "drafter", packaging, target_layers=target.layer_count)
    drafter = load_drafter(folder, target, Precision(drafter_bits=0))
    assert isinstance(drafter, DSpark | DFlash)
    assert drafter.taps == td.TAPS
    weights = {name: as_array(value) for name, value in formats._load_weights(folder).items()}
    own: Any = target.model
    embed = weights.get("embed_tokens.weight", as_array(own.model.embed_tokens.weight))
    head = weights.get("lm_head.weight", as_array(own.lm_head.weight))
    dense = Dense(MEANINGS[packaging], weights, embed, head)

    features = mx.random.normal((ROWS, len(td.TAPS) * td.HIDDEN), key=mx.random.key(2))
    expected = dense.hidden(as_array(features))
    state = drafter.begin()
    for start, end in ((0, 11), (11, 12), (12, ROWS)):  # one row by itself too (drafters.md §1.4)
        drafter.backbone.observe([state.context], [features[start:end]])
    hidden = drafter.backbone.block([state.context], [drafter.slots(ANCHOR)])
    np.testing.assert_allclose(np.array(hidden), expected, atol=2e-4, rtol=2e-4)
    for limit in (drafter.block, 2):
        proposal = drafter.propose(state, ANCHOR, limit, lambda logits, _: mx.argmax(logits, axis=-1))
        assert ints(proposal.tokens) == dense.draft(expected)[:limit]
        assert len(proposal) == min(limit, MEANINGS[packaging].block - MEANINGS[packaging].first)
