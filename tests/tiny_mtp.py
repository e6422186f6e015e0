"""Tiny models with native MTP heads, in every layout they are published or converted in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten

import tiny_families
from tiny_runs import BYTE_VOCABULARY

Weights = dict[str, mx.array]

FAMILIES = ("qwen3_next", "qwen3_5", "qwen3_5_moe")
_OFFSET = (
    "input_layernorm.weight",
    "post_attention_layernorm.weight",
    "q_norm.weight",
    "k_norm.weight",
    "norm_embedding.weight",
    "norm_hidden.weight",
)


def head_shapes(family: str) -> dict[str, tuple[int, ...]]:
    """Of the heads' tensors, with experts stacked as mlx-lm has them."""
    config = tiny_families.config(family)
    text: dict[str, Any] = config.get("text_config") or config
    hidden, heads, kv, dim = (
        text[key] for key in ("hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim")
    )
    layer = {
        "input_layernorm": (hidden,),
        "post_attention_layernorm": (hidden,),
        "self_attn.q_proj": (2 * heads * dim, hidden),
        "self_attn.k_proj": (kv * dim, hidden),
        "self_attn.v_proj": (kv * dim, hidden),
        "self_attn.o_proj": (hidden, heads * dim),
        "self_attn.q_norm": (dim,),
        "self_attn.k_norm": (dim,),
    }

    def mlp(at: str, width: int) -> dict[str, tuple[int, ...]]:
        return {
            f"{at}.gate_proj": (width, hidden),
            f"{at}.up_proj": (width, hidden),
            f"{at}.down_proj": (hidden, width),
        }

    if experts := text.get("num_experts"):
        routed = mlp("mlp.switch_mlp", text["moe_intermediate_size"])
        layer |= {name: (experts, *shape) for name, shape in routed.items()}
        layer |= mlp("mlp.shared_expert", text["shared_expert_intermediate_size"])
        layer |= {"mlp.gate": (experts, hidden), "mlp.shared_expert_gate": (1, hidden)}
    else:
        layer |= mlp("mlp", text["intermediate_size"])
    shapes = {
        "fc": (hidden, 2 * hidden),
        "pre_fc_norm_embedding": (hidden,),
        "pre_fc_norm_hidden": (hidden,),
        "norm": (hidden,),
    }
    shapes |= {f"layers.0.{name}": shape for name, shape in layer.items()}
    return {f"{name}.weight": shape for name, shape in shapes.items()}


def random_heads(family: str, seed: int = 1) -> Weights:
    """Norms are about 1."""
    shapes = head_shapes(family)
    keys = iter(mx.random.split(mx.random.key(seed), len(shapes)))
    out: Weights = {}
    for name, shape in shapes.items():
        noise = mx.random.normal(shape, key=next(keys))
        out[name] = 1.0 + 0.2 * noise if len(shape) == 1 else noise * shape[-1] ** -0.5 * 1.5
    mx.eval(out)
    return out


def _is_norm(name: str) -> bool:
    return name.endswith(_OFFSET) or name in ("norm.weight", "model.norm.weight", "model.language_model.norm.weight")


def as_offsets(weights: Weights) -> Weights:
    """Norms as Qwen publishes them: what is added to 1."""
    return {name: array - 1.0 if _is_norm(name) else array for name, array in weights.items()}


def _single_experts(weights: Weights) -> Weights:
    """Qwen3-Next and 3.5: each expert by itself."""
    out: Weights = {}
    for name, array in weights.items():
        if ".switch_mlp." in name:
            before, after = name.split(".switch_mlp.")
            out |= {f"{before}.experts.{index}.{after}": array[index] for index in range(array.shape[0])}
        else:
            out[name] = array
    return out


def _joined_experts(weights: Weights) -> Weights:
    """Qwen 3.6: all in two arrays, without `.weight`."""
    out = {name: array for name, array in weights.items() if ".switch_mlp." not in name}
    for name, gate in weights.items():
        if name.endswith(".switch_mlp.gate_proj.weight"):
            at = name.removesuffix(".switch_mlp.gate_proj.weight")
            up, down = (weights[f"{at}.switch_mlp.{kind}_proj.weight"] for kind in ("up", "down"))
            out[f"{at}.experts.gate_up_proj"] = mx.concatenate([gate, up], axis=-2)
            out[f"{at}.experts.down_proj"] = down
    return out


def _trunk(family: str, model: nn.Module) -> Weights:
    """The target as published: what mlx-lm's `sanitize` undoes."""
    out: Weights = {}
    for name, array in dict(tree_flatten(model.parameters())).items():  # pyright: ignore[reportArgumentType]
        at = name
        if name.startswith("language_model."):
            at = name.replace("language_model.model.", "model.language_model.").removeprefix("language_model.")
        out[at] = array.moveaxis(2, 1) if name.endswith("conv1d.weight") else array
    experts = _single_experts if family == "qwen3_next" else _joined_experts
    return as_offsets(experts(out))


def packed(weights: Weights, bits: int = 8, group: int = 32) -> Weights:
    out: Weights = {}
    for name, array in weights.items():
        if array.ndim < 2 or array.shape[-1] % group or name.endswith(("gate.weight", "expert_gate.weight")):
            out[name] = array
            continue
        module = name.removesuffix(".weight")
        out[name], out[f"{module}.scales"], out[f"{module}.biases"] = mx.quantize(array, group_size=group, bits=bits)
    return out


