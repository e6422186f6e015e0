"""A model folder's files: are they there and whole, and what do they say of the model. Reads headers, no weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from slipstream.errors import ModelIncomplete, ModelNotFound, reason

_HEADER_LIMIT = 100 * 2**20  # bytes; the format's own limit


@dataclass(frozen=True, slots=True)
class Tensor:
    """One entry of a safetensors header."""

    dtype: str  # "F32", "BF16", "U32", ...
    shape: tuple[int, ...]
    bytes: int


def check(folder: Path) -> None:
    """Refuse a folder that is no model, or is only half downloaded, naming the first thing that is missing.

    Raises ModelNotFound or ModelIncomplete.
    """
    if not folder.is_dir():
        raise ModelNotFound(f"no model at {folder}; check the path or the name", path=str(folder))
    config = folder / "config.json"
    if not config.is_file():
        raise ModelIncomplete(f"{folder} has no config.json, so it is no model folder or only half downloaded")
    try:
        if not isinstance(json.loads(config.read_text(encoding="utf-8")), dict):
            raise TypeError("config.json is no object")
        wanted = set(_index(folder).values())
    except OSError as error:
        raise ModelIncomplete(f"{folder} cannot be read ({error.strerror}); make it readable") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelIncomplete(
            f"{folder}: config.json or the index of its weights is damaged ({reason(error)}); download the model again"
        ) from error
    present = {path.name for path in folder.glob("*.safetensors") if path.exists()}
    if missing := sorted(wanted - present):
        raise ModelIncomplete(
            f"{folder} lacks {len(missing)} of {len(wanted)} weight files ({missing[0]}); finish the download",
            missing=missing,
        )
    if not present:
        raise ModelIncomplete(f"{folder} has no .safetensors weights; finish the download, or choose an MLX model")
    for name in sorted(present):
        tensors(folder / name)


def _index(folder: Path) -> dict[str, str]:
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        return {}
    weight_map: Mapping[str, object] = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
    return {name: str(file) for name, file in weight_map.items()}


def tensors(path: Path) -> dict[str, Tensor]:
    """The header of a safetensors file. It says how long the file must be, so one that was cut short is found.

    Raises ModelIncomplete.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            text = file.read(length) if length <= min(size - 8, _HEADER_LIMIT) else b""
    except OSError as error:
        raise ModelIncomplete(f"{path} cannot be read ({error.strerror}); make it readable") from error
    if size < 8 or length > size - 8:
        raise ModelIncomplete(f"{path} is cut short ({size} bytes); finish the download")
    try:
        header: dict[str, Any] = json.loads(text)
        header.pop("__metadata__", None)
        found = {
            name: Tensor(entry["dtype"], tuple(entry["shape"]), entry["data_offsets"][1] - entry["data_offsets"][0])
            for name, entry in header.items()
        }
        end = max((entry["data_offsets"][1] for entry in header.values()), default=0)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise ModelIncomplete(f"{path} is damaged; download it again") from error
    if size < 8 + length + end:
        raise ModelIncomplete(f"{path} is cut short: {size} of {8 + length + end} bytes; finish the download")
    return found


def read_config(folder: Path) -> dict[str, Any]:
    """config.json, or nothing when it is not there or damaged."""
    return read_json(folder / "config.json")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object, or nothing when there is none."""
    try:
        data: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return cast(dict[str, Any], data) if isinstance(data, dict) else {}


def wants_code(paths: Mapping[str, Path]) -> str | None:
    """What code of its own a model needs in order to be loaded, in words, or None.

    `paths`: config.json, tokenizer_config.json and tokenizer.json, those that exist. An `auto_map` in config.json
    does not matter: the architecture's own implementation is used.
    """
    config = read_json(paths["config.json"]) if "config.json" in paths else {}
    if file := config.get("model_file"):
        return f"wants to run its own {file}"
    if "tokenizer_config.json" in paths and "tokenizer.json" not in paths:
        mapped: Any = read_json(paths["tokenizer_config.json"]).get("auto_map")
        if mapped:
            return f"wants to run its own tokenizer code ({next(iter(mapped)) if isinstance(mapped, dict) else mapped})"
    return None


def is_drafter(config: Mapping[str, Any]) -> bool:
    """Whether a config is that of a drafter, not of a model that can answer by itself."""
    names = " ".join(str(name) for name in config.get("architectures") or ()).lower()
    return (
        any(word in names for word in ("dspark", "dflash", "eagle", "domino", "speculator"))
        or any(key in config for key in ("dflash_config", "speculators_model_type", "speculators_config"))
        or bool(config.get("markov_rank"))
        or str(config.get("model_type")).endswith("_mtp")
    )


def quantisation(config: Mapping[str, Any]) -> str | None:
    """In words, for people: "4-bit group 64", or the type of plain weights, where the config says."""
    packed: Any = config.get("quantization") or config.get("quantization_config")
    if isinstance(packed, dict) and isinstance(packed.get("bits"), int):
        group = packed.get("group_size")
        return f"{packed['bits']}-bit" + (f" group {group}" if group else "")
    plain: Any = config.get("dtype") or config.get("torch_dtype")
    nested: Any = config.get("text_config")
    if plain is None and isinstance(nested, dict):
        plain = nested.get("dtype") or nested.get("torch_dtype")
    return plain if isinstance(plain, str) else None
