"""Drafters in GGUF files: PrismML's "dspark" and llama.cpp's "dflash" (drafters.md §4.8), under the usual names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import mlx.core as mx

from slipstream.errors import UnsupportedModel
from slipstream.models.gguf_header import Header, damaged, read_header
from slipstream.models.gguf_tensors import read_tensors

_TOP = {
    "token_embd": "embed_tokens",
    "output": "lm_head",
    "output_norm": "norm",
    "fc": "fc",
    "hidden_norm": "hidden_norm",
    "enc.output_norm": "hidden_norm",
    "markov_head_a": "markov_head.markov_w1",
    "markov_head_b": "markov_head.markov_w2",
    "markov_w1": "markov_head.markov_w1",
    "markov_w2": "markov_head.markov_w2",
    "confidence_head": "confidence_head.proj",
    "conf_proj": "confidence_head.proj",
    "selector_hidden": "candidate_selector.hidden_projection",
    "log_snr_fc1": "log_snr_fc1",
    "log_snr_fc2": "log_snr_fc2",
}
_BARE = {  # tensors whose published names have no ".weight"
    "selector_predecessor": "candidate_selector.predecessor_codebook",
    "selector_successor": "candidate_selector.successor_codebook",
    "attn_conv_base": "attention_conv.base_kernel",
    "ffn_conv_base": "mlp_conv.base_kernel",
}
_LAYER = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_conv_proj": "attention_conv.kernel_projection",
    "ffn_conv_proj": "mlp_conv.kernel_projection",
}
# Fields that are called as in a config.json.
_SAME = (
    "block_size",
    "sample_from_anchor",
    "selector_top_k",
    "min_log_snr",
    "max_log_snr",
    "output_multiplier",
    "final_logit_softcapping",
    "input_embedding_scale",
)


def read_gguf(path: Path) -> tuple[dict[str, Any], dict[str, mx.array]]:
    """The file as a config and tensors of the flat layout. Raises like `read_header`."""
    header = read_header(path)
    architecture = header.text("general.architecture")
    if architecture not in ("dspark", "dflash"):
        raise UnsupportedModel(
            f"{path}: GGUF files of architecture {architecture!r} are no drafters; choose a DSpark or DFlash one",
            architecture=architecture,
        )
    weights = {_name(path, name): array for name, array in read_tensors(header).items()}
    judge = "confidence_head.proj.weight"
    if judge in weights:
        weights[judge] = weights[judge].reshape(1, -1)
    return _config(header, architecture, weights), weights


def _name(path: Path, name: str) -> str:
    found = re.fullmatch(r"(?:dspark\.|dflash\.)?(blk\.(\d+)\.)?(.+?)(\.weight|\.bias)?", name)
    assert found
    _, layer, module, part = found.groups(default="")
    at = f"layers.{layer}." if layer else ""
    if module in _BARE:
        return at + _BARE[module]
    if (known := (_LAYER if layer else _TOP).get(module)) is None:
        raise UnsupportedModel(f"{path}: tensor {name!r} is none of a drafter's; choose another file", tensor=name)
    return at + known + part


def _config(header: Header, architecture: str, weights: dict[str, mx.array]) -> dict[str, Any]:
    def own(key: str) -> Any:
        """Drafter fields stand under the prefix twice in PrismML's files, once in llama.cpp's."""
        names = (f"{architecture}.{architecture}.{key}", f"{architecture}.{key}")
        return next((header.metadata[name] for name in names if name in header.metadata), None)

    at, metadata = f"{architecture}.", header.metadata
    heads, layers = header.whole(at + "attention.head_count"), header.whole(at + "block_count")
    taps = own("target_layers")
    if not isinstance(taps, list):
        raise damaged(header.path, f"its {at}target_layers is {taps!r:.60}")
    if architecture == "dflash":
        taps = [tap - 1 for tap in taps]  # llama.cpp counts the embedding as 0
    table = next((weights[name] for name in _VOCABULARY_ROWS if name in weights), None)
    window, pattern = (
        metadata.get(at + "attention.sliding_window"),
        metadata.get(at + "attention.sliding_window_pattern"),
    )
    slides = pattern if isinstance(pattern, list) else [window is not None] * layers
    if "markov_head.markov_w1.weight" in weights:
        label = "DSparkDraftModel"
    else:
        label = "DFlash2DraftModel" if metadata.get(at + "selector_rank") else "DFlashDraftModel"
    mask = own("mask_token_id")
    return {
        "architectures": [label],
        "model_type": "qwen3",
        "hidden_size": header.whole(at + "embedding_length"),
        "intermediate_size": header.whole(at + "feed_forward_length"),
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": header.whole(at + "attention.head_count_kv", heads),
        "head_dim": header.whole(at + "attention.key_length"),
        "rms_norm_eps": header.number(at + "attention.layer_norm_rms_epsilon"),
        "rope_theta": header.number(at + "rope.freq_base", 10000.0),
        "max_position_embeddings": metadata.get(at + "context_length"),
        "vocab_size": len(metadata.get("tokenizer.ggml.tokens", ())) if table is None else table.shape[0],
        "mask_token_id": metadata.get("tokenizer.ggml.mask_token_id") if mask is None else mask,
        "target_layer_ids": taps,
        "sliding_window": window,
        "layer_types": ["sliding_attention" if each else "full_attention" for each in slides],
        "is_causal": metadata.get(at + "attention.causal"),
        **{name: own(name) for name in _SAME},
    }


_VOCABULARY_ROWS = ("embed_tokens.weight", "markov_head.markov_w1.weight", "candidate_selector.predecessor_codebook")
