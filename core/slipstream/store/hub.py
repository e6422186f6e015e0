"""The Hugging Face hub: what is there, and what of it a download would take. Fetches nothing but lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a repository at one commit, with the hash its bytes must have."""

    name: str  # with folders, "/" between them
    size: int
    sha256: str | None = None  # of large files
    git_sha1: str | None = None  # of small ones: the hash of a git blob

    @property
    def blob(self) -> str:
        """The file's name among the blobs of the hub's cache."""
        name = self.sha256 or self.git_sha1
        assert name is not None
        return name


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file that a download does not take, and why."""

    name: str
    size: int
    reason: str


@dataclass(frozen=True, slots=True)
class Remote:
    """A repository at one commit: what a download takes and leaves."""

    repo: str
    revision: str  # as asked for: a branch, tag or commit
    commit: str
    files: tuple[RemoteFile, ...]
    left_out: tuple[LeftOut, ...] = ()
    licence: str | None = None
    gated: bool = False
    base_models: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class Hit:
    """One answer to a search."""

    repo: str
    downloads: int | None = None
    gated: bool = False
    is_mlx: bool = False


def search(query: str, *, limit: int = 20, token: str | None = None) -> list[Hit]:
    """Model repositories with safetensors that match, most downloaded first. Raises DownloadFailed."""
    raise NotImplementedError


def look(repo: str, revision: str | None = None, *, include: Sequence[str] = (), token: str | None = None) -> Remote:
    """What is in a repository, and what a download would take.

    `include`: names or patterns to take beside or instead of what is taken by default, such as a GGUF file.
    Raises DownloadFailed.
    """
    raise NotImplementedError
