"""Model folders made from a GGUF file: made once, whole or not at all, and made anew when they do not look whole."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from slipstream.errors import ModelIncomplete
from slipstream.store.atomic import atomic_folder, exclusive
from slipstream.store.paths import cache_dir

logger = logging.getLogger(__name__)

_MANIFEST = "slipstream.json"


@dataclass(frozen=True, slots=True)
class _Manifest:
    """Written last into a converted folder: what it was made from, and how long each file must be."""

    version: int  # of the converter
    source_bytes: int
    files: Mapping[str, int]


def as_folder(source: Path) -> Path:
    """A GGUF file as a model folder, made once for each version of the file, in the cache.

    Raises what `gguf.convert` raises, and ModelIncomplete when the folder cannot be written.
    """
    folder = conversion(source)
    try:
        return converted(source, folder)
    except OSError as error:
        raise ModelIncomplete(
            f"{source} cannot be converted into {folder.parent} ({error.strerror}); "
            "make room or make the folder writable",
            path=str(folder.parent),
        ) from error


def conversion(source: Path) -> Path:
    """Where the folder of this version of the file is, or would be."""
    stat = source.stat()
    stamp = f"{source.resolve()} {stat.st_size} {stat.st_mtime_ns}"
    return cache_dir() / "gguf" / f"{source.stem}-{hashlib.sha256(stamp.encode()).hexdigest()[:12]}"


def converted(source: Path, folder: Path) -> Path:
    """`folder`, holding `source` as a model folder; the first call makes it, on the calling thread, with MLX.

    Raises what `gguf.convert` raises, and OSError when `folder` cannot be written.
    """
    source_bytes = source.stat().st_size
    if not _is_whole(folder, source_bytes):
        # Two programs may start at once; the second waits here and finds the work done.
        with exclusive(folder.parent / ".lock"):
            if not _is_whole(folder, source_bytes):
                _convert(source, source_bytes, folder)
    return folder


def _is_whole(folder: Path, source_bytes: int) -> bool:
    """Whether a finished conversion of this source lies there, by this converter, with every file as long as it was."""
    from slipstream.models import gguf  # imports MLX

    try:
        manifest = _Manifest(**json.loads((folder / _MANIFEST).read_text(encoding="utf-8")))
        return (
            (manifest.version, manifest.source_bytes) == (gguf.VERSION, source_bytes)
            and len(manifest.files) > 0
            and all((folder / name).stat().st_size == size for name, size in manifest.files.items())
        )
    except (OSError, ValueError, TypeError, AttributeError):
        return False  # missing or damaged, in whatever way


def _convert(source: Path, source_bytes: int, folder: Path) -> None:
    from slipstream.models import gguf

    logger.info("converting %s (once) into %s", source.name, folder)
    with atomic_folder(folder) as temporary:
        gguf.convert(source, temporary)
        files = {path.name: path.stat().st_size for path in sorted(temporary.iterdir())}
        manifest = _Manifest(gguf.VERSION, source_bytes, files)
        (temporary / _MANIFEST).write_text(json.dumps(asdict(manifest), indent=2) + "\n", encoding="utf-8")
