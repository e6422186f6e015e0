"""How much disk models take that this program fetched or converted, what else fits, and which of them could go.

Deletes nothing.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from slipstream.errors import DiskFull
from slipstream.store import local, preferences, removal
from slipstream.store.hub_cache import repositories, root
from slipstream.store.local import LocalModel, Partial, Place
from slipstream.store.paths import cache_dir
from slipstream.store.sizes import words

SPARE = 1.1  # room that must be free, as a multiple of what is still to come


@dataclass(frozen=True, slots=True)
class Taken:
    """Bytes on disk."""

    shared: int  # in the cache that Hugging Face's tools share, whoever fetched it
    converted: int  # folders made from GGUF files, which can be made again

    @property
    def bytes(self) -> int:
        return self.shared + self.converted


@dataclass(frozen=True, slots=True)
class Leaving:
    """A model that could go, with its exact files."""

    name: str
    since_s: float  # when it came: what reads were last is not known, as every look at the folders is one
    files: tuple[tuple[Path, int], ...]
    model: LocalModel | None  # None: a conversion

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self.files)

    def remove(self) -> str:
        """Returns where it went, in words. Raises OSError."""
        if self.model is not None:
            return removal.remove(removal.plan(self.model))
        for path, _ in self.files:
            path.unlink(missing_ok=True)
        for folder in {path.parent for path, _ in self.files}:
            folder.rmdir()
        return "deleted"


def taken() -> Taken:
    """Looks at every file's length; some milliseconds for a hundred models."""
    blobs = (repository.folder / "blobs" for repository in repositories())
    return Taken(sum(_length(folder) for folder in blobs), _length(_conversions()))


def check(repo: str, missing: int, promised: int) -> None:
    """Whether so many bytes of a download may come, beside those `promised` to others under way. Raises DiskFull."""
    place = root()
    while not place.exists():
        place = place.parent
    free = max(0, shutil.disk_usage(place).free - int(promised * SPARE))
    if missing * SPARE > free:
        raise DiskFull(
            f"{repo} needs {words(missing * SPARE)} on the disk and {words(free)} are free; "
            f"free some space, or keep the cache elsewhere by setting HF_HOME (now {root().parent})",
            needed=int(missing * SPARE),
            free=free,
            folder=str(root()),
        )
    limit = preferences.read().models_limit
    if missing and limit is not None and missing + (used := taken().bytes + promised) > limit:
        raise DiskFull(
            f"{repo} needs {words(missing)}; with what is here and on its way models would take "
            f"{words(missing + used)}, and the limit in Settings › Models is {words(limit)}; make room there, "
            "or raise the limit",
            needed=missing,
            free=max(0, limit - used),
            folder=str(root()),
        )


def could_go() -> list[Leaving]:
    """The oldest first. Downloads under way are not among them, nor what lies in no cache."""
    found = [
        Leaving(model.name, _since_s(path for path, _ in plan.files), plan.files, model)
        for model in local.scan()
        if model.place is Place.HUB_CACHE and not isinstance(model.state, Partial)
        for plan in [removal.plan(model)]
    ]
    for folder in sorted(_conversions().glob("*")):
        files = tuple((path, path.stat().st_size) for path in sorted(folder.glob("*")) if path.is_file())
        if files:
            found.append(Leaving(folder.name.rpartition("-")[0], _since_s(path for path, _ in files), files, None))
    return sorted(found, key=lambda one: one.since_s)


def enough(candidates: Iterable[Leaving], to_free: int) -> list[Leaving]:
    """The first of `candidates` that free so much together; all, where that is not enough."""
    chosen, freed = list[Leaving](), 0
    for one in candidates:
        if freed >= to_free:
            break
        chosen.append(one)
        freed += one.bytes
    return chosen


def _conversions() -> Path:
    return cache_dir() / "gguf"


def _length(folder: Path) -> int:
    """Of its files, links apart. One that goes or is renamed meanwhile, as a finished download is, counts nothing."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                found = Path(place, name).lstat()
                total += found.st_size if stat.S_ISREG(found.st_mode) else 0
    return total


def _since_s(files: Iterable[Path]) -> float:
    latest = 0.0
    for path in files:
        with suppress(OSError):  # gone meanwhile
            latest = max(latest, path.lstat().st_mtime)
    return latest
