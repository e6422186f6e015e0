"""Published drafter checkpoints, read into one descriptor: tensors first, config second.

Formats: DeepSpec "Qwen3DSparkModel" (DSpark) and z-lab "DFlashDraftModel" (DFlash). Everything else is refused by name.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import mlx.core as mx

from slipstream.errors import ModelIncomplete, ModelNotFound, PairMismatch, UnsupportedModel
from slipstream.types import Mode

Markov = Literal["vanilla", "gated", "rnn"]


@dataclass(frozen=True, slots=True)
class Descriptor:
    """All that decoding needs to know of a drafter, whatever its packaging."""

    mode: Mode
    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    eps: float
    rope_theta: float
    rope_scaling: dict[str, Any] | None
    taps: tuple[int, ...]  # 0-based target layers, ascending
    target_layers: int | None  # layers of the target it was made for, where it says
    block: int  # slots run per round
    first: int  # first slot whose logits are a prediction: 0 (DSpark) or 1 (DFlash)
    mask_id: int
    windows: tuple[int | None, ...]  # sliding window of each layer
    causal: tuple[bool, ...]  # whether slots of each layer see later slots
    markov: Markov | None
    rank: int
    confidence: bool
    confidence_with_markov: bool
    own_embed: bool
    own_head: bool
    multiplier: float
    softcap: float | None
    embed_scale: float | None  # None: the target's own
    max_position: int

    @property
    def proposals(self) -> int:
        return self.block - self.first


@dataclass(frozen=True, slots=True)
class Checkpoint:
    descriptor: Descriptor
    weights: dict[str, mx.array]  # plain numbers, whatever the file packs


def read(folder: Path) -> Checkpoint:
    """Read a drafter folder.

    Raises ModelNotFound, ModelIncomplete (files missing or cut short), UnsupportedModel (another format), and
    PairMismatch when the tensors contradict the config.
    """
    if not folder.is_dir():
        raise ModelNotFound(f"no drafter at {folder}; check the path", path=str(folder))
    config_path = folder / "config.json"
    if not config_path.is_file():
        raise ModelIncomplete(f"{folder} has no config.json; download the drafter again", path=str(folder))
    try:
        config: dict[str, Any] = json.loads(config_path.read_text())
    except ValueError as error:
        raise ModelIncomplete(f"{config_path} is not valid JSON; download the drafter again") from error
    if not isinstance(config, dict):  # pyright: ignore[reportUnnecessaryIsInstance] - a file may say anything
        raise ModelIncomplete(f"{config_path} is no JSON object; download the drafter again")
    weights = _load_weights(folder)
    try:
        weights = _unpacked(config, weights)
        mode = _detect(folder, config, weights)
        descriptor = _describe(mode, config, weights)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise UnsupportedModel(f"{config_path} lacks or misstates {error}; this drafter cannot be read") from error
    _check_tensors(folder, descriptor, weights)
    return Checkpoint(descriptor, weights)


def _load_weights(folder: Path) -> dict[str, mx.array]:
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ModelIncomplete(f"{folder} has no .safetensors file; download the drafter again", path=str(folder))
    weights: dict[str, mx.array] = {}
    for file in files:
        try:
            loaded = mx.load(str(file))
            assert isinstance(loaded, dict)
            mx.eval(loaded)
        except RuntimeError as error:
            raise ModelIncomplete(f"{file} is damaged or only half downloaded; download it again") from error
        weights |= loaded
    return weights


def _detect(folder: Path, config: dict[str, Any], weights: dict[str, mx.array]) -> Mode:
    nested: dict[str, Any] = config.get("dflash_config") or {}
    names: list[str] = config.get("architectures") or []
    label = names[0] if names else str(config.get("model_type"))

    def refuse(what: str) -> UnsupportedModel:
        return UnsupportedModel(f"{folder}: {what} drafters ({label}) are not supported yet; choose another drafter")

    if "fc.weight" not in weights:
        raise UnsupportedModel(f"{folder} is not a DSpark or DFlash drafter (it has no fc.weight); choose another")
    if "speculators_config" in config or "speculators_model_type" in config:
        raise refuse("speculators-packaged")
    if any("conv." in name or name.startswith("candidate_selector.") for name in weights) or "DFlash2" in label:
        raise refuse("DFlash 2")
    if str(config.get("model_type", "")).startswith("gemma4") or any("layer_scalar" in name for name in weights):
        raise refuse("Gemma-4 DSpark")
    if config.get("model_type") != "qwen3" or any("sink" in name for name in weights):
        raise refuse(str(config.get("model_type")))
    if nested.get("projector_type") == "dspark" or config.get("rope_is_neox_style") is False:
        raise refuse("SpecForge or LFM2 DSpark")
    # The Markov head is what makes a DSpark, whatever the class is called.
    return Mode.DSPARK if "markov_head.markov_w1.weight" in weights or "DSpark" in label else Mode.DFLASH


def _describe(mode: Mode, config: dict[str, Any], weights: dict[str, mx.array]) -> Descriptor:
    nested: dict[str, Any] = config.get("dflash_config") or {}

    def field(name: str, default: Any = None) -> Any:
        return nested.get(name, config.get(name, default))

    layers = int(config["num_hidden_layers"])
    heads = int(config["num_attention_heads"])
    hidden = int(config["hidden_size"])
    rope: dict[str, Any] = config.get("rope_parameters") or {}
    scaling: dict[str, Any] | None = config.get("rope_scaling")
    if rope.get("rope_type", "default") != "default":
        scaling = rope
    target_layers = config.get("num_target_layers")
    taps = field("target_layer_ids")
    if taps is None and target_layers is not None:
        taps = _default_taps(layers, int(target_layers))
    if not taps:
        raise KeyError("target_layer_ids")
    kinds: list[str] = config.get("layer_types") or ["full_attention"] * layers
    if len(kinds) < layers:
        raise ValueError(f"layer_types: {len(kinds)} for {layers} layers")
    block, first = int(field("block_size", 16)), int(config.get("logits_start", 1 if mode is Mode.DFLASH else 0))
    if not 0 <= first < block:
        raise ValueError(f"block_size {block}: it proposes nothing")
    # DeepSpec's attention ignores the window that its configs inherit from the target.
    is_dflash = mode is Mode.DFLASH
    sliding = [is_dflash and kind == "sliding_attention" for kind in kinds[:layers]]
    is_causal = field("is_causal")
    markov = _markov(config, weights)
    rank = weights["markov_head.markov_w1.weight"].shape[1] if markov else 0
    softcap = field("final_logit_softcapping") if is_dflash else None
    scale = field("input_embedding_scale")
    return Descriptor(
        mode=mode,
        hidden=hidden,
        intermediate=int(config["intermediate_size"]),
        layers=layers,
        heads=heads,
        kv_heads=int(config.get("num_key_value_heads") or heads),
        head_dim=int(config.get("head_dim") or hidden // heads),
        vocabulary=int(config["vocab_size"]),
        eps=float(config["rms_norm_eps"]),
        rope_theta=float(rope.get("rope_theta") or config["rope_theta"]),
        rope_scaling=scaling,
        taps=tuple(int(tap) for tap in taps),
        target_layers=None if target_layers is None else int(target_layers),
        block=block,
        first=first,
        mask_id=int(field("mask_token_id")),
        windows=tuple(int(config["sliding_window"]) if slides else None for slides in sliding),
        causal=tuple(slides if is_causal is None else bool(is_causal) for slides in sliding)
        if is_dflash
        else (False,) * layers,
        markov=markov,
        rank=rank,
        confidence="confidence_head.proj.weight" in weights,
        confidence_with_markov=bool(config.get("confidence_head_with_markov", False)),
        own_embed="embed_tokens.weight" in weights,
        own_head="lm_head.weight" in weights,
        multiplier=float(field("output_multiplier", 1.0)) if is_dflash else 1.0,
        softcap=None if softcap is None else float(softcap),
        embed_scale=(None if scale is None else float(scale)) if is_dflash else 1.0,
        max_position=int(config.get("max_position_embeddings") or 2**31),
    )


def _default_taps(layers: int, target_layers: int) -> list[int]:
    """z-lab's rule where the config names none: spread from layer 1 to the third from the end."""
    if layers == 1:
        return [target_layers // 2]
    return [round(1 + index * (target_layers - 4) / (layers - 1)) for index in range(layers)]


def _markov(config: dict[str, Any], weights: dict[str, mx.array]) -> Markov | None:
    if "markov_head.markov_w1.weight" not in weights:
        return None
    if "markov_head.joint_proj.weight" in weights:
        return "rnn"
    if "markov_head.gate_proj.weight" in weights:
        return "gated"
    if (kind := config.get("markov_head_type", "vanilla")) != "vanilla":
        raise ValueError(f"markov_head_type {kind!r} (its tensors are not in the file)")
    return "vanilla"


def _unpacked(config: dict[str, Any], weights: dict[str, mx.array]) -> dict[str, mx.array]:
    """Packed modules as plain numbers. mlx's convention: a default packing and overrides by module path."""
    packed = [name.removesuffix(".scales") for name in weights if name.endswith(".scales")]
    if not packed:
        return weights
    table: dict[str, Any] | None = config.get("quantization")
    if table is None:
        raise UnsupportedModel("the drafter's weights are packed but its config has no 'quantization' entry")
    if table.get("mode", "affine") != "affine":
        raise UnsupportedModel(f"drafters quantised as {table['mode']!r} are not supported; use an affine or bf16 one")
    out = dict(weights)
    for path in packed:
        entry: dict[str, Any] = table[path] if isinstance(table.get(path), dict) else table
        # In float32: dequantising in the scales' own half precision would round every weight once more.
        scales, biases = (out.pop(f"{path}.{name}").astype(mx.float32) for name in ("scales", "biases"))
        out[f"{path}.weight"] = mx.dequantize(
            out[f"{path}.weight"], scales, biases, group_size=int(entry["group_size"]), bits=int(entry["bits"])
        )
    return out


def expected_shapes(d: Descriptor) -> dict[str, tuple[int, ...]]:
    """Every tensor of the checkpoint and its shape before packing (drafters.md §4, "common backbone")."""
    q, kv = d.heads * d.head_dim, d.kv_heads * d.head_dim
    shapes: dict[str, tuple[int, ...]] = {"hidden_norm.weight": (d.hidden,), "norm.weight": (d.hidden,)}
    for layer in range(d.layers):
        at = f"layers.{layer}."
        shapes |= {
            at + "input_layernorm.weight": (d.hidden,),
            at + "post_attention_layernorm.weight": (d.hidden,),
            at + "self_attn.q_proj.weight": (q, d.hidden),
            at + "self_attn.k_proj.weight": (kv, d.hidden),
            at + "self_attn.v_proj.weight": (kv, d.hidden),
            at + "self_attn.o_proj.weight": (d.hidden, q),
            at + "self_attn.q_norm.weight": (d.head_dim,),
            at + "self_attn.k_norm.weight": (d.head_dim,),
            at + "mlp.gate_proj.weight": (d.intermediate, d.hidden),
            at + "mlp.up_proj.weight": (d.intermediate, d.hidden),
            at + "mlp.down_proj.weight": (d.hidden, d.intermediate),
        }
    if d.markov:
        shapes |= {
            "markov_head.markov_w1.weight": (d.vocabulary, d.rank),
            "markov_head.markov_w2.weight": (d.vocabulary, d.rank),
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
        shapes["lm_head.weight"] = (d.vocabulary, d.hidden)
    return shapes


def _check_tensors(folder: Path, d: Descriptor, weights: dict[str, mx.array]) -> None:
    """A partly loaded drafter runs and accepts almost nothing, so names and shapes must match both ways."""
    expected = expected_shapes(d)
    found = weights.keys() - {"fc.weight"}
    if missing := sorted(expected.keys() - found):
        raise ModelIncomplete(f"{folder} lacks {len(missing)} tensors ({missing[0]}, …); download the drafter again")
    if extra := sorted(found - expected.keys()):
        raise UnsupportedModel(f"{folder} has tensors this format does not ({', '.join(extra[:3])}); cannot be used")
    for name, shape in expected.items():
        if (actual := tuple(weights[name].shape)) != shape:
            raise PairMismatch(f"{folder}: {name} is {list(actual)}, but its config says {list(shape)}")
    fused = list(weights["fc.weight"].shape)
    if len(fused) != 2 or fused[0] != d.hidden or fused[1] % len(d.taps):
        raise PairMismatch(f"{folder}: fc.weight is {fused}, which does not fit {len(d.taps)} taps")


def check_pair(checkpoint: Checkpoint, *, hidden: int, layers: int, vocabulary: int, target: str) -> None:
    """Refuse a drafter of another target, naming the numbers. Raises PairMismatch."""
    d = checkpoint.descriptor
    width = checkpoint.weights["fc.weight"].shape[1] // len(d.taps)

    def refuse(what: str, **facts: object) -> PairMismatch:
        return PairMismatch(f"this drafter was made for another model than {target}: {what}; choose its own", **facts)

    if width != hidden:
        raise refuse(f"it reads hidden states of {width}, the target's have {hidden}", drafter=width, target=hidden)
    if max(d.taps) >= layers or min(d.taps) < -1:
        raise refuse(f"it taps layers {list(d.taps)}, the target has {layers}", taps=d.taps, layers=layers)
    if d.target_layers is not None and d.target_layers != layers:
        raise refuse(f"it expects {d.target_layers} layers, the target has {layers}", layers=layers)
    if not (d.own_embed and d.own_head) and d.hidden != hidden:
        raise refuse(f"its width is {d.hidden} and it has no embedding of its own, the target's is {hidden}")
    if d.vocabulary != vocabulary:
        raise refuse(f"it has {d.vocabulary} tokens, the target {vocabulary}", drafter=d.vocabulary, target=vocabulary)
    if not 0 <= d.mask_id < vocabulary:
        raise refuse(f"its mask token {d.mask_id} is outside the target's {vocabulary} tokens", mask=d.mask_id)
