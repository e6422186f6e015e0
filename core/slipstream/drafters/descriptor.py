"""What decoding needs to know of a drafter, whatever its packaging, and which tensors follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import mlx.core as mx

from slipstream.types import Mode

Markov = Literal["vanilla", "gated", "rnn"]
Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Rope:
    dims: int  # of each head that take part
    theta: float
    interleaved: bool  # pairs (2i, 2i + 1), not (i, i + dims / 2)
    scaling: dict[str, Any] | None  # in Hugging Face's terms; None: none


@dataclass(frozen=True, slots=True)
class Descriptor:
    """drafters.md §4.9."""

    mode: Mode
    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int  # the target's
    draft_vocabulary: int  # tokens it can propose
    eps: float
    rope: Rope
    taps: tuple[int, ...]  # 0-based target layers, ascending; -1: the embedding
    target_layers: int | None  # layers of the target it was made for, where it says
    block: int  # slots run per round
    first: int  # first slot whose logits are a prediction: 0 (DSpark) or 1 (DFlash)
    mask_id: int
    windows: tuple[int | None, ...]  # sliding window of each layer
    causal: tuple[bool, ...]  # whether slots of each layer see later slots
    is_gemma: bool  # four norms a layer, weightless norm of values, GELU, a factor for each layer
    keys_are_values: bool
    gated: bool  # half of the queries are gates of the attention's output
    sinks: bool  # an extra logit for each head that takes weight from all keys
    offset_norms: bool  # norms are stored as what is added to 1
    markov: Markov | None
    rank: int
    confidence: bool
    confidence_with_markov: bool
    confidence_temperatures: tuple[float, ...]  # one for each prediction; none: 1
    own_embed: bool
    own_head: bool
    multiplier: float
    softcap: float | None
    embed_scale: float | None  # None: the target's own
    max_position: int
    conv_kernel: int  # taps of the dynamic convolutions of DFlash 2; 0: none
    conv_group: int
    selector_rank: int  # of the candidate selector of DFlash 2; 0: none
    selector_top: int
    log_snr: tuple[float, float] | None  # least and most, where slots are told how noisy they are

    @property
    def proposals(self) -> int:
        return self.block - self.first

    @property
    def is_reduced(self) -> bool:
        return self.draft_vocabulary != self.vocabulary


@dataclass(frozen=True, slots=True)
class Checkpoint:
    descriptor: Descriptor
    weights: dict[str, mx.array]  # plain numbers, whatever the file packs


def expected_shapes(d: Descriptor) -> Shapes:
    """Every tensor of the checkpoint but `fc`, and its shape before packing (drafters.md §4)."""
    shapes: Shapes = {"hidden_norm.weight": (d.hidden,), "norm.weight": (d.hidden,)}
    for layer in range(d.layers):
        shapes |= {f"layers.{layer}.{name}": shape for name, shape in _layer_shapes(d).items()}
    if d.markov:
        shapes |= {
            "markov_head.markov_w1.weight": (d.vocabulary, d.rank),
            "markov_head.markov_w2.weight": (d.draft_vocabulary, d.rank),
        }
    if d.markov == "gated":
        shapes["markov_head.gate_proj.weight"] = (d.rank, d.hidden + d.rank)
        shapes["markov_head.gate_proj.bias"] = (d.rank,)
    if d.markov == "rnn":
        shapes["markov_head.joint_proj.weight"] = (3 * d.rank, 2 * d.rank + d.hidden)
        shapes["markov_head.joint_proj.bias"] = (3 * d.rank,)
    if d.confidence:
        width = d.hidden + (d.rank if d.confidence_with_markov else 0)
        shapes |= {"confidence_head.proj.weight": (1, width), "confidence_head.proj.bias": (1,)}
    if d.own_embed:
        shapes["embed_tokens.weight"] = (d.vocabulary, d.hidden)
    if d.own_head:
        shapes["lm_head.weight"] = (d.draft_vocabulary, d.hidden)
    if d.is_reduced:
        shapes["d2t"] = (d.draft_vocabulary,)
    if d.selector_rank:
        shapes |= {
            "candidate_selector.hidden_projection.weight": (d.selector_rank, d.hidden),
            "candidate_selector.predecessor_codebook": (d.vocabulary, d.selector_rank),
            "candidate_selector.successor_codebook": (d.vocabulary, d.selector_rank),
        }
    if d.log_snr is not None:
        shapes |= {
            "log_snr_fc1.weight": (d.hidden, LOG_SNR_FEATURES),
            "log_snr_fc1.bias": (d.hidden,),
            "log_snr_fc2.weight": (d.hidden, d.hidden),
            "log_snr_fc2.bias": (d.hidden,),
        }
    return shapes


LOG_SNR_FEATURES = 128


def _layer_shapes(d: Descriptor) -> Shapes:
    q, kv = d.heads * d.head_dim, d.kv_heads * d.head_dim
    shapes: Shapes = {
        "input_layernorm.weight": (d.hidden,),
        "post_attention_layernorm.weight": (d.hidden,),
        "self_attn.q_proj.weight": (2 * q if d.gated else q, d.hidden),
        "self_attn.k_proj.weight": (kv, d.hidden),
        "self_attn.o_proj.weight": (d.hidden, q),
        "self_attn.q_norm.weight": (d.head_dim,),
        "self_attn.k_norm.weight": (d.head_dim,),
        "mlp.gate_proj.weight": (d.intermediate, d.hidden),
        "mlp.up_proj.weight": (d.intermediate, d.hidden),
        "mlp.down_proj.weight": (d.hidden, d.intermediate),
    }
    if not d.keys_are_values:
        shapes["self_attn.v_proj.weight"] = (kv, d.hidden)
    if d.sinks:
        shapes["self_attn.attention_sink_bias"] = (d.heads,)
    if d.is_gemma:
        shapes |= {
            "pre_feedforward_layernorm.weight": (d.hidden,),
            "post_feedforward_layernorm.weight": (d.hidden,),
            "layer_scalar": (1,),
        }
    if d.conv_kernel:
        for conv in ("attention_conv", "mlp_conv"):
            shapes[f"{conv}.base_kernel"] = (2, d.conv_kernel, d.hidden)
            shapes[f"{conv}.kernel_projection.weight"] = (
                2 * d.conv_kernel * (d.hidden // d.conv_group),
                d.hidden,
            )
    return shapes
