"""Drafters in GGUF files: the same numbers under other names give the same drafts."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

import tiny_families
from slipstream.drafters import formats
from slipstream.drafters.dflash import DFlash
from slipstream.drafters.dspark import DSpark
from slipstream.engine.load import Precision, load_drafter
from slipstream.errors import ModelIncomplete, UnsupportedModel
from slipstream.models.host import ints
from slipstream.models.target import Target
from tiny_drafters import HEAD_DIM, HEADS, HIDDEN, INTERMEDIATE, KV_HEADS, LAYERS, MASK, PACKAGINGS, TAPS, VOCABULARY
from tiny_drafters import random_weights as random_tensors
from tiny_gguf import Tensor, TinyGguf, tensor

LAYER = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "attention_conv.kernel_projection": "attn_conv_proj",
    "mlp_conv.kernel_projection": "ffn_conv_proj",
}
BONSAI = {
    "embed_tokens": "token_embd",
    "lm_head": "output",
    "norm": "output_norm",
    "fc": "dspark.fc",
    "hidden_norm": "dspark.hidden_norm",
    "markov_head.markov_w1": "dspark.markov_head_a",
    "markov_head.markov_w2": "dspark.markov_head_b",
    "confidence_head.proj": "dspark.confidence_head",
    "log_snr_fc1": "dspark.log_snr_fc1",
    "log_snr_fc2": "dspark.log_snr_fc2",
}
LLAMA_CPP = {
    "norm": "output_norm",
    "fc": "fc",
    "hidden_norm": "enc.output_norm",
    "candidate_selector.hidden_projection": "selector_hidden",
}
BARE = {
    "candidate_selector.predecessor_codebook": "selector_predecessor.weight",
    "candidate_selector.successor_codebook": "selector_successor.weight",
    "attention_conv.base_kernel": "attn_conv_base",
    "mlp_conv.base_kernel": "ffn_conv_base",
}


@pytest.fixture(scope="module")
def target() -> Target:
    return tiny_families.target("qwen3")


def gguf(weights: dict[str, mx.array], top: dict[str, str], architecture: str, **own: Any) -> TinyGguf:
    """Matrices as BF16, which they are rounded to before; vectors as F32."""
    tensors: dict[str, Tensor] = {}
    for name, value in weights.items():
        at, inner = "", name
        if found := re.fullmatch(r"layers\.(\d+)\.(.+)", name):
            at, inner = f"blk.{found[1]}.", found[2]
        if inner in BARE:
            called = at + BARE[inner]
        else:
            module, _, part = inner.rpartition(".")
            called = f"{at}{(LAYER if at else top)[module]}.{part}"
        if value.ndim == 1:
            plain = np.array(value, dtype=np.float32)
            tensors[called] = Tensor("F32", value.shape, plain.tobytes(), plain)
        else:
            bits = np.array(value.astype(mx.bfloat16).view(mx.uint16))
            tensors[called] = Tensor("BF16", value.shape, bits.tobytes(), np.array(value))
    at = f"{architecture}."
    metadata: dict[str, Any] = {
        "general.architecture": architecture,
        at + "embedding_length": HIDDEN,
        at + "feed_forward_length": INTERMEDIATE,
        at + "block_count": LAYERS,
        at + "attention.head_count": HEADS,
        at + "attention.head_count_kv": KV_HEADS,
        at + "attention.key_length": HEAD_DIM,
        at + "attention.layer_norm_rms_epsilon": 1e-6,
        at + "rope.freq_base": 10000.0,
    }
    return TinyGguf(metadata | own, tensors)


def rounded(weights: dict[str, mx.array]) -> dict[str, mx.array]:
    return {
        name: value if value.ndim == 1 else value.astype(mx.bfloat16).astype(mx.float32)
        for name, value in weights.items()
    }


def drafts(drafter: DSpark | DFlash) -> tuple[list[int], mx.array]:
    state = drafter.begin()
    features = mx.random.normal((9, len(TAPS) * HIDDEN), key=mx.random.key(4))
    drafter.backbone.observe([state.context], [features])
    proposal = drafter.propose(state, 5, 99, lambda logits, _: mx.argmax(logits, axis=-1))
    assert proposal.logits is not None
    return ints(proposal.tokens), proposal.logits


def load(path: Path, target: Target) -> DSpark | DFlash:
    drafter = load_drafter(path, target, Precision(drafter_bits=0))
    assert isinstance(drafter, DSpark | DFlash)
    return drafter


def as_folder(folder: Path, config: dict[str, Any], weights: dict[str, mx.array]) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    mx.save_safetensors(str(folder / "model.safetensors"), weights)
    return folder


def test_bonsais_drafter_with_noise_levels(target: Target, tmp_path: Path) -> None:
    parts = replace(PACKAGINGS["deepspec"].parts, log_snr=True)
    weights = rounded(random_tensors(parts, 1))
    own = {
        "dspark.dspark.block_size": 4,
        "dspark.dspark.mask_token_id": MASK,
        "dspark.dspark.target_layers": list(TAPS),
        "dspark.dspark.min_log_snr": -9.0,
        "dspark.dspark.max_log_snr": 9.0,
    }
    path = gguf(weights, BONSAI, "dspark", **own).write(tmp_path / "bonsai.gguf")
    read = formats.read(path).descriptor
    assert (read.taps, read.first, read.block, read.log_snr) == (TAPS, 0, 4, (-9.0, 9.0))
    config = PACKAGINGS["deepspec"].config() | {"block_size": 4}
    tokens, logits = drafts(load(as_folder(tmp_path / "folder", config, weights), target))
    said, scores = drafts(load(path, target))
    assert said == tokens
    assert mx.allclose(scores, logits, atol=1e-4)


def test_noise_levels_are_those_of_the_specification(target: Target, tmp_path: Path) -> None:
    """drafters.md §4.8: t is 1000 for the anchor and 0 for masks; 64 sines, then 64 cosines."""
    parts = replace(PACKAGINGS["flat"].parts, log_snr=True)
    weights = random_tensors(parts, 1)
    drafter = load(as_folder(tmp_path / "folder", PACKAGINGS["flat"].config(), weights), target)
    without = {name: value for name, value in weights.items() if not name.startswith("log_snr")}
    plain = load(as_folder(tmp_path / "plain", PACKAGINGS["flat"].config(), without), target)
    w = {name: np.array(value) for name, value in weights.items()}
    for slot, t in ((0, 1000.0), (1, 0.0), (6, 0.0)):
        angle = t * 10000.0 ** (-np.arange(64) / 64)
        inner = w["log_snr_fc1.weight"] @ np.concatenate([np.sin(angle), np.cos(angle)]) + w["log_snr_fc1.bias"]
        added = w["log_snr_fc2.weight"] @ (inner / (1 + np.exp(-inner))) + w["log_snr_fc2.bias"]
        difference = np.array(drafter.slots(5)[slot] - plain.slots(5)[slot])
        np.testing.assert_allclose(difference, added, atol=2e-3)


def test_llama_cpps_dflash2(target: Target, tmp_path: Path) -> None:
    weights = rounded(random_tensors(PACKAGINGS["dflash2"].parts, 1))
    own = {
        "dflash.block_size": 8,
        "dflash.target_layers": [tap + 1 for tap in TAPS],
        "dflash.attention.sliding_window": 8,
        "dflash.attention.sliding_window_pattern": [1] * LAYERS,
        "dflash.attention.causal": False,
        "dflash.selector_rank": 32,
        "dflash.selector_top_k": 8,
        "tokenizer.ggml.mask_token_id": MASK,
        "tokenizer.ggml.tokens": [f"t{index}" for index in range(VOCABULARY)],
    }
    path = gguf(weights, LLAMA_CPP, "dflash", **own).write(tmp_path / "dflash2.gguf")
    read = formats.read(path).descriptor
    assert (read.taps, read.first, read.windows, read.causal) == (TAPS, 1, (8, 8), (False, False))
    folder = as_folder(tmp_path / "folder", PACKAGINGS["dflash2"].config(), weights)
    tokens, logits = drafts(load(folder, target))
    said, scores = drafts(load(path, target))
    assert said == tokens
    assert mx.allclose(scores, logits, atol=1e-4)


@pytest.mark.parametrize("kind", ["F32", "F16", "Q4_0", "Q4_1", "Q8_0"])
def test_packed_tensors_mean_what_ggml_says(kind: str, tmp_path: Path) -> None:
    from slipstream.models.gguf_header import read_header
    from slipstream.models.gguf_tensors import read_tensors

    one = tensor(kind, (4, 64), np.random.default_rng(0))
    path = TinyGguf({"general.architecture": "dspark"}, {"first": one, "a": one}).write(tmp_path / "one.gguf")
    for value in read_tensors(read_header(path)).values():
        np.testing.assert_allclose(np.array(value.astype(mx.float32)), one.values, rtol=1e-6)


def test_what_cannot_be_used_is_said(tmp_path: Path) -> None:
    weights = random_tensors(PACKAGINGS["zlab old"].parts, 1)
    whole: dict[str, Any] = {"dflash.target_layers": [1, 2, 3], "tokenizer.ggml.mask_token_id": MASK}

    def refused(made: TinyGguf, error: type[Exception], words: str) -> None:
        with pytest.raises(error, match=words):
            formats.read(made.write(tmp_path / "made.gguf"))

    llama = gguf(weights, LLAMA_CPP, "llama", **whole)
    refused(llama, UnsupportedModel, "architecture 'llama' are no drafters; choose a DSpark or DFlash one")
    refused(gguf(weights, LLAMA_CPP, "dflash"), ModelIncomplete, "target_layers is None")
    packed = gguf(weights, LLAMA_CPP, "dflash", **whole)
    packed.tensors["fc.weight"].kind = "Q4_K"
    refused(packed, UnsupportedModel, "'fc.weight' is Q4_K, which is not read exactly; choose a F32 or F16")
    strange = gguf(weights, LLAMA_CPP, "dflash", **whole)
    strange.tensors["rope_freqs.weight"] = tensor("F32", (8,), np.random.default_rng(0))
    refused(strange, UnsupportedModel, "'rope_freqs.weight' is none of a drafter's")