def _prefixed(weights: Weights, prefix: str) -> Weights:
    return {prefix + name: array for name, array in weights.items()}


def _save(file: Path, weights: Weights) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    mx.save_safetensors(str(file), weights, metadata={"format": "mlx"})


def _write_shards(folder: Path, weights: Weights, *, index: bool = True) -> None:
    names = sorted(weights)
    halves = [names[: len(names) // 2], names[len(names) // 2 :]]
    where: dict[str, str] = {}
    for number, half in enumerate(halves, 1):
        file = f"model-{number:05}-of-{len(halves):05}.safetensors"
        _save(folder / file, {name: weights[name] for name in half})
        where |= dict.fromkeys(half, file)
    if index:
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))


def _published(folder: Path, family: str, model: nn.Module, heads: Weights) -> Path:
    experts = _single_experts if family != "qwen3_5_moe" else _joined_experts
    _write_shards(folder, _trunk(family, model) | _prefixed(as_offsets(experts(heads)), "mtp."))
    return folder


def _published_without_index(folder: Path, family: str, model: nn.Module, heads: Weights) -> Path:
    """Experts of the heads one by one, as Qwen 3.5 has them beside joined ones in the trunk."""
    _write_shards(folder, _trunk(family, model) | _prefixed(as_offsets(_single_experts(heads)), "mtp."), index=False)
    return folder


def _converted_trunk(folder: Path, model: nn.Module) -> None:
    _save(folder / "model.safetensors", dict(tree_flatten(model.parameters())))  # pyright: ignore[reportArgumentType]


def _converted(folder: Path, family: str, model: nn.Module, heads: Weights) -> Path:
    """A conversion that kept the heads, as they are and packed."""
    own: Weights = dict(tree_flatten(model.parameters()))  # pyright: ignore[reportAssignmentType]
    prefix = "language_model.mtp." if family != "qwen3_next" else "mtp."
    _save(folder / "model.safetensors", own | _prefixed(packed(heads), prefix))
    return folder


def _sidecar(folder: Path, family: str, model: nn.Module, heads: Weights) -> Path:
    """A file beside a conversion, taken from the published shards as it is."""
    del family
    _converted_trunk(folder, model)
    _save(folder / "mtp.safetensors", _prefixed(as_offsets(heads), "mtp."))
    return folder


def _sidecar_loaded_as_weights(folder: Path, family: str, model: nn.Module, heads: Weights) -> Path:
    """Named so that mlx-lm takes it for a shard."""
    del family
    _converted_trunk(folder, model)
    _save(folder / "model-mtp.safetensors", heads)
    return folder


def _subfolder(folder: Path, family: str, model: nn.Module, heads: Weights) -> Path:
    del family
    _converted_trunk(folder, model)
    _save(folder / "mtp" / "weights.safetensors", _prefixed(heads, "mtp."))
    return folder


def _mixed(folder: Path, family: str, model: nn.Module, heads: Weights) -> Path:
    """Norms of the layer as offsets, the last one as it is (omlx#1507)."""
    del family
    _converted_trunk(folder, model)
    _save(folder / "mtp.safetensors", _prefixed(as_offsets(heads) | {"norm.weight": heads["norm.weight"]}, "mtp."))
    return folder


def _own_repository(folder: Path, family: str, model: nn.Module, heads: Weights) -> Path:
    """mlx-vlm's split: bare names, packed, a config of its own."""
    _converted_trunk(folder, model)
    apart = folder / "apart-MTP-8bit"
    apart.mkdir(parents=True)
    config = tiny_families.config(family)
    text = config.get("text_config") or config
    (apart / "config.json").write_text(
        json.dumps(
            {
                "model_type": "qwen3_5_mtp",
                "block_size": 3,
                "text_config": text,
                "quantization": {"bits": 8, "group_size": 32},
            }
        )
    )
    _save(apart / "model.safetensors", packed(heads))
    return apart


LAYOUTS: dict[str, Callable[[Path, str, nn.Module, Weights], Path]] = {
    "published": _published,
    "published without index": _published_without_index,
    "converted": _converted,
    "sidecar": _sidecar,
    "sidecar named as a shard": _sidecar_loaded_as_weights,
    "subfolder": _subfolder,
    "mixed norms": _mixed,
    "own repository": _own_repository,
}


def bytes_family(family: str) -> dict[str, dict[str, Any]]:
    """The family with a vocabulary of bytes, to stand in for `tiny_families.FAMILIES`."""
    own = tiny_families.FAMILIES[family]
    if "text_config" in own:
        return {family: own | {"text_config": own["text_config"] | {"vocab_size": BYTE_VOCABULARY}}}
    return {family: own | {"vocab_size": BYTE_VOCABULARY}}


def write(
    folder: Path, family: str, layout: str, heads: Weights | None = None, model: nn.Module | None = None
) -> tuple[Path, Path]:
    """A target's folder, and the one to give as its drafter."""
    folder.mkdir(parents=True, exist_ok=True)
    config = tiny_families.config(family)
    text: dict[str, Any] = config.get("text_config") or config
    # Said by conversions too that have no heads any more, so it must not matter.
    text = text | {"mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": False}
    config = config | ({"text_config": text} if "text_config" in config else text)
    (folder / "config.json").write_text(json.dumps(config))
    model = model or tiny_families.model(family)
    return folder, LAYOUTS[layout](folder, family, model, random_heads(family) if heads is None else heads)
