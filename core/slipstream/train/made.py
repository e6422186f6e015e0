"""Drafters that were trained on this machine: where they lie, and for which model each is. Standard library alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipstream.store.atomic import recover
from slipstream.store.paths import cache_dir, data_dir

METADATA = "slipstream"  # the entry of config.json that training writes


@dataclass(frozen=True, slots=True)
class Made:
    folder: Path
    target: str  # the model's whole name, or its folder's where it was found by no other
    kind: str  # "dspark" or "dflash"
    per_round: float | None  # tokens, on conversations that were held out
    hidden: int | None  # of the target, as are the next two; None: it does not say
    layers: int | None
    vocabulary: int | None
    taps: tuple[int, ...]

    def fits(self, name: str, config: Mapping[str, Any]) -> bool:
        """Whether it was made for the model of this whole name and config.json, by what the loader would refuse too.

        A config that does not say something, such as a GGUF file's that is none, refuses nothing by it.
        """
        if self.target != (name if "/" in self.target else name.rpartition("/")[2]):
            return False
        text: Any = config.get("text_config") or config
        theirs = tuple(_number(text, key) for key in ("hidden_size", "num_hidden_layers", "vocab_size"))
        pairs = zip((self.hidden, self.layers, self.vocabulary), theirs, strict=True)
        layers = theirs[1]
        return all(mine in (None, other) or other is None for mine, other in pairs) and (
            layers is None or all(-1 <= tap < layers for tap in self.taps)
        )


def drafters_dir() -> Path:
    """Where the window has drafters put. Not created here."""
    return data_dir() / "drafters"


def made_drafters() -> list[Made]:
    """Those of the window, and those of `slipstream train` where nothing else was said. Headers only."""
    homes = [drafters_dir(), *sorted((cache_dir() / "train").glob("*"))]
    for home in homes:
        recover(home)
    folders = [folder for home in homes for folder in sorted(home.glob("*"))]
    # A name that begins with a dot is what an export left half made.
    return [made for folder in folders if not folder.name.startswith(".") for made in _read(folder)]


def made_for(name: str, config: Mapping[str, Any], made: Iterable[Made]) -> list[Made]:
    """Those of one model."""
    return [drafter for drafter in made if drafter.fits(name, config)]


def _read(folder: Path) -> Iterator[Made]:
    if not (folder / "model.safetensors").is_file():
        return
    try:
        config: Any = json.loads((folder / "config.json").read_text("utf-8"))  # Any: the file may say anything
        about: Any = config[METADATA]
        target = about["target"]
        worth: Any = about.get("tokens_per_round") or {}
        found: Any = config.get("target_layer_ids") or config.get("dflash_config", {}).get("target_layer_ids") or ()
        taps = tuple(tap for tap in found if isinstance(tap, int))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return
    if isinstance(target, str):
        yield Made(
            folder,
            target,
            "dflash" if "dflash_config" in config else "dspark",
            _mean(worth),
            _number(config, "hidden_size"),
            _number(config, "num_target_layers"),
            _number(config, "vocab_size"),
            taps,
        )


def _number(config: Mapping[str, Any], key: str) -> int | None:
    value = config.get(key)
    return value if isinstance(value, int) else None


def _mean(worth: object) -> float | None:
    """Over the kinds of conversations."""
    given = worth.values() if isinstance(worth, Mapping) else ()
    values = [float(value) for value in given if isinstance(value, int | float)]
    return sum(values) / len(values) if values else None
