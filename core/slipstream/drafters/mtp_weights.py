"""Native MTP heads from disk: every published layout as one set of plain tensors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import mlx.core as mx

from slipstream.errors import ModelIncomplete, UnsupportedModel, reason

Weights = dict[str, mx.array]
Places = Mapping[str, tuple[Path, str]]
"""Tensors by their names within the heads: the file of each, and its name there (`store/heads.py` finds them)."""

# Norms come in groups, since a publisher may store one group as what is added to 1 and another one as it is.
INPUTS, LAYERS, OUTPUT = "inputs", "layers", "output"
NORMS = {
    INPUTS: ("pre_fc_norm_embedding", "pre_fc_norm_hidden"),
    LAYERS: (
        "layers.0.input_layernorm",
        "layers.0.post_attention_layernorm",
        "layers.0.self_attn.q_norm",
        "layers.0.self_attn.k_norm",
    ),
    OUTPUT: ("norm",),
}
_EXPERT = re.compile(r"(.*\.mlp)\.experts\.(\d+)\.(gate|up|down)_proj\.weight")
_PACKED_MODES = {(4, 16): "nvfp4", (4, 32): "mxfp4", (8, 32): "mxfp8"}  # by bits and group, where scales are bytes


@dataclass(frozen=True, slots=True)
class Reading:
    """What no tensor's name says of the heads. Found by how many drafts come out right (`engine/head_reading.py`)."""

    normed: bool = True  # they read the target's last stream behind its final norm, and their own likewise
    offset: frozenset[str] = frozenset()  # groups of norms stored as what is added to 1


@dataclass(frozen=True, slots=True)
class HeadWeights:
    """Plain tensors by their names within the heads, mlx-lm's names where publishers differ."""

    folder: Path
    tensors: Weights

    @property
    def experts(self) -> int:
        """0: a dense layer."""
        stacked = self.tensors.get("layers.0.mlp.switch_mlp.down_proj.weight")
        return 0 if stacked is None else stacked.shape[0]

    def size(self, name: str, axis: int) -> int:
        return self.tensors[name].shape[axis]


def read(folder: Path, found: Places) -> HeadWeights:
    """The heads of a folder. Raises UnsupportedModel when they are of a kind not known here, and ModelIncomplete."""
    if odd := sorted(name for name in found if name.startswith("layers.") and not name.startswith("layers.0.")):
        raise UnsupportedModel(f"{folder}: MTP heads of several layers ({odd[0]}) are not supported; use --mode auto")
    if odd := sorted(name for name in found if name.endswith(("weight_scale_inv", "weight_scale", "qweight"))):
        raise UnsupportedModel(
            f"{folder}: its MTP heads are packed in a way that is not read ({odd[0]}); take them from the bf16 "
            "repository of the model, or use --mode auto"
        )
    try:
        tensors = _experts_stacked(_unpacked(folder, _load(found)))
    except (KeyError, IndexError, ValueError, ArithmeticError) as error:
        raise UnsupportedModel(
            f"{folder}: its MTP heads lack or misstate something ({reason(error)}); use --drafter none"
        ) from error
    mx.eval(tensors)
    return HeadWeights(folder, tensors)


def prior(tensors: Weights) -> Reading:
    """The likeliest reading by the values. Norms multiply by about 1; what is added to 1 is about 0, often below.

    The two norms before `fc` damp, and are small either way: they follow the layer's unless they go below 0.
    """
    means = {group: [_mean(tensors[f"{name}.weight"]) for name in names] for group, names in NORMS.items()}
    layers = sum(means[LAYERS]) / len(means[LAYERS]) < 0.5
    offset = {LAYERS: layers, INPUTS: layers or min(means[INPUTS]) < 0, OUTPUT: layers}
    return Reading(offset=frozenset(group for group, is_offset in offset.items() if is_offset))


def _mean(array: mx.array) -> float:
    return float(mx.mean(array.astype(mx.float32)).item())  # pyright: ignore[reportArgumentType]


def _load(found: Places) -> Weights:
    out: Weights = {}
    for file in {file for file, _ in found.values()}:
        try:
            stored = mx.load(str(file))  # lazily: of a shard, only what is asked for is read
            assert isinstance(stored, dict)
            own = {name: stored[there] for name, (where, there) in found.items() if where == file}
            mx.eval(own)
        except RuntimeError as error:
            raise ModelIncomplete(f"{file} is damaged or only half downloaded; download it again") from error
        out |= own
    return out


def _unpacked(folder: Path, weights: Weights) -> Weights:
    """Packed modules as plain numbers. How they are packed follows from the shapes: each row's length is known."""
    hidden = weights["norm.weight"].shape[0]
    out = dict(weights)
    for module in [name.removesuffix(".scales") for name in weights if name.endswith(".scales")]:
        packed, scales = out.pop(f"{module}.weight"), out.pop(f"{module}.scales")
        biases = out.pop(f"{module}.biases", None)
        columns = _columns(module, hidden, weights)
        bits, group = packed.shape[-1] * 32 // columns, columns // scales.shape[-1]
        mode = "affine" if biases is not None else _PACKED_MODES.get((bits, group))
        if mode is None:
            raise UnsupportedModel(
                f"{folder}: {module} is packed to {bits} bits in groups of {group}, which is not read"
            )
        if biases is not None:
            scales, biases = scales.astype(mx.float32), biases.astype(mx.float32)
        out[f"{module}.weight"] = mx.dequantize(packed, scales, biases, group_size=group, bits=bits, mode=mode)
    return out


def _columns(module: str, hidden: int, weights: Weights) -> int:
    if module == "fc":
        return 2 * hidden
    if module.endswith("o_proj"):  # queries have as many columns, and gates of them
        return weights[f"{module.removesuffix('o_proj')}q_proj.weight"].shape[-2] // 2
    if module.endswith("down_proj"):
        up = weights.get(f"{module.removesuffix('down_proj')}up_proj.weight")
        return (
            weights[f"{module.removesuffix('down_proj')}gate_up_proj.weight"].shape[-2] // 2
            if up is None
            else up.shape[-2]
        )
    return hidden


def _experts_stacked(weights: Weights) -> Weights:
    """Experts as mlx-lm has them: one array a projection, the first axis the expert.

    They are published so, one by one, or with gate and up in one array (drafters of Qwen 3.6).
    """
    out = dict(weights)
    single: dict[str, dict[int, mx.array]] = {}
    for name in weights:
        if match := _EXPERT.fullmatch(name):
            single.setdefault(f"{match[1]}.switch_mlp.{match[3]}_proj.weight", {})[int(match[2])] = out.pop(name)
    for name, experts in single.items():
        if sorted(experts) != list(range(len(experts))):
            raise ModelIncomplete(f"of the MTP heads' experts some are missing ({name}); download the model again")
        out[name] = mx.stack([experts[index] for index in range(len(experts))])
    for suffix in ("", ".weight"):
        base = "layers.0.mlp.experts"
        if (both := out.pop(f"{base}.gate_up_proj{suffix}", None)) is not None:
            gate, up = mx.split(both, 2, axis=-2)
            out["layers.0.mlp.switch_mlp.gate_proj.weight"] = gate
            out["layers.0.mlp.switch_mlp.up_proj.weight"] = up
            out["layers.0.mlp.switch_mlp.down_proj.weight"] = out.pop(f"{base}.down_proj{suffix}")
    return out
