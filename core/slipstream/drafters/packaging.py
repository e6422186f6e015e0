"""How each publisher writes a drafter down: which fields, which numbering, and what of it is to be believed.

Configs are often copies of the target's with drafter fields added, so what the tensors show goes before what they say.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlx.core as mx

from slipstream.drafters.descriptor import Descriptor, Markov, Rope
from slipstream.errors import UnsupportedModel
from slipstream.types import Mode

W1 = "markov_head.markov_w1.weight"
_ROPE_PLAIN = ("default", "mrope")
_ROPE_SCALED = ("linear", "dynamic", "llama3", "yarn", "longrope", "proportional")


@dataclass(frozen=True, slots=True)
class _Source:
    """A config and its tensors. `fields` are looked up in that order."""

    folder: Path
    config: dict[str, Any]
    backbone: dict[str, Any]  # where the network's sizes stand
    fields: tuple[dict[str, Any], ...]
    weights: dict[str, mx.array]

    def field(self, name: str, default: Any = None) -> Any:
        return next((part[name] for part in self.fields if part.get(name) is not None), default)

    def has(self, tensor: str) -> bool:
        return tensor in self.weights

    def size(self, tensor: str, axis: int) -> int:
        return self.weights[tensor].shape[axis]

    @property
    def is_gemma(self) -> bool:
        """Whether the layers are Gemma 4's. Drafters for Gemma targets need not be."""
        return self.has("layers.0.layer_scalar") or str(self.config.get("model_type")).startswith("gemma4")

    @property
    def label(self) -> str:
        names: list[str] = self.config.get("architectures") or []
        return names[0] if names else str(self.config.get("model_type"))


def normalised(weights: dict[str, mx.array]) -> dict[str, mx.array]:
    """Tensors without those that are for training or for another program, and with zeros for a bias left out."""
    out = {name: array for name, array in weights.items() if name != "t2d" and not name.startswith("verifier_")}
    if "confidence_head.proj.weight" in out and "confidence_head.proj.bias" not in out:
        out["confidence_head.proj.bias"] = mx.zeros((1,))
    return out


def describe(folder: Path, config: dict[str, Any], weights: dict[str, mx.array]) -> Descriptor:
    """Which packaging it is (drafters.md §4.9), and what it says.

    Raises UnsupportedModel with the reason when it is none of them, and the errors of plain look-ups when a field is
    missing or of another kind.
    """
    nested: dict[str, Any] = config.get("dflash_config") or {}
    source = _Source(folder, config, config, (nested, config), weights)
    if "fc.weight" not in weights:
        raise UnsupportedModel(f"{folder} is not a DSpark or DFlash drafter (it has no fc.weight); choose another")
    if "speculators_config" in config or "speculators_model_type" in config:
        return _speculators(folder, config, weights)
    if source.label.startswith("DFlash2") or any("conv.base_kernel" in name for name in weights):
        return _dflash(source)
    if source.label.startswith("DFlash") and not source.has(W1):
        return _dflash(source)
    if source.label.startswith(("DFly", "Domino", "Eagle", "Llama", "Medusa")):
        raise UnsupportedModel(f"{folder}: {source.label} drafters are not supported; choose a DSpark or DFlash one")
    if source.has(W1) or "DSpark" in source.label or nested.get("projector_type") == "dspark":
        return _dspark(source)
    if source.config.get("model_type") == "qwen3":
        return _dflash(source)
    raise UnsupportedModel(f"{folder}: drafters of kind {source.label} are not supported; choose another drafter")


def _dspark(source: _Source) -> Descriptor:
    """DeepSpec's own layout, SpecForge's, LFM2.5's and the flat heads of others (§4.1, 4.2, 4.4 to 4.6)."""
    block = int(source.field("block_size", 7))
    anchored = source.field("sample_from_anchor")
    if anchored is None:
        # A DFlash network with a Markov head keeps DFlash's slots, and its block of 16.
        anchored = not (source.label.startswith("DFlash") and block >= 16)
    is_causal = bool(source.field("dflash_query_causal", False))
    # DeepSpec's attention ignores the window that its configs inherit from the target.
    windows = _windows(source, default_kind="sliding_attention") if is_causal else (None,) * _layers(source)
    scale, softcap = 1.0, None
    if source.is_gemma:
        kind = source.weights["embed_tokens.weight"].dtype if source.has("embed_tokens.weight") else mx.bfloat16
        scale = float(mx.array(_hidden(source) ** 0.5).astype(kind).astype(mx.float32).item())  # type: ignore[arg-type]
        softcap = source.field("final_logit_softcapping")
    temperatures: list[float] = source.field("confidence_temperatures") or []
    return _descriptor(
        source,
        mode=Mode.DSPARK,
        taps=_taps(source),
        block=block,
        first=_first(source, block, 0 if anchored else 1),
        windows=windows,
        causal=tuple(is_causal for _ in windows),
        embed_scale=scale,
        softcap=softcap,
        temperatures=tuple(float(value) for value in temperatures),
    )


