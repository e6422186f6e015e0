"""A tiny random model of every target family, from the config keys that its published checkpoints have."""

from __future__ import annotations

import json
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.utils import _get_classes

import tiny
from slipstream.models.target import Target

VOCABULARY = tiny.VOCABULARY
HIDDEN = tiny.HIDDEN

_COMMON: dict[str, Any] = {
    "hidden_size": HIDDEN,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "rms_norm_eps": 1e-6,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 2048,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
}
_EXPERTS: dict[str, Any] = {
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "norm_topk_prob": True,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
}
_DELTA_NET: dict[str, Any] = {
    "linear_num_value_heads": 4,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "linear_conv_kernel_dim": 4,
    "full_attention_interval": 4,
    "partial_rotary_factor": 0.25,
}
_MAMBA: dict[str, Any] = {
    "mamba_num_heads": 4,
    "mamba_head_dim": 16,
    "mamba_proj_bias": False,
    "ssm_state_size": 16,
    "conv_kernel": 4,
    "n_groups": 2,
    "mlp_bias": False,
    "layer_norm_epsilon": 1e-5,
    "use_bias": False,
    "use_conv_bias": True,
    "attention_bias": False,
}
_GRANITE: dict[str, Any] = {
    "attention_bias": False,
    "mlp_bias": False,
    "embedding_multiplier": 3.0,
    "attention_multiplier": 0.2,
    "logits_scaling": 2.0,
    "residual_multiplier": 0.6,
}
_GEMMA4: dict[str, Any] = {
    "global_head_dim": 32,
    "head_dim": 16,
    "attention_k_eq_v": True,
    "num_global_key_value_heads": 1,
    "final_logit_softcapping": 30.0,
    "sliding_window": 8,
    "layer_types": ["sliding_attention", "full_attention"] * 2,
    "hidden_size_per_layer_input": 0,
    "num_kv_shared_layers": 0,
    "enable_moe_block": False,
    "tie_word_embeddings": True,
}
_LFM2: dict[str, Any] = {
    "norm_eps": 1e-5,
    "conv_bias": False,
    "conv_L_cache": 3,
    "layer_types": ["conv", "full_attention", "conv", "conv"],
}

FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {"model_type": "llama"},
    "mistral": {
        "model_type": "mistral",
        "layer_types": ["sliding_attention", "full_attention"] * 2,
        "sliding_window": 8,
    },
    "qwen2": {"model_type": "qwen2"},
    "qwen3": {"model_type": "qwen3"},
    "qwen3_moe": {"model_type": "qwen3_moe"} | _EXPERTS,
    "gemma3": {
        "model_type": "gemma3_text",
        "sliding_window": 8,
        "sliding_window_pattern": 2,
        "query_pre_attn_scalar": 32,
        "rope_local_base_freq": 1000.0,
    },
    "gemma4": {
        "model_type": "gemma4",
        "vocab_size": VOCABULARY,
        "text_config": _COMMON | {"model_type": "gemma4_text"} | _GEMMA4,
    },
    "gemma4_unified": {
        "model_type": "gemma4_unified",
        "vocab_size": VOCABULARY,
        "text_config": _COMMON | {"model_type": "gemma4_text"} | _GEMMA4,
    },
    "gemma4_e2b": {  # shared keys and values, and an embedding per layer
        "model_type": "gemma4_text",
        **_GEMMA4,
        "num_kv_shared_layers": 2,
        "hidden_size_per_layer_input": 16,
        "vocab_size_per_layer_input": VOCABULARY,
        "attention_k_eq_v": False,
        "use_double_wide_mlp": False,
    },
    "phi": {"model_type": "phi", "partial_rotary_factor": 0.5, "layer_norm_eps": 1e-5},
    "phi3": {"model_type": "phi3", "head_dim": None},
    "minicpm": {
        "model_type": "minicpm",
        "dim_model_base": 32,
        "scale_depth": 1.4,
        "scale_emb": 12.0,
    },
    "nanbeige": {"model_type": "nanbeige", "num_loops": 2, "num_hidden_layers": 3},
    "muse_glimmer": {
        "model_type": "muse_glimmer",
        "sliding_window": 8,
        "qk_scale_factor": 3.0,
        "final_logit_softcapping": 20.0,
        "output_multiplier": 0.4,
    },
    "granite": {"model_type": "granite"} | _GRANITE,
    "qwen3_next": {
        "model_type": "qwen3_next",
        "num_hidden_layers": 5,
        "shared_expert_intermediate_size": 32,
        **_EXPERTS,
        **_DELTA_NET,
    },
    # 3.5, 3.6, 3.8 and Ornith share this layout.
    "qwen3_5": {
        "model_type": "qwen3_5",
        "text_config": _COMMON
        | _DELTA_NET
        | {
            "model_type": "qwen3_5_text",
            "num_hidden_layers": 5,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25},
        },
    },
    "qwen3_5_moe": {
        "model_type": "qwen3_5_moe",
        "text_config": _COMMON
        | _DELTA_NET
        | _EXPERTS
        | {
            "model_type": "qwen3_5_moe_text",
            "shared_expert_intermediate_size": 32,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25},
        },
    },
    "lfm2": {
        "model_type": "lfm2",
        **_LFM2,
        "block_dim": HIDDEN,
        "block_ff_dim": 96,
        "block_multiple_of": 32,
        "block_ffn_dim_multiplier": 1.0,
        "block_auto_adjust_ff_dim": True,
    },
    "lfm2_moe": {
        "model_type": "lfm2_moe",
        **_LFM2,
        **_EXPERTS,
        "use_expert_bias": True,
        "num_dense_layers": 1,
    },
    "nemotron_h": {
        "model_type": "nemotron_h",
        **_MAMBA,
        "hybrid_override_pattern": ["M", "E", "M", "*", "-", "M"],
        "moe_intermediate_size": 32,
        "moe_shared_expert_intermediate_size": 32,
        "n_group": 1,
        "topk_group": 1,
        "n_routed_experts": 4,
        "n_shared_experts": 1,
        "num_experts_per_tok": 2,
        "norm_topk_prob": True,
        "routed_scaling_factor": 1.5,
    },
    "granitemoehybrid": {
        "model_type": "granitemoehybrid",
        **_GRANITE,
        "layer_types": ["mamba", "attention", "mamba", "mamba"],
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "shared_intermediate_size": 32,
        "mamba_n_heads": 4,
        "mamba_d_head": 16,
        "mamba_proj_bias": False,
        "mamba_d_state": 16,
        "mamba_d_conv": 4,
        "mamba_n_groups": 2,
        "mamba_conv_bias": True,
        "position_embedding_type": "nope",
    },
}

