"""Deleting models: a list of exact files first, then the Bin where there is one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from slipstream.store.local import LocalModel


@dataclass(frozen=True, slots=True)
class Removal:
    """What deleting a model would take away."""

    model: LocalModel
    files: tuple[tuple[Path, int], ...]  # with their bytes on disk
    kept: tuple[tuple[Path, str], ...] = ()  # what stays, and why
    shared_with: str | None = None  # another program that reads this folder too

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self.files)


def plan(model: LocalModel) -> Removal:
    """What would go and what would stay. Changes nothing."""
    raise NotImplementedError


def remove(removal: Removal) -> str:
    """Do it. Returns where the files went: "moved to the Bin" or "deleted"."""
    raise NotImplementedError
