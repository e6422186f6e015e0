"""Kept prompts on disk: one safetensors file for each stretch of tokens and each part of the state, within a budget.

A file is written whole beside its place and then renamed, and carries a checksum over all of it: what a crash, a full
disk or a flipped bit leaves behind is never used. Knows files and bytes; what the arrays mean is the owner's business.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import mmap
import os
import queue
import shutil
import threading
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Any

from slipstream.store import prompt_file
from slipstream.store.prompt_file import MAX_HEADER, Damaged, Stored

logger = logging.getLogger(__name__)

LEAST_WAITING = 2**28  # bytes that may wait to be written, however little memory the cache has
FREE_SPACE = 2 * 2**30  # bytes of the disk that are left to others
FLUSH_S = 3.0  # for what waits to be written when the program ends
TOUCH_AFTER_S = 30.0  # a file's date says when it was used, to about this
CHUNK = 2**22  # bytes written between two looks at whether to stop

_SUFFIX = ".safetensors"
_TEMPORARY = ".tmp"


class State(Enum):
    WAITING = auto()  # to be written
    READY = auto()
    GONE = auto()  # evicted, damaged, or never written


@dataclass(slots=True, eq=False)
class Record:
    """One file: `part` of the state over the tokens from `start` to `end` of a prompt."""

    path: Path
    part: str
    start: int
    end: int
    has_fixed: bool  # it also has what can only be kept whole, at `end`
    size: int
    used_s: float
    state: State = State.READY


class PromptStore:
    """The files of one model under `root`, whose budget all models share. One process at a time may have it.

    All methods are for one thread, beside the store's own, which writes and deletes. Raises OSError from `open` alone.
    """

    def __init__(self, root: Path, limit: int, model: str, identity: str, ram_limit: int, lock: int) -> None:
        self.limit = limit
        # What waits is held in memory even if the cache lets go of it.
        self._may_wait = max(LEAST_WAITING, ram_limit // 2)
        self._root = root
        self._identity = identity
        self._lock = lock
        self._folder = root / f"{_digest(model.encode())[:12]}-{_digest(identity.encode())[:28]}"
        self._records: dict[Path, Record] = {}
        self._others: dict[Path, tuple[int, float]] = {}  # other models' files: size and last use
        self.bytes = 0
        self._pending = 0
        self._tasks: queue.SimpleQueue[tuple[Record, bytes, list[memoryview]] | Path | None] = queue.SimpleQueue()
        self._finished: queue.SimpleQueue[Record] = queue.SimpleQueue()
        self._held: dict[int, Any] = {}  # what the writer reads from: let go on the owner's thread
        self._is_closing = threading.Event()
        self._deadline_s = float("inf")
        self._has_failed = False
        self._changing = threading.Lock()  # a record's state: both threads set it
        self.found = list(self._scan())  # records with their prompts' tokens, as they lie there at the start
        self._evict(0, float("inf"))
        self._thread = threading.Thread(target=self._work, name="slipstream-prompts", daemon=True)
        self._thread.start()

    @classmethod
    def open(cls, root: Path, limit: int, model: str, identity: str, ram_limit: int = 0) -> PromptStore | None:
        """None when another process has it, or the disk does not let us. `model`: what stays when it is changed."""
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(root / "lock", os.O_RDWR | os.O_CREAT, 0o600)
            with ExitStack() as on_failure:
                on_failure.callback(os.close, lock)
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                store = cls(root, limit, model, identity, ram_limit, lock)
                on_failure.pop_all()
            return store
        except BlockingIOError:
            logger.info("another Slipstream has the prompts on disk; this one keeps them in memory alone")
        except OSError as error:
            logger.warning("prompts are not kept on disk (%s)", error)
        return None

    @property
    def was_other(self) -> bool:
        """Prompts were kept for this model in another state: another quantisation, other weights, another version."""
        mine, _, _ = self._folder.name.partition("-")
        return any(path.parent != self._folder and path.parent.name.startswith(f"{mine}-") for path in self._others)

    # Writing.

    def add(
        self,
        tokens: Sequence[int],
        start: int,
        part: str,
        rows: Mapping[str, Stored],
        fixed: Mapping[str, Stored],
        *,
        before_s: float,
    ) -> Record | None:
        """Queue a file for tokens[start:] of a prompt. None when it may not be: no room, or too much waits already.

        Makes room by removing files not used since `before_s`. The arrays must not be changed; `collect` lets them go.
        """
        arrays = {
            "tokens": Stored("I32", (len(tokens),), memoryview(array("i", tokens))),
            **{f"rows/{name}": stored for name, stored in rows.items()},
            **{f"fixed/{name}": stored for name, stored in fixed.items()},
        }
        header, data = prompt_file.header(arrays, self._identity, part, start, len(tokens))
        size = len(header) + sum(view.nbytes for view in data)
        if self._has_failed or size > self.limit:
            return None
        name = _name(part, start, data[0])
        record = Record(
            self._folder / f"{name}{_SUFFIX}", part, start, len(tokens), bool(fixed), size, time.time(), State.WAITING
        )
        if old := self._records.get(record.path):
            self._forget(old)
        if not self._evict(size, before_s):
            return None
        self._records[record.path] = record
        self.bytes += size
        self._pending += size
        self._held[id(record)] = (record, arrays)
        self._tasks.put((record, header, data))
        return record

    def collect(self) -> None:
        """Let go of what has been written. Call it now and then."""
        while True:
            try:
                record = self._finished.get_nowait()
            except queue.Empty:
                return
            self._pending -= record.size
            self._held.pop(id(record), None)
            if record.state is State.GONE and self._records.get(record.path) is record:
                self._forget(record)

    @property
    def has_room_to_wait(self) -> bool:
        return not self._has_failed and self._pending < self._may_wait

    def touch(self, record: Record) -> None:
        now = time.time()
        if now - record.used_s > TOUCH_AFTER_S:
            with suppress(OSError):
                os.utime(record.path, (now, now))
        record.used_s = now

    def drop(self, record: Record) -> None:
        if record.state is not State.GONE:
            self._forget(record)
            self._tasks.put(record.path)

    def clear(self) -> None:
        """Every file of every model."""
        for record in list(self._records.values()):
            self.drop(record)
        for path in list(self._others):
            self.bytes -= self._others.pop(path)[0]
            self._tasks.put(path)

    def wait(self, timeout_s: float = 30.0) -> None:
        """Until everything queued is on disk."""
        end = time.monotonic() + timeout_s
        while self._pending and time.monotonic() < end:
            time.sleep(0.002)
            self.collect()

    def close(self, flush_s: float = FLUSH_S) -> None:
        """Write what waits, for so long and no longer. Nothing is half there afterwards."""
        self._deadline_s = time.monotonic() + flush_s
        self._is_closing.set()
        self._tasks.put(None)
        self._thread.join()
        self.collect()
        self._held.clear()
        os.close(self._lock)

    # Reading.

    def read(self, record: Record, tokens: Sequence[int]) -> tuple[dict[str, Stored], dict[str, Stored]]:
        """Rows and fixed arrays of a file. Raises Damaged, after removing it, unless it is for these tokens.

        It may go on behind them, as another prompt did that begins alike.
        """
        try:
            arrays = prompt_file.parse(record.path.read_bytes(), self._identity)
            wanted = array("i", tokens[: record.end]).tobytes()
            if bytes(arrays["tokens"].data[: len(wanted)]) != wanted:
                raise Damaged("it belongs to another prompt")
        except (OSError, Damaged) as error:
            logger.warning("a kept prompt is not used: %s: %s", record.path.name, error)
            self.drop(record)
            raise Damaged(str(error)) from error
        groups: tuple[dict[str, Stored], dict[str, Stored]] = ({}, {})
        for name, stored in arrays.items():
            kind, _, rest = name.partition("/")
            if rest:
                groups[kind == "fixed"][rest] = stored
        return groups

    # Inside.

    def _scan(self) -> Iterator[tuple[Record, tuple[int, ...]]]:
        """This model's records, after sweeping up what earlier runs left half done."""
        for path in sorted(self._root.glob("*/*")):
            try:
                status = path.stat()
                if path.name.endswith(_TEMPORARY):
                    path.unlink()
                elif path.parent != self._folder:
                    self._others[path] = (status.st_size, status.st_mtime)
                    self.bytes += status.st_size
                elif path.name.endswith(_SUFFIX):
                    yield self._glance(path, status)
            except Damaged as error:
                logger.warning("a kept prompt is removed: %s: %s", path.name, error)
                with suppress(OSError):
                    path.unlink()
            except OSError as error:
                logger.warning("a kept prompt cannot be read: %s", error)

    def _glance(self, path: Path, status: os.stat_result) -> tuple[Record, tuple[int, ...]]:
        """What a file says it is. Whether that is true is found out when it is read."""
        if not status.st_size:
            raise Damaged("it is empty")
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
            header, metadata, begin = prompt_file.head(whole[: 8 + MAX_HEADER], status.st_size, self._identity)
            low, high = header["tokens"]["data_offsets"]
            tokens = array("i")
            tokens.frombytes(whole[begin + low : begin + high])
        if path.stem != _name(metadata["part"], int(metadata["start"]), tokens.tobytes()):
            raise Damaged("it is not what its name says")
        record = Record(
            path,
            metadata["part"],
            int(metadata["start"]),
            int(metadata["end"]),
            any(name.startswith("fixed/") for name in header),
            status.st_size,
            status.st_mtime,
        )
        self._records[path] = record
        self.bytes += record.size
        return record, tuple(tokens)

    def _forget(self, record: Record) -> None:
        with self._changing:
            record.state = State.GONE
        if self._records.get(record.path) is record:
            del self._records[record.path]
            self.bytes -= record.size

    def _evict(self, room: int, before_s: float) -> bool:
        """Make room by removing what was used least recently; nothing used since `before_s`. Whether there is room."""
        while self.bytes + room > self.limit:
            oldest = min(
                (record for record in self._records.values() if record.used_s < before_s),
                key=lambda record: (record.used_s, -record.end),
                default=None,
            )
            other = min(self._others, key=lambda path: self._others[path][1], default=None)
            if other is not None and (oldest is None or self._others[other][1] <= oldest.used_s):
                self.bytes -= self._others.pop(other)[0]
                self._tasks.put(other)
            elif oldest is not None:
                self.drop(oldest)
            else:
                return False
        return True

    # The writer's thread.

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            if isinstance(task, Path):
                with suppress(OSError):
                    task.unlink(missing_ok=True)
                with suppress(OSError):
                    if task.parent != self._folder:
                        task.parent.rmdir()  # when it was the last of another model's
                continue
            record, header, data = task
            if record.state is State.WAITING:
                try:
                    self._write(record, header, data)
                except OSError as error:
                    record.state = State.GONE
                    if not self._has_failed:
                        logger.warning("prompts are no longer kept on disk (%s)", error)
                    self._has_failed = True
            del header, data, task  # the arrays are let go on their owner's thread
            self._finished.put(record)

    def _write(self, record: Record, header: bytes, data: Sequence[memoryview]) -> None:
        """No fsync: a process that is killed loses nothing that way, and the checksum tells when a machine did."""
        if self._must_stop:
            record.state = State.GONE
            return
        self._folder.mkdir(mode=0o700, exist_ok=True)
        if shutil.disk_usage(self._folder).free < FREE_SPACE + record.size:
            raise OSError("the disk is nearly full")
        header = prompt_file.signed(header, data)
        temporary = record.path.with_name(f".{record.path.name}{_TEMPORARY}")
        try:
            with temporary.open("wb", buffering=0) as file:
                _write_all(file.fileno(), memoryview(header))
                for view in data:
                    for at in range(0, view.nbytes, CHUNK):
                        if self._must_stop or record.state is State.GONE:
                            record.state = State.GONE
                            return
                        _write_all(file.fileno(), view[at : at + CHUNK])
            temporary.replace(record.path)
        finally:
            temporary.unlink(missing_ok=True)
        with self._changing:
            if record.state is State.WAITING:
                record.state = State.READY

    @property
    def _must_stop(self) -> bool:
        return self._is_closing.is_set() and time.monotonic() > self._deadline_s


def _write_all(descriptor: int, view: memoryview) -> None:
    while view.nbytes:
        view = view[os.write(descriptor, view) :]


def _name(part: str, start: int, tokens: bytes | memoryview) -> str:
    return _digest(f"{part} {start} ".encode() + bytes(tokens))[:40]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
