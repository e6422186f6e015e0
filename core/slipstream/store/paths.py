"""Where things lie on this machine, and folders that appear whole or not at all. Knows nothing of what is in them."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import slipstream

# What rename says when the destination is there already: a folder with something in it, or no folder.
_TAKEN = {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}

_TEMPORARY = ".tmp"


def cache_dir() -> Path:
    """For what can be made again. Not created here."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "Slipstream"
    return _xdg("XDG_CACHE_HOME", ".cache") / "slipstream"


def data_dir() -> Path:
    """For what cannot be made again. Not created here."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "Slipstream"
    return _xdg("XDG_DATA_HOME", ".local/share") / "slipstream"


def _xdg(variable: str, default: str) -> Path:
    """The XDG base directory rules: a relative path in the variable is ignored."""
    chosen = Path(os.environ.get(variable, ""))
    return chosen if chosen.is_absolute() else Path.home() / default


def resources_dir() -> Path:
    """The files under `resources/`: in the app's bundle, in an installed wheel, or in a checkout."""
    if getattr(sys, "frozen", None) == "macosx_app":  # py2app
        return Path(os.environ["RESOURCEPATH"]) / "resources"
    package = Path(slipstream.__file__).resolve().parent
    installed = package / "_resources"
    return installed if installed.is_dir() else package.parents[1] / "resources"


@contextmanager
def atomic_folder(final: Path) -> Generator[Path]:
    """A new folder beside `final` to fill; it becomes `final`, on disk, when the block ends without an error.

    What stood at `final` is replaced; for a moment between two renames nothing stands there. An error, or an end of
    the process at any point, leaves `final` as it was. Whatever earlier runs left half made is removed first.
    """
    parent = final.parent
    parent.mkdir(parents=True, exist_ok=True)
    _sweep(final)
    folder, lock = _locked_folder(final)
    try:
        yield folder
        _sync(folder)
        _move_into_place(folder, final)
        _sync_entry(parent)
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # gone already when all went well
        os.close(lock)


def write_text(path: Path, text: str) -> None:
    """Write a file so that a reader, or a run after a power cut, finds the old text or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}{_TEMPORARY}")
    try:
        with fresh.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


@contextmanager
def exclusive(lock: Path) -> Generator[None]:
    """Held by one process (and thread) at a time; others wait. Released by the system if the process dies."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _temporary_prefix(final: Path) -> str:
    return f".{final.name}."


def _locked_folder(final: Path) -> tuple[Path, int]:
    """A fresh sibling of `final`, and a lock on it that lives as long as this run does."""
    while True:
        folder = final.with_name(f"{_temporary_prefix(final)}{secrets.token_hex(8)}{_TEMPORARY}")
        folder.mkdir()
        try:
            descriptor = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            continue  # another run swept it away already
        with suppress(OSError):  # a network disk that cannot lock a folder: then nobody sweeps it either
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if folder.exists():
            return folder, descriptor
        os.close(descriptor)  # swept away before it was locked


def _sweep(final: Path) -> None:
    """Remove temporary siblings nobody holds: their runs are dead."""
    for folder in final.parent.iterdir():
        if not (folder.name.startswith(_temporary_prefix(final)) and folder.name.endswith(_TEMPORARY)):
            continue
        with suppress(OSError):  # another run was faster, or holds it
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
            finally:
                os.close(descriptor)


def _move_into_place(folder: Path, final: Path) -> None:
    aside: list[tuple[Path, int]] = []
    try:
        while True:
            try:
                folder.rename(final)
                return
            except OSError as error:
                if error.errno not in _TAKEN:
                    raise
            # Under a temporary name of its own, so that it is swept if this run dies while removing it.
            old, lock = _locked_folder(final)
            aside.append((old, lock))
            with suppress(FileNotFoundError):  # another run moved it away first
                final.rename(old / "old")
    finally:  # only now: deleting takes long, and the new one should not wait for it
        for old, lock in aside:
            shutil.rmtree(old, ignore_errors=True)
            os.close(lock)


def _sync(folder: Path) -> None:
    for directory, _, names in os.walk(folder):
        for name in names:
            _sync_entry(Path(directory) / name)
        _sync_entry(Path(directory))


def _sync_entry(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
