"""Which pairs to offer on a first start: what is here already, and known ones that this machine's memory holds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from slipstream_app.models.pairs import CONTEXTS, PairFit, PairRow, Shelf

ROOM = 0.8  # of the memory for models that weights may take: the rest is the context's and the system's
MIDDLE = 0.5
NEAR = 0.12
OVERHEAD = 1.1  # of packed weights: scales, and parts that stay unpacked
FOUND = 2  # pairs of this machine that are offered beside the built-in one


class Size(StrEnum):
    FAST = "fast"
    BALANCED = "balanced"
    LARGE = "large"


class Sure(StrEnum):
    """How well the size of a download is known."""

    EXACT = "exact"
    ABOUT = "about"
    AT_LEAST = "at least"  # a part of it has a size that nobody published


@dataclass(frozen=True, slots=True)
class Suggestion:
    row: PairRow
    size: Size
    bytes: int  # to be fetched, estimated where nobody knows
    sure: Sure = Sure.ABOUT


def download_of(row: PairRow) -> tuple[int, Sure] | None:
    """Bytes of all that fetching a pair queues. None: nobody knows, not even about."""
    known = sum(half.bytes or 0 for half in row.missing)
    if all(half.bytes is not None for half in row.missing):
        return known, Sure.EXACT
    if row.shelf is not Shelf.SUGGESTED or (size := estimate(row)) is None:
        return (known, Sure.AT_LEAST) if known else None
    return size, Sure.ABOUT if all(half.bytes is not None for half in row.missing[1:]) else Sure.AT_LEAST


def found_here(rows: Sequence[PairRow]) -> list[PairRow]:
    """Pairs that can be used without a download, beside the built-in one; those with a drafter first."""
    ready = [row for row in rows if row.shelf is Shelf.ON_MAC and row.is_ready and not row.is_built_in]
    ready.sort(key=lambda row: row.choice.drafters == ())
    return ready[:FOUND]


def suggested(rows: Sequence[PairRow], fits: Mapping[str, PairFit], memory: int) -> list[Suggestion]:
    """At most three: the smallest, one that leaves room, and the largest that fits. `memory`: bytes for models.

    `fits`: by the rows' keys, as far as they could be worked out. Pairs of which that is known go first.
    """
    sized = [(row, size) for row in rows if row.shelf is Shelf.SUGGESTED and (size := estimate(row)) is not None]
    fitting = sorted(((row, size) for row, size in sized if size <= ROOM * memory), key=lambda pair: pair[1])
    known = [(row, size) for row, size in fitting if (fit := fits.get(row.key)) is not None and fit.is_known]
    if known:
        fitting = [(row, size) for row, size in known if fits[row.key].longest_context >= CONTEXTS[0]]
    if not fitting:
        return []
    between = fitting[1:-1] or fitting  # beside the smallest and the largest, where there are others
    middle = max(between, key=lambda pair: _worth(pair[0], abs(pair[1] - MIDDLE * memory) / memory))
    chosen = {Size.BALANCED: middle, Size.FAST: fitting[0], Size.LARGE: fitting[-1]}
    out: list[Suggestion] = []
    for size, (row, count) in chosen.items():
        if all(row is not one.row for one in out):
            found = download_of(row)
            out.append(Suggestion(row, size, count, found[1] if found is not None else Sure.ABOUT))
    return out


def _worth(row: PairRow, off: float) -> tuple[float, float]:
    """Near the middle what others measured of its drafter decides, further away how near it is."""
    return (row.published_speedup or 1.0) if off <= NEAR else 0.0, -off


def estimate(row: PairRow) -> int | None:
    """Bytes of a pair that is not here: as published, else from the parameters and bits in its name."""
    if row.bytes is not None:
        return row.bytes
    target = target_bytes(row)
    return None if target is None else target + sum(half.bytes or 0 for half in row.missing[1:])


def target_bytes(row: PairRow) -> int | None:
    """The same of its model alone."""
    if row.missing and row.missing[0].bytes is not None:
        return row.missing[0].bytes
    named = re.search(r"(\d+(?:\.\d+)?)B\b", row.title)
    bits = {"bf16": 16}.get(row.bits) or int(row.bits.partition("-")[0] or 0) if row.bits else 0
    if named is None or not bits:
        return None
    return int(float(named[1]) * 1e9 * bits / 8 * OVERHEAD)
