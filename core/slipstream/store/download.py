"""Downloads into the hub's shared cache: resumable, checked, and there only when whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from slipstream.errors import DownloadFailed


@dataclass(frozen=True, slots=True)
class FileProgress:
    name: str
    done: int  # bytes
    size: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a download is. Never runs backwards, except for a file that arrived damaged."""

    files: tuple[FileProgress, ...]
    bytes_per_s: float = 0.0  # over the last seconds

    @property
    def done(self) -> int:
        return sum(file.done for file in self.files)

    @property
    def total(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def remaining_s(self) -> float | None:
        return (self.total - self.done) / self.bytes_per_s if self.bytes_per_s > 0 else None


@dataclass(frozen=True, slots=True)
class Waiting:
    """Behind another download."""


@dataclass(frozen=True, slots=True)
class Looking:
    """Asking the hub what is there."""


@dataclass(frozen=True, slots=True)
class Fetching:
    progress: Progress


@dataclass(frozen=True, slots=True)
class Retrying:
    """It goes on by itself after `wait_s`."""

    progress: Progress | None
    reason: str
    wait_s: float


@dataclass(frozen=True, slots=True)
class Paused:
    progress: Progress | None


@dataclass(frozen=True, slots=True)
class Finished:
    folder: Path
    fetched: int  # bytes that came over the network this time


@dataclass(frozen=True, slots=True)
class Failed:
    error: DownloadFailed
    progress: Progress | None


State = Waiting | Looking | Fetching | Retrying | Paused | Finished | Failed


class Downloads:
    """The queue: one repository after the other, on a thread of its own ("store").

    `notify(repo, state)` is called on that thread, at most some ten times a second for each download.
    What a download has fetched stays on disk whatever happens; `start` goes on where it ended, in this process or
    another.
    """

    def __init__(self, notify: Callable[[str, State], None]) -> None: ...

    def start(
        self, repo: str, revision: str | None = None, *, include: Sequence[str] = (), token: str | None = None
    ) -> None:
        """Queue a repository, or continue it."""

    def pause(self, repo: str) -> None:
        """Takes effect at once, also while the network stalls; ends with Paused."""

    @property
    def states(self) -> Mapping[str, State]:
        """The latest state of every download of this run."""
        raise NotImplementedError

    def close(self) -> None:
        """Pause what runs and end the thread."""
