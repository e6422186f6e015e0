"""Files and folders that appear whole or not at all, whenever the process ends. Knows nothing of what is in them."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

# What rename says when the destination is there already: a folder with something in it, or no folder.
_TAKEN = {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EISDIR}

_TEMPORARY = ".tmp"  # half made, or half deleted
_ASIDE = ".old"  # whole: what stood there before, until the new one does
_MOVED_ASIDE = re.compile(r"\.(.+)\.[0-9a-f]{16}\.old", re.DOTALL)
_LEFT_OVER = re.compile(r"\.(.+)\.[0-9a-f]{16}\.tmp", re.DOTALL)  # not what `write_bytes` makes: that is not locked


@contextmanager
def atomic_folder(final: Path) -> Generator[Path]:
    """A new folder beside `final` to fill; it becomes `final`, on disk, when the block ends without an error.

    What stood at `final` is replaced. An error leaves it as it was, and so does an end of the process at any point: in
    the moment between two renames nothing stands there, and what did is put back by the next call, or by `recover`.
    Whatever earlier runs left half made is removed first.
    """
    parent = final.parent
    parent.mkdir(parents=True, exist_ok=True)
    recover(parent, final.name)
    _sweep(final)
    folder, lock = _locked_folder(final)
    try:
        yield folder
        _sync(folder)
        _move_into_place(folder, final)
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # gone already when all went well
        os.close(lock)


def recover(parent: Path, name: str | None = None) -> None:
    """Put back what a run that was killed while it replaced something in `parent` had moved aside. `name`: that alone.

    Safe beside runs that are alive: one whose old folder is put back moves it aside once more.
    """
    for aside in list(parent.glob(f".*{_ASIDE}")):
        found = _MOVED_ASIDE.fullmatch(aside.name)
        if found is not None and name in (None, found[1]):
            with suppress(OSError):  # another run was faster, or the disk does not let us
                _settle(aside, parent / found[1])


def write_bytes(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Write a file so that a reader, or a run after a power cut, finds the old content or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}{_TEMPORARY}")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def write_text(path: Path, text: str, mode: int = 0o666) -> None:
    """The same, in UTF-8."""
    write_bytes(path, text.encode(), mode)


@contextmanager
def exclusive(lock: Path) -> Generator[None]:
    """Held by one process (and thread) at a time; others wait. Released by the system if the process dies."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def alone(lock: Path) -> Generator[bool]:
    """Whether no other process (or thread) has it; if so, held while the block runs. Released as `exclusive` is."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:  # a network disk that cannot lock: then nobody is kept out
            pass
        yield True


def _sibling(final: Path, suffix: str) -> Path:
    return final.with_name(f".{final.name}.{secrets.token_hex(8)}{suffix}")


def _locked_folder(final: Path) -> tuple[Path, int]:
    """A fresh sibling of `final`, and a lock on it that lives as long as this run does."""
    while True:
        folder = _sibling(final, _TEMPORARY)
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
    for path in final.parent.iterdir():
        found = _LEFT_OVER.fullmatch(path.name)
        if found is None or found[1] != final.name:
            continue
        with suppress(OSError):  # another run was faster, or holds it
            descriptor = os.open(path, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _delete(path)
            finally:
                os.close(descriptor)


def _move_into_place(folder: Path, final: Path) -> None:
    aside: list[Path] = []
    try:
        while True:
            try:
                folder.rename(final)
                sync(final.parent)
                return
            except OSError as error:
                if error.errno not in _TAKEN:
                    raise
            aside.append(_sibling(final, _ASIDE))
            with suppress(FileNotFoundError):  # another run moved it away first
                final.rename(aside[-1])
    finally:  # only now: deleting takes long, and the new one should not wait for it
        for old in aside:
            with suppress(FileNotFoundError):
                _settle(old, final)


def _settle(aside: Path, final: Path) -> None:
    """Back to where it was if nothing stands there, else deleted: under another name, since half of it is no folder."""
    if not os.path.lexists(final):
        try:
            aside.rename(final)
            return
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
    deleted = aside.with_suffix(_TEMPORARY)
    aside.rename(deleted)
    _delete(deleted)


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    for directory, _, names in os.walk(folder):
        for name in names:
            sync(Path(directory) / name)
        sync(Path(directory))


def sync(path: Path) -> None:
    """What was written to a file, or which names a folder has, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
