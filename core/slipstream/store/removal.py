"""Deleting models: a list of exact files first, then the Bin where there is one."""

from __future__ import annotations

import os
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from slipstream.errors import InvalidRequest
from slipstream.store import paths
from slipstream.store.hub_cache import Repository
from slipstream.store.local import LocalModel, Place


@dataclass(frozen=True, slots=True)
class Removal:
    """What deleting a model would take away."""

    model: LocalModel
    whole: Path | None  # a folder or file that goes as it is; None: only `files`
    files: tuple[tuple[Path, int], ...]  # with the bytes that each frees on the disk
    kept: tuple[tuple[Path, str], ...] = ()  # what stays, and why
    shared_with: str | None = None  # other programs that read it too

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self.files)


def plan(model: LocalModel, *, revision: str | None = None) -> Removal:
    """What would go and what would stay. Changes nothing.

    `revision`: of a model in the hub's cache, only that commit. Raises InvalidRequest for what is not the user's.
    """
    match model.place:
        case Place.BUILT_IN:
            raise InvalidRequest(f"{model.name} is part of Slipstream and stays; choose another model")
        case Place.HUB_CACHE:
            return _plan_repository(model, revision)
        case Place.LM_STUDIO | Place.FOLDER:
            # A link goes, what it points at stays.
            files = ((model.path, 0),) if model.path.is_symlink() else tuple(_files(model.path))
            return Removal(
                model, model.path, files, shared_with="LM Studio" if model.place is Place.LM_STUDIO else None
            )


def _plan_repository(model: LocalModel, revision: str | None) -> Removal:
    repository = Repository.of(model.name)
    tools = "every program that uses the Hugging Face cache"
    snapshots = [path for path in (repository.folder / "snapshots").glob("*") if path.is_dir()]
    if revision is None:
        files = tuple(_files(repository.folder))
        kept = tuple((path, "in a store that other repositories share") for path, _ in files if _is_outside(path))
        return Removal(model, repository.folder, files, kept, tools)
    commit = repository.commit_of(revision)
    if commit is None or not repository.snapshot(commit).is_dir():
        raise InvalidRequest(f"{model.name} has no revision {revision} on this machine; it has {_names(snapshots)}")
    links = [path for path in repository.snapshot(commit).rglob("*") if not path.is_dir()]
    others = {os.path.realpath(path) for other in snapshots if other.name != commit for path in other.rglob("*")}
    going = {Path(os.path.realpath(link)) for link in links} - {repository.snapshot(commit)}
    kept = tuple((blob, "another revision uses it") for blob in sorted(going) if str(blob) in others)
    blobs = [
        blob for blob in sorted(going) if str(blob) not in others and blob.parent.parent == repository.folder.resolve()
    ]
    refs = [path for path in (repository.folder / "refs").rglob("*") if path.is_file() and path.read_text() == commit]
    notes = [path for path in [repository.folder / "slipstream" / f"{commit}.json"] if path.exists()]
    gone = [*links, *blobs, *refs, *notes]
    return Removal(model, None, tuple((path, _bytes(path)) for path in gone), kept, tools)


def remove(removal: Removal, *, permanently: bool = False) -> str:
    """Do it. Returns where it went, in words: "in the Bin" or "deleted".

    Only what goes as a whole can go to the Bin; a link to a model goes without the model.
    """
    whole = removal.whole
    if whole is None:
        for path, _ in removal.files:
            path.unlink(missing_ok=True)
        _remove_empty(removal)
        return "deleted"
    if not permanently and not whole.is_symlink() and (trash := _trash_for(whole)) is not None:
        _to_trash(whole, trash)
        return "in the Bin"
    if whole.is_symlink() or whole.is_file():
        whole.unlink()
    else:
        shutil.rmtree(whole)
    return "deleted"


def _files(path: Path) -> list[tuple[Path, int]]:
    if path.is_file():
        return [(path, _bytes(path))]
    return [(found, _bytes(found)) for found in sorted(path.rglob("*")) if found.is_symlink() or found.is_file()]


def _bytes(path: Path) -> int:
    """What deleting this entry frees: nothing for a link, nothing while another name holds the same bytes."""
    stat = path.lstat()
    return 0 if path.is_symlink() or stat.st_nlink > 1 else stat.st_size


def _is_outside(path: Path) -> bool:
    """A blob that is itself a link into a store beside the repositories."""
    return path.is_symlink() and path.parent.name == "blobs"


def _names(snapshots: list[Path]) -> str:
    return ", ".join(sorted(path.name[:12] for path in snapshots)) or "none"


def _remove_empty(removal: Removal) -> None:
    folders = {parent for path, _ in removal.files for parent in list(path.parents)[:4] if "models--" in str(parent)}
    for folder in sorted(folders, key=lambda path: len(path.parts), reverse=True):
        if folder.is_dir() and not folder.name.startswith("models--") and not any(folder.iterdir()):
            folder.rmdir()


def _trash_for(path: Path) -> Path | None:
    """The Bin on the same disk, if this machine has one: moving there is instant and can be undone."""
    if sys.platform == "darwin":
        trash = paths.home() / ".Trash"
    else:
        data = Path(os.environ.get("XDG_DATA_HOME") or paths.home() / ".local" / "share")
        trash = data / "Trash"  # freedesktop.org's Trash specification, version 1.0
    if not trash.is_dir() or trash.stat().st_dev != path.lstat().st_dev:
        return None
    return trash


def _to_trash(path: Path, trash: Path) -> None:
    is_mac = sys.platform == "darwin"
    files = trash if is_mac else trash / "files"
    name, number = path.name, 1
    while (files / name).exists():
        number += 1
        name = f"{path.stem} {number}{path.suffix}"
    if not is_mac:
        files.mkdir(mode=0o700, exist_ok=True)
        info = trash / "info" / f"{name}.trashinfo"
        info.parent.mkdir(mode=0o700, exist_ok=True)
        when = time.strftime("%Y-%m-%dT%H:%M:%S")
        info.write_text(f"[Trash Info]\nPath={quote(str(path.absolute()))}\nDeletionDate={when}\n", encoding="utf-8")
    path.rename(files / name)
