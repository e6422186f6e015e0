"""Drafters that were trained on this machine: where they lie, and for which model each is. Standard library alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipstream.store.paths import cache_dir, data_dir

METADATA = "slipstream"  # the entry of config.json that training writes


@dataclass(frozen=True, slots=True)
class Made:
    folder: Path
    target: str  # the last part of the model's name
    kind: str  # "dspark" or "dflash"
    per_round: float | None  # tokens, on conversations that were held out


def drafters_dir() -> Path:
    """Where the window has drafters put. Not created here."""
    return data_dir() / "drafters"


def made_drafters() -> list[Made]:
    """Those of the window, and those of `slipstream train` where nothing else was said. Headers only."""
    folders = [*sorted(drafters_dir().glob("*")), *sorted((cache_dir() / "train").glob("*/*"))]
    # A name that begins with a dot is what an export left half made.
    return [made for folder in folders if not folder.name.startswith(".") for made in _read(folder)]


def _read(folder: Path) -> Iterator[Made]:
    if not (folder / "model.safetensors").is_file():
        return
    try:
        config: Any = json.loads((folder / "config.json").read_text("utf-8"))  # Any: the file may say anything
        about: Any = config[METADATA]
        target = about["target"]
        worth: Any = about.get("tokens_per_round") or {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return
    if isinstance(target, str):
        yield Made(folder, target, "dflash" if "dflash_config" in config else "dspark", _mean(worth))


def _mean(worth: object) -> float | None:
    """Over the kinds of conversations."""
    given = worth.values() if isinstance(worth, Mapping) else ()
    values = [float(value) for value in given if isinstance(value, int | float)]
    return sum(values) / len(values) if values else None