# Further files of mlx-lm in our table: the same arithmetic in another wrapper, or families beyond the matrix.
MORE: dict[str, dict[str, Any]] = {
    "mistral3": {
        "model_type": "mistral3",
        "text_config": _COMMON
        | {
            "model_type": "ministral3",
            "rope_parameters": {
                "type": "default",
                "rope_theta": 10000.0,
                "llama_4_scaling_beta": 0.1,
                "original_max_position_embeddings": 16,
            },
        },
    },
    "ministral3": {
        "model_type": "ministral3",
        "layer_types": ["sliding_attention", "full_attention"] * 2,
        "sliding_window": 8,
        "rope_parameters": {
            "type": "default",
            "rope_theta": 10000.0,
            "llama_4_scaling_beta": 0.1,
            "original_max_position_embeddings": 16,
        },
    },
    "qwen3_vl": {"model_type": "qwen3_vl", "text_config": _COMMON | {"model_type": "qwen3_vl_text"}},
    "qwen3_vl_moe": {
        "model_type": "qwen3_vl_moe",
        "text_config": _COMMON | _EXPERTS | {"model_type": "qwen3_vl_moe_text"},
    },
    "smollm3": {"model_type": "smollm3", "no_rope_layer_interval": 4},
    "olmo2": {"model_type": "olmo2"},
    "olmo3": {"model_type": "olmo3", "sliding_window": 8},
    "cohere": {"model_type": "cohere", "layer_norm_eps": 1e-5, "logit_scale": 0.25, "use_qk_norm": True},
    "cohere2": {
        "model_type": "cohere2",
        "head_dim": 16,
        "layer_norm_eps": 1e-5,
        "logit_scale": 0.25,
        "sliding_window": 8,
        "sliding_window_pattern": 4,
    },
    "granitemoe": {"model_type": "granitemoe", "num_local_experts": 4, "num_experts_per_tok": 2} | _GRANITE,
    "gemma": {"model_type": "gemma"},
    "gemma2": {
        "model_type": "gemma2",
        "query_pre_attn_scalar": 32,
        "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0,
    },
    "gemma3 with images": {
        "model_type": "gemma3",
        "vocab_size": VOCABULARY,
        "text_config": _COMMON
        | {
            "model_type": "gemma3_text",
            "sliding_window": 8,
            "sliding_window_pattern": 2,
            "query_pre_attn_scalar": 32,
            "rope_local_base_freq": 1000.0,
        },
    },
}

RECURRENT = ("qwen3_next", "qwen3_5", "qwen3_5_moe", "lfm2", "lfm2_moe", "nemotron_h", "granitemoehybrid")


def config(family: str) -> dict[str, Any]:
    own = (FAMILIES | MORE)[family]
    return own if "text_config" in own else _COMMON | own


def model(family: str, *, seed: int = 0) -> nn.Module:
    settings = config(family)
    kind, arguments = _get_classes(settings)
    made: nn.Module = kind(arguments.from_dict(settings))
    made.eval()
    tiny.randomise(made, seed)
    mx.eval(made.parameters())
    return made


def target(family: str, *, seed: int = 0) -> Target:
    return Target(model(family, seed=seed), config(family))


def config_json(family: str) -> str:
    return json.dumps(config(family))
