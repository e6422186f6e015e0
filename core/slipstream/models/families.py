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


def _once(_: Any) -> int:
    return 1


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
    norm: str = "norm"  # the final one
    head: str = "lm_head"  # absent: the embedding is tied
    embed_scale: Callable[[Any], float] = _one  # what the body multiplies embeddings by
    before_head: Callable[[mx.array, Any], mx.array] = _nothing
    after_head: Callable[[mx.array, Any], mx.array] = _nothing
    loops: Callable[[Any], int] = _once  # how often the layers are gone through

    @property
    def is_plain_head(self) -> bool:
        """Whether nothing happens before or after the output projection."""
        return self.before_head is _nothing and self.after_head is _nothing


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
_INSIDE = Family(root="language_model")  # the text model of a multimodal one, and of Qwen 3.5 and its successors

FAMILIES: dict[str, Family] = {
    "llama": _PLAIN,
    "mistral": _PLAIN,
    "mistral3": _INSIDE,
    "ministral3": _PLAIN,
    "qwen2": _PLAIN,
    "qwen3": _PLAIN,
    "qwen3_moe": _PLAIN,
    "qwen3_vl": _INSIDE,
    "qwen3_vl_moe": _INSIDE,
    "qwen3_next": _PLAIN,
    "qwen3_5": _INSIDE,
    "qwen3_5_moe": _INSIDE,
    "smollm3": _PLAIN,
    "olmo2": _PLAIN,
    "olmo3": _PLAIN,
    "phi": Family(norm="final_layernorm"),
    "phi3": _PLAIN,
    "nanbeige": Family(loops=lambda args: args.effective_num_loops),
    "minicpm": _MINICPM,
    "cohere": _COHERE,
    "cohere2": _COHERE,
    "granite": _GRANITE,
    "granitemoe": _GRANITE,
    "granitemoehybrid": _GRANITE,
    "gemma": Family(embed_scale=_sqrt_hidden),
    "gemma2": Family(embed_scale=_sqrt_hidden, after_head=_softcapped),
    "gemma3_text": Family(embed_scale=_sqrt_hidden),
    "gemma3": Family(root="language_model", embed_scale=_sqrt_hidden),
    "gemma4_text": Family(embed_scale=_sqrt_hidden, after_head=_softcapped),
    "gemma4": Family(root="language_model", embed_scale=_sqrt_hidden, after_head=_softcapped),
    "muse_glimmer": Family(
        after_head=lambda logits, args: softcap(logits * args.output_multiplier, args.final_logit_softcapping)
    ),
    "lfm2": Family(norm="embedding_norm"),
    "lfm2_moe": Family(norm="embedding_norm"),
    "nemotron_h": Family(body="backbone", embed="embeddings", norm="norm_f"),
}
"""By the name of mlx-lm's model file."""

_GUESSES = (_PLAIN, _INSIDE)


def families(model_type: str) -> tuple[Family, ...]:
    """What a model of this file may look like, best first. One that is not listed may still fit a common layout."""
    return (FAMILIES[model_type],) if model_type in FAMILIES else _GUESSES
