"""Downloads into the hub's shared cache: resumable, checked, and there only when whole."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from slipstream.errors import DamagedDownload, DiskFull, DownloadFailed, FormatRefused, RateLimited, Unreachable
from slipstream.store import files as model_files
from slipstream.store import hub, room
from slipstream.store.download_state import (
    FOR_PEOPLE,
    Failed,
    Fetching,
    FileProgress,
    Finished,
    Looking,
    Patience,
    Paused,
    Progress,
    Retrying,
    State,
)
from slipstream.store.hub import NotThere, Remote, RemoteFile
from slipstream.store.hub_cache import Manifest, Repository, root
from slipstream.store.incoming import Incoming

if TYPE_CHECKING:
    import httpx2

logger = logging.getLogger(__name__)

T = TypeVar("T")

# Downloads of this process that have room and are still to fill it: another may not count on the same bytes.
_promised: list[Download] = []
_promising = threading.Lock()

FIRST = ("config.json", "tokenizer_config.json", "tokenizer.json")  # they say whether the rest can be used
_SPEED_WINDOW_S = 5.0
_TICK_S = 0.1


class _Stopped(Exception):
    """Paused, or another file failed."""


class Download:
    """One repository. `run` once, on any thread; `pause` from another."""

    def __init__(
        self,
        repo: str,
        notify: Callable[[State], None],
        *,
        revision: str | None = None,
        include: Sequence[str] = (),
        code: bool = False,
        token: str | None = None,
        patience: Patience = FOR_PEOPLE,
    ) -> None:
        """`code`: take Python files of a model that cannot be loaded without its own; else such a one is refused."""
        self.repo = repo
        self.remote: Remote | None = None  # what the hub shows, once it was asked
        self._notify = notify
        self._revision = revision
        self._include = tuple(include)
        self._code = code
        self._token = token
        self._patience = patience
        self._repository = Repository.of(repo)
        self._stop = threading.Event()
        self.is_over = False
        self._lock = threading.Lock()  # guards what follows: workers write it
        self._done: dict[str, int] = {}
        self._files: tuple[RemoteFile, ...] = ()
        self._commit = ""
        self._fetched = 0
        self._arrivals: deque[tuple[float, int]] = deque()
        self._trouble: dict[str, tuple[str, float]] = {}  # by file: why, and until when
        self._errors: list[Exception] = []
        self._open: set[httpx2.Response] = set()
        self._contents: dict[str, threading.Lock] = {}  # by blob: files of the same content come one after the other

    def pause(self) -> None:
        """Takes effect at once, also while the network stalls."""
        self._end_workers()

    def run(self) -> Finished | Paused | Failed:
        """Fetch what is missing, check it and make it appear. Says every state to `notify`, the last one too."""
        try:
            folder = self._run()
            state: Finished | Paused | Failed = Finished(folder, self._fetched)
        except _Stopped:
            state = Paused(self._progress())
        except DownloadFailed as error:
            state = Failed(error, self._progress())
        except OSError as error:
            state = Failed(_disk_error(error), self._progress())
        finally:
            with _promising:
                if self in _promised:
                    _promised.remove(self)
        if isinstance(state, Failed):
            logger.info("download of %s failed: %s", self.repo, state.error.message)
        self.is_over = True
        self._notify(state)
        return state

    def _run(self) -> Path:
        self._notify(Looking())
        manifest = self._manifest()
        self._files, self._commit = manifest.files, manifest.commit
        self._done = {file.name: self._repository.done(file) for file in manifest.files}
        with _promising:
            promised = sum(other.to_come for other in _promised if other.repo != self.repo)
            room.check(self.repo, self.to_come, promised)
            _promised.append(self)
        self._repository.note(manifest)
        first = [file for file in manifest.files if file.name in FIRST]
        self._fetch_all(first)
        self._check_code(first)
        self._fetch_all([file for file in manifest.files if file.name not in FIRST])
        return self._repository.publish(manifest)

    def _manifest(self) -> Manifest:
        """What to take: as it was decided when this download began, else what the hub shows now."""
        revision = self._revision or "main"
        if not self._include and (begun := self._repository.unfinished(revision)) is not None:
            return begun
        remote = self._patiently(
            "",
            lambda: hub.look(self.repo, self._revision, include=self._include, code=self._code, token=self._token),
        )
        self.remote = remote
        if remote.repo != self.repo:  # the hub spells it otherwise, or it has moved
            self._repository = Repository.of(remote.repo)
        if not hub.safe_name(remote.revision):
            raise FormatRefused(f"{remote.revision!r} is no revision that can be stored; give a branch or a commit")
        return Manifest(remote.repo, remote.revision, remote.commit, remote.files)

    @property
    def to_come(self) -> int:
        """Bytes that are not on the disk yet."""
        with self._lock:
            return sum(file.size - self._done[file.name] for file in self._files)

    def _check_code(self, first: Iterable[RemoteFile]) -> None:
        if self._code:
            return
        paths = {file.name: self._repository.blob(file) for file in first}
        if (reason := model_files.wants_code(paths)) is not None:
            raise FormatRefused(
                f"{self.repo} {reason}, which is refused; choose another model, or allow it with --trust-remote-code",
                repo=self.repo,
            )

    # -- workers

    def _fetch_all(self, files: Sequence[RemoteFile]) -> None:
        todo = deque(sorted((file for file in files if not self._repository.has(file)), key=lambda file: file.size))

        def work() -> None:
            while not self._stop.is_set():
                try:
                    file = todo.popleft()
                except IndexError:
                    return
                try:
                    self._fetch(file)
                except _Stopped:
                    return
                except Exception as error:  # the thread that runs the download raises it again
                    self._errors.append(error)
                    self._end_workers()

        # Daemons: a program that wants to end must not wait for a hub that is silent. What they wrote stays good.
        count = min(self._patience.connections, len(todo))
        workers = [threading.Thread(target=work, name=f"store-{n}", daemon=True) for n in range(count)]
        for worker in workers:
            worker.start()
        while any(worker.is_alive() for worker in workers):
            next(worker for worker in workers if worker.is_alive()).join(_TICK_S)
            self._notify(self._state())
            if self._stop.is_set():
                for worker in workers:
                    worker.join(2.0)
                break
        if self._errors:
            raise self._errors[0]
        if self._stop.is_set():
            raise _Stopped

    def _end_workers(self) -> None:
        self._stop.set()
        with self._lock:
            for response in self._open:
                hub.cut(response)

    def _fetch(self, file: RemoteFile) -> None:
        blob, partial = self._repository.blob(file), self._repository.partial(file)
        with self._alone(file):
            if self._repository.has(file):  # another program was faster
                self._set(file, file.size)
                return
            blob.parent.mkdir(parents=True, exist_ok=True)
            if blob.exists():
                blob.replace(partial)  # of the wrong length: cut short by something
            for is_last in (False, True):
                with partial.open("a+b", buffering=0) as out:
                    incoming = Incoming(file, out)
                    self._receive(incoming)
                    if incoming.is_right:
                        os.fsync(out.fileno())
                        break
                logger.warning("%s of %s arrived damaged", file.name, self.repo)
                partial.unlink()
                self._set(file, 0)
                if is_last:
                    raise DamagedDownload(
                        f"{file.name} of {self.repo} arrived damaged twice; try again later, or over another network",
                        repo=self.repo,
                        file=file.name,
                    )
            partial.replace(blob)

    def _receive(self, incoming: Incoming) -> None:
        """Until it has all its bytes, over as many connections as it takes."""
        file = incoming.file
        self._set(file, incoming.position)
        while incoming.position < file.size:

            def connect() -> None:
                try:
                    self._stream(incoming)
                except NotThere:
                    incoming.restart()
                    raise Unreachable(f"{file.name} must be fetched anew; try again", repo=self.repo) from None

            self._patiently(file.name, connect, incoming)

    def _stream(self, incoming: Incoming) -> None:
        """One answer of the hub."""
        file, start = incoming.file, incoming.position
        with hub.stream(
            self._repository.name, self._commit, file, start, token=self._token, timeout_s=self._patience.stall_s
        ) as response:
            with self._lock:
                self._open.add(response)
            try:
                if self._stop.is_set():
                    raise _Stopped
                if start and not response.headers.get("Content-Range", "").startswith(f"bytes {start}-"):
                    incoming.restart()  # it sends the whole file, whatever was asked for
                    self._set(file, 0)
                for chunk in response.iter_raw():
                    incoming.write(chunk)
                    self._count(file, incoming.position, len(chunk))
                    if self._stop.is_set():
                        raise _Stopped
            finally:
                with self._lock:
                    self._open.discard(response)

    def _patiently(self, name: str, call: Callable[[], T], incoming: Incoming | None = None) -> T:
        """Call until it works, waiting longer each time. What waiting cannot mend is raised at once."""
        failures, wait_s = 0, self._patience.first_wait_s
        while True:
            if self._stop.is_set():
                raise _Stopped
            position = incoming.position if incoming else 0
            try:
                return call()
            except (RateLimited, Unreachable) as error:
                if self._stop.is_set():
                    raise _Stopped from None
                if error.facts.get("kind") == "offline":  # a variable of the user's
                    raise
                if incoming is not None and incoming.position > position:
                    failures, wait_s = 0, self._patience.first_wait_s
                failures += 1
                pause_s = error.retry_after_s if isinstance(error, RateLimited) else wait_s
                if failures >= self._patience.attempts or pause_s > self._patience.longest_pause_s:
                    raise
                wait_s *= 2
                self._wait(name, error.message, pause_s)

    def _wait(self, name: str, reason: str, seconds: float) -> None:
        until = time.monotonic() + seconds
        with self._lock:
            self._trouble[name] = (reason, until)
        if not name:
            self._notify(Retrying(None, reason, seconds))
        stopped = self._stop.wait(seconds)
        with self._lock:
            self._trouble.pop(name, None)
        if stopped:
            raise _Stopped

    @contextmanager
    def _alone(self, file: RemoteFile) -> Generator[None]:
        """Hold the file's lock, which other programs that fetch it take too."""
        path = self._repository.lock(file)
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._lock:
            content = self._contents.setdefault(file.blob, threading.Lock())
        with content:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o664)
            try:
                while not _try_lock(descriptor):
                    self._wait(file.name, "another program is fetching this file", 0.5)
                yield
            finally:
                os.close(descriptor)

    # -- how far it is

    def _set(self, file: RemoteFile, done: int) -> None:
        with self._lock:
            self._done[file.name] = done

    def _count(self, file: RemoteFile, position: int, arrived: int) -> None:
        now = time.monotonic()
        with self._lock:
            self._done[file.name] = position
            self._fetched += arrived
            self._arrivals.append((now, arrived))
            while self._arrivals[0][0] < now - _SPEED_WINDOW_S:
                self._arrivals.popleft()

    def _state(self) -> State:
        progress = self._progress()
        assert progress is not None
        now = time.monotonic()
        with self._lock:
            is_moving = bool(self._arrivals) and self._arrivals[-1][0] > now - 1
            trouble = max(self._trouble.values(), key=lambda entry: entry[1], default=None)
        if trouble is not None and not is_moving:
            return Retrying(progress, trouble[0], max(0.0, trouble[1] - now))
        return Fetching(progress)

    def _progress(self) -> Progress | None:
        if not self._files:
            return None
        now = time.monotonic()
        with self._lock:
            files = tuple(FileProgress(file.name, self._done[file.name], file.size) for file in self._files)
            recent = [(when, count) for when, count in self._arrivals if when >= now - _SPEED_WINDOW_S]
        if not recent:
            return Progress(files)
        return Progress(files, sum(count for _, count in recent) / max(now - recent[0][0], _TICK_S))


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # a disk that knows no locks
    return True


def _disk_error(error: OSError) -> DownloadFailed:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull("the disk is full; what came is kept: free some space and try again", folder=str(root()))
    return DownloadFailed(
        f"the download cannot be stored in {root()} ({error.strerror}); make it writable, "
        "or keep the cache elsewhere by setting HF_HOME",
        folder=str(root()),
    )
