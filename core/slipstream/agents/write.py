"""Carries out a plan: journal first, then a dated backup of each file, then an atomic replacement of each."""

from __future__ import annotations

import logging
import os
import stat
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from slipstream.agents import journal
from slipstream.agents.config import ConfigRefused
from slipstream.agents.plan import FileChange, Plan, read_text
from slipstream.store.atomic import exclusive, sync

logger = logging.getLogger(__name__)

PRIVATE = 0o600  # a new file may hold a key
STALE_S = 60.0  # a temporary file this old was left by a run that died


@dataclass(frozen=True, slots=True)
class Applied:
    files: tuple[Path, ...]
    backups: tuple[Path, ...]


def apply(plan: Plan, now: Callable[[], datetime] = datetime.now) -> Applied:
    """All of the plan or nothing of it. Raises ConfigRefused, with nothing changed.

    Killed at any point, it leaves each file whole, old or new, and a journal from which undo works.
    """
    place = plan.place
    path = journal.journal_path(plan.agent, place)
    try:
        place.journals.mkdir(mode=0o700, parents=True, exist_ok=True)
        with exclusive(place.journals / "lock"), ExitStack() as on_failure:
            if journal.load(plan.agent, place) != plan.journal_before:
                raise ConfigRefused(f"Slipstream set up {plan.agent} elsewhere just now; nothing was changed")
            for change in plan.changes:
                _check(change)
            if not plan.is_undo and plan.changes:
                _keep_for_rollback(path, on_failure)
                _replace(path, journal.dump(plan.agent, plan.records))
            applied = _apply_files(plan, now, on_failure)
            on_failure.pop_all()
            if plan.is_undo:
                _forget(plan, path)
    except OSError as error:
        raise ConfigRefused(
            f"{error.filename or path} cannot be written: {error.strerror or error}; nothing was changed",
            path=str(error.filename or path),
        ) from error
    logger.info("%s: changed %s", plan.agent, ", ".join(map(str, applied.files)) or "nothing")
    return applied


def _apply_files(plan: Plan, now: Callable[[], datetime], on_failure: ExitStack) -> Applied:
    """Everything that can fail for want of space or rights comes before the first rename."""
    staged: list[tuple[FileChange, Path, Path | None]] = []
    backups: list[Path] = []
    for change in plan.changes:
        real = change.path.resolve()
        _make_folders(real.parent, on_failure)
        new = None if change.after is None else _stage(real, change.after)
        if new is not None:
            on_failure.callback(new.unlink, missing_ok=True)
        if change.before is not None and not _is_recorded(change, plan):
            backup = _back_up(real, change.before, now())
            on_failure.callback(backup.unlink, missing_ok=True)
            backups.append(backup)
        staged.append((change, real, new))
    for change, real, new in staged:
        _check(change)  # once more, as late as can be
        if new is None:
            real.unlink()
        else:
            new.replace(real)
        on_failure.callback(_roll_back, change, real)
        sync(real.parent)
    return Applied(tuple(change.path for change, _, _ in staged), tuple(backups))


def _is_recorded(change: FileChange, plan: Plan) -> bool:
    """An undo that finds exactly our own text loses nothing; any other change gets a backup."""
    return plan.is_undo and change.before is not None and journal.digest(change.before) in change.record.written


def _check(change: FileChange) -> None:
    now = read_text(change.path)
    if now != change.before:
        raise ConfigRefused(
            f"{change.path} was changed by another program in the meantime; nothing was changed, look again",
            path=str(change.path),
        )
    real = change.path.resolve()
    if now is None:
        return
    mode = real.stat().st_mode
    if not mode & stat.S_IWUSR or not os.access(real, os.W_OK):
        raise ConfigRefused(f"{change.path} is read-only; nothing was changed", path=str(change.path))
    if not os.access(real.parent, os.W_OK | os.X_OK) or not real.parent.stat().st_mode & stat.S_IWUSR:
        message = f"the folder {real.parent} is read-only; nothing was changed"
        raise ConfigRefused(message, path=str(change.path))


def _make_folders(folder: Path, on_failure: ExitStack) -> None:
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    for parent in reversed(missing):
        parent.mkdir()
        on_failure.callback(_remove_if_empty, parent)


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):  # somebody has put something in, or was faster
        folder.rmdir()


def _stage(real: Path, text: str) -> Path:
    """A sibling with the new text, on disk, and the mode and owner of the file that it is to replace."""
    prefix, suffix = f".{real.name}.slipstream-", ".tmp"
    for old in real.parent.glob(f"{prefix}*{suffix}"):
        with suppress(OSError):
            if time.time() - old.stat().st_mtime > STALE_S:
                old.unlink()
    descriptor, name = tempfile.mkstemp(suffix, prefix, real.parent)
    new = Path(name)
    with ExitStack() as on_failure:
        on_failure.callback(new.unlink, missing_ok=True)
        _fill(descriptor, text, real)
        on_failure.pop_all()
    return new


def _fill(descriptor: int, text: str, like: Path) -> None:
    """Write a new file to the disk, with another one's mode and owner, and close it."""
    with os.fdopen(descriptor, "wb") as file:
        file.write(text.encode("utf-8"))
        _copy_rights(like, descriptor)
        file.flush()
        os.fsync(descriptor)


def _copy_rights(real: Path, descriptor: int) -> None:
    if not real.exists():
        os.fchmod(descriptor, PRIVATE)
        return
    like, mine = real.stat(), os.fstat(descriptor)
    if (like.st_uid, like.st_gid) != (mine.st_uid, mine.st_gid):
        try:
            os.fchown(descriptor, like.st_uid, like.st_gid)
        except PermissionError as error:
            message = f"{real} belongs to another user or group; nothing was changed"
            raise ConfigRefused(message, path=str(real)) from error
    os.fchmod(descriptor, stat.S_IMODE(like.st_mode))


def _back_up(real: Path, text: str, when: datetime) -> Path:
    stem = f"{real.name}.slipstream-{when:%Y%m%d-%H%M%S}"
    count = 1
    while True:
        backup = real.with_name(f"{stem}.bak" if count == 1 else f"{stem}-{count}.bak")
        try:
            descriptor = os.open(backup, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
            break
        except FileExistsError:
            count += 1
    _fill(descriptor, text, real)
    return backup


def _replace(path: Path, text: str) -> None:
    _stage(path, text).replace(path)
    sync(path.parent)


def _keep_for_rollback(path: Path, on_failure: ExitStack) -> None:
    before = read_text(path)
    if before is None:
        on_failure.callback(path.unlink, missing_ok=True)
    else:
        on_failure.callback(_replace, path, before)


def _roll_back(change: FileChange, real: Path) -> None:
    if change.before is None:
        real.unlink(missing_ok=True)
    else:
        _replace(real, change.before)


def _forget(plan: Plan, path: Path) -> None:
    path.unlink(missing_ok=True)
    for record in plan.records:
        if read_text(record.path) is None:
            for folder in reversed(record.folders):
                _remove_if_empty(folder)