def _dflash(source: _Source) -> Descriptor:
    """z-lab's DFlash and DFlash 2 (§4.7)."""
    if source.label.startswith("DFlash2") and not source.has("candidate_selector.hidden_projection.weight"):
        raise UnsupportedModel(f"{source.folder} calls itself {source.label} but has no selector; choose another")
    block = int(source.field("block_size", 16))
    windows = _windows(source)
    is_causal = source.field("is_causal")
    scale = source.field("input_embedding_scale")
    return _descriptor(
        source,
        mode=Mode.DFLASH,
        taps=_taps(source),
        block=block,
        first=_first(source, block, 1),
        windows=windows,
        causal=tuple(window is not None if is_causal is None else bool(is_causal) for window in windows),
        embed_scale=None if scale is None else float(scale),
        softcap=source.field("final_logit_softcapping"),
        multiplier=float(source.field("output_multiplier", 1.0)),
    )


def _speculators(folder: Path, config: dict[str, Any], weights: dict[str, mx.array]) -> Descriptor:
    """The speculators library's packaging (§4.3)."""
    own: dict[str, Any] = config.get("speculators_config") or {}
    kind = str(config.get("speculators_model_type") or own.get("algorithm"))
    if kind not in ("dspark", "dflash", "dflash2"):
        raise UnsupportedModel(f"{folder}: speculators drafters of kind {kind!r} are not supported; choose another")
    source = _Source(folder, config, config["transformer_layer_config"], (config,), weights)
    block = int(config["block_size"])
    methods: list[dict[str, Any]] = own.get("proposal_methods") or []
    tokens = next((method["speculative_tokens"] for method in methods if method.get("speculative_tokens")), None)
    first = 0 if config.get("sample_from_anchor") else 1  # heads older than the field start at 1
    if tokens is not None and block - int(tokens) in (0, 1):
        first = block - int(tokens)
    windows = _windows(source)
    both_ways = bool(source.field("sliding_window_non_causal", kind == "dflash2"))
    numbers: list[int] = config["aux_hidden_state_layer_ids"]
    return _descriptor(
        source,
        mode=Mode.DSPARK if kind == "dspark" else Mode.DFLASH,
        taps=[int(number) - 1 for number in numbers],  # theirs count the embedding as 0
        block=block,
        first=_first(source, block, first),
        windows=windows,
        causal=tuple(window is not None and not both_ways for window in windows),
        embed_scale=1.0,
    )


