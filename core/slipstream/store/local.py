"""Names to folders on this machine. Nothing here touches the network."""

from __future__ import annotations

import hashlib
from pathlib import Path

from slipstream.errors import ModelNotFound
from slipstream.models import gguf
from slipstream.store.paths import atomic_folder, cache_dir


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


def resolve_drafter(name: str) -> Path:
    """The same for a drafter. Its GGUF file is read as it is."""
    path = Path(name).expanduser()
    return path if path.is_file() and path.suffix.lower() == ".gguf" else resolve(name)


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
