"""Random drafters in every published packaging, written as their publishers write them (drafters.md §4)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import mlx.core as mx

VOCABULARY, HIDDEN, INTERMEDIATE, LAYERS, HEADS, KV_HEADS, HEAD_DIM = 96, 64, 96, 2, 4, 2, 32
RANK, TOP, MASK = 32, 8, 3
TAPS = (0, 1, 2)

Config = dict[str, Any]
Weights = dict[str, mx.array]


@dataclass(frozen=True)
class Parts:
    """Which tensors a checkpoint has besides the common backbone."""

    markov: str = ""  # vanilla, gated or rnn
    confidence: bool = False
    embed: bool = False
    head: bool = False
    reduced: int = 0  # draft vocabulary
    gemma: bool = False
    gated: bool = False
    sinks: bool = False
    conv: int = 0  # group size
    selector: bool = False
    log_snr: bool = False
    taps: int = len(TAPS)
    vocabulary: int = VOCABULARY
    hidden: int = HIDDEN  # the target's is HIDDEN in any case


def shapes(parts: Parts) -> dict[str, tuple[int, ...]]:  # noqa: PLR0912 - a list, in a way
    width = parts.hidden
    head_dim, kv_heads = (HEAD_DIM, 1) if parts.gemma else (HEAD_DIM, KV_HEADS)
    q, kv = HEADS * head_dim, kv_heads * head_dim
    out: dict[str, tuple[int, ...]] = {
        "fc.weight": (width, parts.taps * HIDDEN),
        "hidden_norm.weight": (width,),
        "norm.weight": (width,),
    }
    for layer in range(LAYERS):
        at = f"layers.{layer}."
        out |= {
            at + "input_layernorm.weight": (width,),
            at + "post_attention_layernorm.weight": (width,),
            at + "self_attn.q_proj.weight": (q * (2 if parts.gated else 1), width),
            at + "self_attn.k_proj.weight": (kv, width),
            at + "self_attn.o_proj.weight": (width, q),
            at + "self_attn.q_norm.weight": (head_dim,),
            at + "self_attn.k_norm.weight": (head_dim,),
            at + "mlp.gate_proj.weight": (INTERMEDIATE, width),
            at + "mlp.up_proj.weight": (INTERMEDIATE, width),
            at + "mlp.down_proj.weight": (width, INTERMEDIATE),
        }
        if parts.gemma:
            out[at + "pre_feedforward_layernorm.weight"] = (width,)
            out[at + "post_feedforward_layernorm.weight"] = (width,)
            out[at + "layer_scalar"] = (1,)
        else:
            out[at + "self_attn.v_proj.weight"] = (kv, width)
        if parts.sinks:
            out[at + "self_attn.attention_sink_bias"] = (HEADS,)
        for conv in ("attention_conv", "mlp_conv") if parts.conv else ():
            out[f"{at}{conv}.base_kernel"] = (2, 2, width)
            out[f"{at}{conv}.kernel_projection.weight"] = (2 * 2 * width // parts.conv, width)
    draft_vocabulary = parts.reduced or parts.vocabulary
    if parts.markov:
        out["markov_head.markov_w1.weight"] = (parts.vocabulary, RANK)
        out["markov_head.markov_w2.weight"] = (draft_vocabulary, RANK)
    if parts.markov == "gated":
        out["markov_head.gate_proj.weight"] = (RANK, width + RANK)
        out["markov_head.gate_proj.bias"] = (RANK,)
    if parts.markov == "rnn":
        out["markov_head.joint_proj.weight"] = (3 * RANK, 2 * RANK + width)
        out["markov_head.joint_proj.bias"] = (3 * RANK,)
    if parts.confidence:
        out["confidence_head.proj.weight"] = (1, width + (RANK if parts.markov else 0))
        out["confidence_head.proj.bias"] = (1,)
    if parts.embed:
        out["embed_tokens.weight"] = (parts.vocabulary, width)
    if parts.head:
        out["lm_head.weight"] = (draft_vocabulary, width)
    if parts.selector:
        out["candidate_selector.hidden_projection.weight"] = (RANK, width)
        out["candidate_selector.predecessor_codebook"] = (parts.vocabulary, RANK)
        out["candidate_selector.successor_codebook"] = (parts.vocabulary, RANK)
    if parts.log_snr:
        out |= {"log_snr_fc1.weight": (width, 128), "log_snr_fc1.bias": (width,)}
        out |= {"log_snr_fc2.weight": (width, width), "log_snr_fc2.bias": (width,)}
    return out


def random_weights(parts: Parts, seed: int, *, norm: float = 1.0) -> Weights:
    """`norm`: what norms are about: 0 where they are stored as offsets."""
    wanted = shapes(parts)
    keys = iter(mx.random.split(mx.random.key(seed), len(wanted)))
    out: Weights = {}
    for name, shape in wanted.items():
        noise = mx.random.normal(shape, key=next(keys))
        if "norm" in name:
            out[name] = norm + 0.2 * noise
        elif name.endswith("layer_scalar"):
            out[name] = 0.7 + 0.1 * noise
        else:
            out[name] = noise * shape[-1] ** -0.5
    if parts.reduced:
        kept = mx.arange(parts.reduced) * VOCABULARY // parts.reduced  # every so many tokens
        out["d2t"] = (kept - mx.arange(parts.reduced)).astype(mx.int64)
        out["t2d"] = (mx.arange(VOCABULARY)[:, None] == kept[None]).any(axis=1)
    mx.eval(out)
    return out


def _backbone(**more: Any) -> Config:
    return {
        "model_type": "qwen3",
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "vocab_size": VOCABULARY,
        "rms_norm_eps": 1e-6,
        "max_position_embeddings": 2048,
    } | more


def _heads(markov: str = "vanilla") -> Config:
    return {
        "markov_rank": RANK,
        "markov_head_type": markov,
        "enable_confidence_head": True,
        "confidence_head_with_markov": True,
    }


_DEFAULT_ROPE = {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}
_MASK_AND_TAPS = {"mask_token_id": MASK, "target_layer_ids": list(TAPS)}


def _deepspec(markov: str) -> Config:
    return _backbone(
        architectures=["Qwen3DSparkModel"],
        block_size=7,
        sliding_window=8,  # inherited from the target, and meaningless
        **_DEFAULT_ROPE,
        **_MASK_AND_TAPS,
        **_heads(markov),
    )


def _gemma4() -> Config:
    return _backbone(
        architectures=["Gemma4DSparkModel"],
        block_size=7,
        **_MASK_AND_TAPS,
        **_heads(),
    ) | {
        "model_type": "gemma4_text",
        "target_model_type": "gemma4_unified",
        "head_dim": 16,
        "global_head_dim": HEAD_DIM,
        "num_global_key_value_heads": 1,
        "attention_k_eq_v": True,
        "final_logit_softcapping": 30.0,
        "hidden_activation": "gelu_pytorch_tanh",
        "rope_parameters": {
            "rope_theta": None,
            "rope_type": "default",
            "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
        },
    }


def _speculators(kind: str, tokens: int, block: int, backbone: Config | None = None, **more: Any) -> Config:
    return {
        "architectures": ["DSparkDraftModel"],
        "speculators_model_type": kind,
        "speculators_version": "0.9.0",
        "block_size": block,
        "aux_hidden_state_layer_ids": [tap + 1 for tap in TAPS],
        "mask_token_id": MASK,
        "draft_vocab_size": VOCABULARY,
        "transformer_layer_config": backbone or _backbone(**_DEFAULT_ROPE),
        "speculators_config": {
            "algorithm": kind,
            "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": tokens}],
            "verifier": {"name_or_path": "example/Tiny", "architectures": ["Qwen3ForCausalLM"]},
        },
        **(_heads() if kind == "dspark" else {}),
        **more,
    }


def _sliding(**more: Any) -> Config:
    return {
        "layer_types": ["sliding_attention", "full_attention"],
        "sliding_window": 8,
        "use_sliding_window": True,
        **more,
    }


def _zlab(label: str = "DFlashDraftModel", block: int = 9, nested: Config | None = None, **more: Any) -> Config:
    return _backbone(
        architectures=[label],
        rope_theta=10000.0,
        dflash_config={"block_size": block, **_MASK_AND_TAPS, **(nested or {})},
        **more,
    )


@dataclass(frozen=True)
class Packaging:
    config: Callable[[], Config]
    parts: Parts
    norm: float = 1.0


_DSPARK = Parts(markov="vanilla", confidence=True)
_YARN = {
    "rope_type": "yarn",
    "factor": 32.0,
    "original_max_position_embeddings": 64,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "rope_theta": 10000.0,
}

PACKAGINGS: dict[str, Packaging] = {
    "deepspec": Packaging(lambda: _deepspec("vanilla"), replace(_DSPARK, embed=True, head=True)),
    "deepspec gated": Packaging(lambda: _deepspec("gated"), replace(_DSPARK, markov="gated", embed=True, head=True)),
    "deepspec rnn": Packaging(lambda: _deepspec("rnn"), replace(_DSPARK, markov="rnn", embed=True, head=True)),
    "deepspec without heads": Packaging(
        lambda: _deepspec("vanilla") | {"markov_rank": 0, "enable_confidence_head": False}, Parts(embed=True, head=True)
    ),
    "deepspec gemma4": Packaging(_gemma4, replace(_DSPARK, gemma=True, embed=True, head=True)),
    "flat": Packaging(
        lambda: (
            _deepspec("vanilla")
            | {
                "projector_type": "dspark",
                "draft_vocab_size": VOCABULARY,
                # Inherited from a hybrid target, and to be ignored.
                "partial_rotary_factor": 0.25,
                "attn_output_gate": True,
                "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.25},
            }
        ),
        _DSPARK,
    ),
    "speculators": Packaging(
        lambda: _speculators("dspark", 8, 8, draft_vocab_size=40, sample_from_anchor=True),
        replace(_DSPARK, reduced=40, head=True),
    ),
    "speculators sliding": Packaging(  # Muse-Glimmer's: every layer slides, and slots see no later ones
        lambda: _speculators(
            "dspark",
            7,
            8,
            _backbone(
                **_sliding(layer_types=["sliding_attention"] * LAYERS),
                rope_parameters={"sliding_attention": {"rope_type": "default", "rope_theta": 5000.0}},
            ),
        ),
        _DSPARK,
    ),
    "speculators mixed": Packaging(
        lambda: _speculators("dspark", 8, 8, _backbone(**_sliding(), **_DEFAULT_ROPE), markov_head_type="rnn"),
        replace(_DSPARK, markov="rnn"),
    ),
    "speculators dflash": Packaging(
        lambda: _speculators("dflash", 7, 8, _backbone(**_sliding(), **_DEFAULT_ROPE), sliding_window_non_causal=True),
        Parts(),
    ),
    "specforge": Packaging(
        lambda: _backbone(
            architectures=["DSparkDraftModel"],
            block_size=7,
            rope_parameters=_YARN,
            dflash_config={"projector_type": "dspark", "attention_mode": "gqa", **_MASK_AND_TAPS, **_heads()},
        ),
        _DSPARK,
    ),
    "lfm2.5": Packaging(
        lambda: _backbone(
            architectures=["Lfm2DSparkDraftModel"],
            block_size=9,
            rope_is_neox_style=False,
            rope_theta=10000.0,
            dflash_config=dict(_MASK_AND_TAPS),
            **_heads(),
        ),
        _DSPARK,
    ),
    "ornith": Packaging(
        lambda: (
            _deepspec("vanilla")
            | {
                "architectures": ["Qwen35DSparkModel"],
                "model_type": "qwen3_5",
                "enable_qwen35_gated_q_proj": True,
                "confidence_temperatures": [1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7],
                "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.25},
            }
        ),
        replace(_DSPARK, gated=True),
        norm=0.0,
    ),
    "nemotron": Packaging(
        lambda: (
            _deepspec("vanilla")
            | {
                "architectures": ["DSparkDraftModel"],
                "dflash_query_causal": True,
                "sliding_window": 8,
                "attention_sink_bias": True,
                "sample_from_anchor": False,
                "has_lm_head": False,
            }
        ),
        replace(_DSPARK, sinks=True, embed=True),
    ),
    "dflash with a markov head": Packaging(lambda: _zlab(block=16), _DSPARK),
    "zlab old": Packaging(
        lambda: _backbone(
            architectures=["DFlashDraftModel"], block_size=16, rope_theta=1e4, dflash_config=dict(_MASK_AND_TAPS)
        ),
        Parts(),
    ),
    "zlab sliding": Packaging(
        lambda: (
            _zlab(nested={"output_multiplier": 0.5, "final_logit_softcapping": 5.0, "input_embedding_scale": 2.0})
            | _sliding()
        ),
        Parts(),
    ),
    "zlab causal": Packaging(lambda: _zlab() | {"is_causal": True}, Parts()),
    "dflash2": Packaging(
        lambda: (
            _zlab(
                "DFlash2DraftModel",
                8,
                {"conv_group_size": 16, "conv_kernel_size": 2, "selector_rank": RANK, "selector_top_k": TOP},
                is_causal=False,
            )
            | _sliding(layer_types=["sliding_attention"] * LAYERS)
        ),
        Parts(conv=16, selector=True),
    ),
}


def write_drafter(folder: Path, packaging: str, *, target_layers: int | None = None, seed: int = 1) -> Path:
    """A checkpoint on disk. `target_layers`: what its config says of the target, where it says it."""
    made = PACKAGINGS[packaging]
    config = made.config()
    if target_layers is not None and "speculators_config" not in config:
        config["num_target_layers"] = target_layers
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    mx.save_safetensors(str(folder / "model.safetensors"), random_weights(made.parts, seed, norm=made.norm))
    return folder
