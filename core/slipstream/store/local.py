"""Names to folders on this machine. Nothing here touches the network."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipstream.errors import ModelNotFound
from slipstream.models import gguf
from slipstream.store.paths import atomic_folder, cache_dir

DRAFTER_ENDINGS = ("DSparkModel", "DFlashDraftModel")  # of `architectures`


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A whole model in the Hugging Face cache."""

    name: str  # organisation/name
    path: Path
    bytes: int
    context: int  # tokens; 0 when its config does not say


def resolve(name: str) -> Path:
    """The folder of a model or drafter: a path, a GGUF file (converted once), or a downloaded Hugging Face name.

    Raises ModelNotFound, and what `gguf.convert` raises.
    """
    path = find(name)
    return _converted(path) if path.is_file() else path


def find(name: str) -> Path:
    """The folder or GGUF file that a name stands for. Raises ModelNotFound."""
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    if path.is_file():
        if path.suffix.lower() == ".gguf":
            return path
        raise ModelNotFound(f"{path} is a file; give the model's folder, or a .gguf file")
    if name.count("/") == 1 and not name.startswith((".", "/", "~")):
        if (folder := _downloaded(name)) is not None:
            return folder
        raise ModelNotFound(f"{name} is not on this machine; download it first, for example: hf download {name}")
    raise ModelNotFound(f"no model at {name}; check the path or the name")


def models() -> list[LocalModel]:
    """Every target that was downloaded to its end, by name. Half a download and drafters are not among them."""
    from huggingface_hub.constants import HF_HUB_CACHE

    found = (_local_model(folder) for folder in sorted(Path(HF_HUB_CACHE).glob("models--*--*")))
    return [model for model in found if model is not None]


def _local_model(folder: Path) -> LocalModel | None:
    try:
        snapshot = folder / "snapshots" / (folder / "refs" / "main").read_text("utf-8").strip()
        config: Any = json.loads((snapshot / "config.json").read_text("utf-8"))  # Any: the file may say anything
        weights = [snapshot / name for name in _weight_files(snapshot)]
        size = sum(file.stat().st_size for file in weights)
        architectures = config.get("architectures") or []
        if not weights or any(str(name).endswith(DRAFTER_ENDINGS) for name in architectures):
            return None
        context = (config.get("text_config") or config).get("max_position_embeddings")
    except (OSError, ValueError, AttributeError, TypeError, KeyError):
        return None  # no model, or not all of it
    name = folder.name.removeprefix("models--").replace("--", "/", 1)
    return LocalModel(name, snapshot, size, context if isinstance(context, int) else 0)


def _weight_files(snapshot: Path) -> Iterator[str]:
    index = snapshot / "model.safetensors.index.json"
    if index.is_file():
        yield from sorted(set(json.loads(index.read_text("utf-8"))["weight_map"].values()))
    else:
        yield from (file.name for file in snapshot.glob("*.safetensors"))


def _downloaded(name: str) -> Path | None:
    """The snapshot in the Hugging Face cache, if there is one."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError):
        return None


def _converted(path: Path) -> Path:
    """A GGUF as a model folder, made once for each version of the file."""
    stat = path.stat()
    stamp = f"{path.resolve()} {stat.st_size} {stat.st_mtime_ns} {gguf.VERSION}"
    folder = cache_dir() / "gguf" / f"{path.stem}-{hashlib.sha256(stamp.encode()).hexdigest()[:12]}"
    if not folder.is_dir():
        with atomic_folder(folder) as unfinished:
            gguf.convert(path, unfinished)
    return folder