def _descriptor(
    source: _Source,
    *,
    mode: Mode,
    taps: list[int],
    block: int,
    first: int,
    windows: tuple[int | None, ...],
    causal: tuple[bool, ...],
    embed_scale: float | None,
    softcap: Any = None,
    multiplier: float = 1.0,
    temperatures: tuple[float, ...] = (),
) -> Descriptor:
    """What all packagings share. Sizes come from the config, to be checked; kinds of parts from the tensors."""
    config, layers, hidden = source.backbone, _layers(source), _hidden(source)
    if len(kinds := config.get("layer_types") or [""] * layers) < layers:
        raise ValueError(f"layer_types: {len(kinds)} for {layers} layers")
    is_gemma = source.is_gemma
    keys_are_values = not source.has("layers.0.self_attn.v_proj.weight")
    heads = int(config["num_attention_heads"])
    kv_heads = int(config.get("num_key_value_heads") or heads)
    head_dim = int(config.get("head_dim") or hidden // heads)
    if is_gemma:
        head_dim = int(config.get("global_head_dim") or head_dim)
        if keys_are_values:
            kv_heads = int(config.get("num_global_key_value_heads") or kv_heads)
    gated = source.size("layers.0.self_attn.q_proj.weight", 0) == 2 * source.size("layers.0.self_attn.o_proj.weight", 1)
    markov = _markov(source)
    rank = source.size(W1, 1) if markov else 0
    has_confidence = source.has("confidence_head.proj.weight")
    vocabulary = int(config["vocab_size"])
    target_layers = source.field("num_target_layers")
    conv = "layers.0.attention_conv."
    kernel = source.size(conv + "base_kernel", 1) if source.has(conv + "base_kernel") else 0
    group = 2 * kernel * hidden // source.size(conv + "kernel_projection.weight", 0) if kernel else 0
    selector = "candidate_selector.hidden_projection.weight"
    return Descriptor(
        mode=mode,
        hidden=hidden,
        intermediate=int(config["intermediate_size"]),
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        vocabulary=vocabulary,
        draft_vocabulary=int(source.field("draft_vocab_size") or vocabulary),
        eps=float(config["rms_norm_eps"]),
        rope=_rope(source, head_dim, is_gemma=is_gemma, is_partial=gated),
        taps=tuple(taps),
        target_layers=None if target_layers is None else int(target_layers),
        block=block,
        first=first,
        mask_id=int(source.field("mask_token_id")),
        windows=windows,
        causal=causal,
        is_gemma=is_gemma,
        keys_are_values=keys_are_values,
        gated=gated,
        sinks=source.has("layers.0.self_attn.attention_sink_bias"),
        offset_norms=gated and str(source.config.get("model_type")).startswith("qwen3_5"),
        markov=markov,
        rank=rank,
        confidence=has_confidence,
        confidence_with_markov=has_confidence and rank > 0 and source.size("confidence_head.proj.weight", 1) != hidden,
        confidence_temperatures=temperatures,
        own_embed=source.has("embed_tokens.weight"),
        own_head=source.has("lm_head.weight"),
        multiplier=multiplier,
        softcap=None if softcap is None else float(softcap),
        embed_scale=embed_scale,
        max_position=int(config.get("max_position_embeddings") or 2**31),
        conv_kernel=kernel,
        conv_group=group,
        selector_rank=source.size(selector, 0) if source.has(selector) else 0,
        selector_top=int(source.field("selector_top_k", 16)),
        log_snr=(float(source.field("min_log_snr", -9.0)), float(source.field("max_log_snr", 9.0)))
        if source.has("log_snr_fc1.weight")
        else None,
    )


def _layers(source: _Source) -> int:
    return int(source.backbone["num_hidden_layers"])


def _hidden(source: _Source) -> int:
    return int(source.backbone["hidden_size"])


def _first(source: _Source, block: int, default: int) -> int:
    first = int(source.field("logits_start", default))
    if not 0 <= first < block:
        raise ValueError(f"block_size {block}: it proposes nothing")
    return first


def _taps(source: _Source) -> list[int]:
    taps: list[int] | None = source.field("target_layer_ids")
    target_layers = source.field("num_target_layers")
    if taps is None and target_layers is not None:
        taps = _default_taps(_layers(source), int(target_layers))
    if not taps:
        raise KeyError("target_layer_ids")
    return [int(tap) for tap in taps]


def _default_taps(layers: int, target_layers: int) -> list[int]:
    """z-lab's rule where the config names none: spread from layer 1 to the third from the end."""
    if layers == 1:
        return [target_layers // 2]
    return [round(1 + index * (target_layers - 4) / (layers - 1)) for index in range(layers)]


def _windows(source: _Source, default_kind: str = "full_attention") -> tuple[int | None, ...]:
    """The sliding window of each layer."""
    config, layers = source.backbone, _layers(source)
    window = config.get("sliding_window")
    if window is None or config.get("use_sliding_window") is False:
        return (None,) * layers
    kinds: list[str] = config.get("layer_types") or [default_kind] * layers
    return tuple(int(window) if kind == "sliding_attention" else None for kind in kinds[:layers])


def _rope(source: _Source, head_dim: int, *, is_gemma: bool, is_partial: bool) -> Rope:
    """Only Ornith's gated heads turn part of a head; elsewhere that field is the target's."""
    config = source.backbone
    rope: dict[str, Any] = config.get("rope_parameters") or {}
    if is_gemma:
        rope = rope["full_attention"]
    elif isinstance(rope.get("sliding_attention"), dict):
        rope = rope["sliding_attention"]
    theta = float(rope.get("rope_theta") or config["rope_theta"])
    dims = head_dim
    if is_partial:
        dims = int(head_dim * float(rope.get("partial_rotary_factor") or config.get("partial_rotary_factor") or 1.0))
    scaling: dict[str, Any] | None = rope if _rope_kind(rope) not in _ROPE_PLAIN else config.get("rope_scaling")
    if scaling is not None and _rope_kind(scaling) in _ROPE_PLAIN:
        scaling = None
    if scaling is not None and _rope_kind(scaling) not in _ROPE_SCALED:
        raise ValueError(f"rope_type {_rope_kind(scaling)!r}")
    return Rope(dims, theta, source.field("rope_is_neox_style") is False, scaling)


def _rope_kind(rope: dict[str, Any]) -> str:
    return str(rope.get("rope_type") or rope.get("type") or "default")


def _markov(source: _Source) -> Markov | None:
    if not source.has(W1):
        return None
    if source.has("markov_head.joint_proj.weight"):
        return "rnn"
    if source.has("markov_head.gate_proj.weight"):
        return "gated"
    if (kind := source.field("markov_head_type", "vanilla")) != "vanilla":
        raise ValueError(f"markov_head_type {kind!r} (its tensors are not in the file)")
    return "vanilla"
