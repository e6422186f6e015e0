"""Will it fit: what a pair takes at a context, against what this machine can give. Loads nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Verdict(StrEnum):
    FITS = "fits"
    TIGHT = "tight"  # it fits, with less than a tenth to spare
    TOO_LARGE = "too large"


@dataclass(frozen=True, slots=True)
class Limit:
    """What this machine can give a model, in bytes."""

    bytes: int
    kind: str  # "GPU working set", "free memory", "container limit"
    machine: int  # physical memory, for people


@dataclass(frozen=True, slots=True)
class Fit:
    """The numbers that decide, in bytes."""

    target: int
    drafter: int
    kv: int  # the target's cache at `context`, recurrent states included
    drafter_kv: int
    working: int  # activations of the widest pass, and room for the allocator
    context: int
    limit: Limit
    longest_context: int  # the longest that fits, 0 when not even the weights do

    @property
    def total(self) -> int:
        return self.target + self.drafter + self.kv + self.drafter_kv + self.working

    @property
    def verdict(self) -> Verdict:
        if self.total > self.limit.bytes:
            return Verdict.TOO_LARGE
        return Verdict.TIGHT if self.total > 0.9 * self.limit.bytes else Verdict.FITS


def limit() -> Limit:
    """This machine's. On a thread that may use MLX (the store's or the engine's); the answer never changes on a Mac."""
    raise NotImplementedError


def fit(
    target: Path,
    drafters: Sequence[Path] = (),
    *,
    context: int | None = None,
    kv_bits: int = 0,
    against: Limit | None = None,
) -> Fit:
    """Whether a pair of model folders fits at a context (None: the model's own, at most 32,768)."""
    raise NotImplementedError
