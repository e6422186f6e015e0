"""Models on this machine: names to folders, and what state each is in. Nothing here touches the network."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from slipstream.errors import ModelNotFound
from slipstream.models import gguf
from slipstream.store.paths import atomic_folder, cache_dir


class Place(StrEnum):
    BUILT_IN = "built in"
    HUB_CACHE = "Hugging Face cache"  # shared with other tools
    LM_STUDIO = "LM Studio"  # shared with LM Studio
    FOLDER = "own folder"


class Role(StrEnum):
    TARGET = "model"
    DRAFTER = "drafter"


@dataclass(frozen=True, slots=True)
class Complete:
    pass


@dataclass(frozen=True, slots=True)
class Partial:
    """A download that is under way or was interrupted."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Broken:
    reason: str  # a sentence with what to do


@dataclass(frozen=True, slots=True)
class LocalModel:
    """One model or drafter on disk. `state` is read from the files each time."""

    name: str  # what --model and the API take: a hub name where there is one
    path: Path  # a folder, or a GGUF file
    place: Place
    role: Role
    state: Complete | Partial | Broken
    bytes: int  # on disk
    model_type: str | None = None
    quantisation: str | None = None  # "4-bit group 64", "bfloat16"
    context: int | None = None
    revision: str | None = None  # commit, of the hub's cache

    @property
    def is_complete(self) -> bool:
        return isinstance(self.state, Complete)


def scan() -> list[LocalModel]:
    """Everything found, complete or not, by place and name."""
    raise NotImplementedError


def models() -> list[LocalModel]:
    """What can be loaded: complete models and drafters. A partial download is never among them."""
    return [model for model in scan() if model.is_complete]


def own_folders() -> list[Path]:
    """Folders the user added, in which models are looked for."""
    raise NotImplementedError


def add_folder(folder: Path) -> None:
    """Look for models in this folder too; they stay where they are. Raises ModelNotFound when it is no folder."""
    raise NotImplementedError


def remove_folder(folder: Path) -> None:
    """Look there no more. Deletes nothing."""
    raise NotImplementedError


def resolve(name: str) -> Path:
    """The folder of a model or drafter: a path, a GGUF file (converted once), or a downloaded Hugging Face name.

    Raises ModelNotFound, and what `gguf.convert` raises.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    if path.is_file():
        if path.suffix.lower() == ".gguf":
            return _converted(path)
        raise ModelNotFound(f"{path} is a file; give the model's folder, or a .gguf file")
    if name.count("/") == 1 and not name.startswith((".", "/", "~")):
        if (folder := _downloaded(name)) is not None:
            return folder
        raise ModelNotFound(f"{name} is not on this machine; download it first, for example: hf download {name}")
    raise ModelNotFound(f"no model at {name}; check the path or the name")


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
