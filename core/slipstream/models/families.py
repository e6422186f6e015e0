"""Where each architecture of mlx-lm keeps its parts, and what it does to embeddings and logits. A literal table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mlx.core as mx


def _nothing(x: mx.array, _: Any) -> mx.array:
    return x


def _one(_: Any) -> float:
    return 1.0


def softcap(logits: mx.array, cap: float) -> mx.array:
    return mx.tanh(logits / cap) * cap


def _softcapped(logits: mx.array, args: Any) -> mx.array:
    cap = getattr(args, "final_logit_softcapping", None)
    return logits if cap is None else softcap(logits, cap)


@dataclass(frozen=True, slots=True)
class Family:
    """Paths from the mlx-lm model object, and the arithmetic around them. `args` is the model's ModelArgs."""

    root: str = ""  # the text model inside a multimodal one
    body: str = "model"  # maps ids to the hidden states after the final norm
    embed: str = "embed_tokens"
    layers: str = "layers"
    head: str = "lm_head"  # absent: the embedding is tied
    embed_scale: Callable[[Any], float] = _one  # what the body multiplies embeddings by
    before_head: Callable[[mx.array, Any], mx.array] = _nothing
    after_head: Callable[[mx.array, Any], mx.array] = _nothing


def _sqrt_hidden(args: Any) -> float:
    return args.hidden_size**0.5


_PLAIN = Family()
_GRANITE = Family(
    embed_scale=lambda args: args.embedding_multiplier,
    after_head=lambda logits, args: logits / args.logits_scaling,
)
_COHERE = Family(after_head=lambda logits, args: logits * args.logit_scale)
_MINICPM = Family(
    embed_scale=lambda args: args.scale_emb,
    before_head=lambda hidden, args: (
        hidden if args.tie_word_embeddings else hidden / (args.hidden_size / args.dim_model_base)
    ),
)
_PHI = Family(embed="embed_tokens", layers="layers")

FAMILIES: dict[str, Family] = {
    "llama": _PLAIN,
    "mistral": _PLAIN,
    "ministral3": _PLAIN,
    "qwen2": _PLAIN,
    "qwen3": _PLAIN,
    "qwen3_moe": _PLAIN,
    "smollm3": _PLAIN,
    "olmo2": _PLAIN,
    "olmo3": _PLAIN,
    "phi": _PHI,
    "phi3": _PLAIN,
    "nanbeige": _PLAIN,
    "minicpm": _MINICPM,
    "cohere": _COHERE,
    "cohere2": _COHERE,
    "granite": _GRANITE,
    "granitemoe": _GRANITE,
    "gemma": Family(embed_scale=_sqrt_hidden),
    "gemma2": Family(embed_scale=_sqrt_hidden, after_head=_softcapped),
    "gemma3_text": Family(embed_scale=_sqrt_hidden),
    "gemma3": Family(root="language_model", embed_scale=_sqrt_hidden),
    "gemma4_text": Family(embed_scale=_sqrt_hidden, after_head=_softcapped),
    "gemma4": Family(root="language_model", embed_scale=_sqrt_hidden, after_head=_softcapped),
    "muse_glimmer": Family(
        after_head=lambda logits, args: softcap(logits * args.output_multiplier, args.final_logit_softcapping)
    ),
}
"""By `model_type`. What is not listed is tried as the plain family, and the probe at load decides."""


def family(model_type: str) -> Family:
    return FAMILIES.get(model_type, _PLAIN)
