"""Published drafter checkpoints, read into one descriptor: tensors first, config second (drafters.md §4)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx

from slipstream.drafters.descriptor import Checkpoint, Descriptor, expected_shapes
from slipstream.drafters.packaging import describe, normalised
from slipstream.errors import ModelIncomplete, ModelNotFound, PairMismatch, UnsupportedModel, reason
from slipstream.models.host import ints


def read(path: Path) -> Checkpoint:
    """Read a drafter: a folder, or a GGUF file.

    Raises ModelNotFound, ModelIncomplete (files missing or cut short), UnsupportedModel (another format), and
    PairMismatch when the tensors contradict the config.
    """
    files = [path] if path.is_file() else sorted(path.glob("*.gguf"))
    if len(files) == 1 and not (path / "config.json").exists():
        from slipstream.drafters.gguf import read_gguf

        config, weights = read_gguf(files[0])
    else:
        config, weights = _read_folder(path)
    try:
        weights = normalised(_unpacked(config, weights))
        descriptor = describe(path, config, weights)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, IndexError) as error:
        source = files[0] if files else path / "config.json"
        raise UnsupportedModel(
            f"{source} lacks or misstates something ({reason(error)}); choose another drafter"
        ) from error
    _check_tensors(path, descriptor, weights)
    return Checkpoint(descriptor, weights)


def _read_folder(folder: Path) -> tuple[dict[str, Any], dict[str, mx.array]]:
    if not folder.is_dir():
        raise ModelNotFound(f"no drafter at {folder}; check the path", path=str(folder))
    config_path = folder / "config.json"
    if not config_path.is_file():
        raise ModelIncomplete(f"{folder} has no config.json; download the drafter again", path=str(folder))
    try:
        config: dict[str, Any] = json.loads(config_path.read_text())
    except (ValueError, RecursionError) as error:
        raise ModelIncomplete(f"{config_path} is not valid JSON; download the drafter again") from error
    if not isinstance(config, dict):  # pyright: ignore[reportUnnecessaryIsInstance] - a file may say anything
        raise ModelIncomplete(f"{config_path} is no JSON object; download the drafter again")
    return config, _load_weights(folder)


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


def _check_tensors(path: Path, d: Descriptor, weights: dict[str, mx.array]) -> None:
    """A partly loaded drafter runs and accepts almost nothing, so names and shapes must match both ways."""
    expected = expected_shapes(d)
    found = weights.keys() - {"fc.weight"}
    if missing := sorted(expected.keys() - found):
        raise ModelIncomplete(f"{path} lacks {len(missing)} tensors ({missing[0]}, …); download the drafter again")
    if extra := sorted(found - expected.keys()):
        raise UnsupportedModel(f"{path} has tensors this format does not ({', '.join(extra[:3])}); cannot be used")
    for name, shape in expected.items():
        if (actual := tuple(weights[name].shape)) != shape:
            raise PairMismatch(
                f"{path}: {name} is {list(actual)}, but its config says {list(shape)}; download it again"
            )
    if d.is_reduced:
        ids = weights["d2t"] + mx.arange(d.draft_vocabulary)
        whole = mx.issubdtype(ids.dtype, mx.integer)
        if not whole or len({token for token in ints(ids) if 0 <= token < d.vocabulary}) < d.draft_vocabulary:
            raise UnsupportedModel(f"{path}: d2t does not name {d.draft_vocabulary} different tokens; cannot be used")
    fused = list(weights["fc.weight"].shape)
    if len(fused) != 2 or fused[0] != d.hidden or fused[1] % len(d.taps):
        raise PairMismatch(f"{path}: fc.weight is {fused}, which does not fit {len(d.taps)} taps; download it again")


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
