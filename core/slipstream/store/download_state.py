"""What a download says of itself, and how long it waits for the network."""

from __future__ import annotations

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


@dataclass(frozen=True, slots=True)
class Patience:
    """When to give up. The defaults are for people; tests are in a hurry."""

    stall_s: float = 60.0  # without a byte, then the connection is made anew
    attempts: int = 6  # in a row that bring no byte
    first_wait_s: float = 1.0  # before the second attempt; doubles each time
    longest_pause_s: float = 900.0  # that the hub may ask for
    connections: int = 4  # files at a time


FOR_PEOPLE = Patience()
