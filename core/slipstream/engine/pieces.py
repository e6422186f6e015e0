"""Weights read in pieces: so it can be said how far a load is, and it can be given up in between."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten

from slipstream.events import Report
from slipstream.store import heads

PIECES = 100  # of a large model
LEAST_PIECE = 16 * 2**20  # bytes: smaller ones would be waited for too often


class Progress:
    """Of one load: what was read of the bytes that a target and its drafters are stored in."""

    def __init__(self, report: Report, drafters: Sequence[Path] = (), beside: Path | None = None) -> None:
        """`beside`: the target's folder, of which a drafter may be a part."""
        self._report = report
        self._done = 0
        self._drafters = {path: drafter_bytes(path, beside) for path in drafters}
        self._total = sum(self._drafters.values())

    def read(self, model: nn.Module, sizes: dict[str, int]) -> None:
        """Compute all weights of a lazily loaded model. `sizes`: what `stored_bytes` said before they were converted.

        Raises what `mx.eval` and the report raise.
        """
        self._total += sum(sizes.values())
        self._report(self._done, self._total)
        waiting: list[mx.array] = []
        size = 0
        least = max(LEAST_PIECE, self._total // PIECES)
        for module, arrays in _by_module(model).items():
            waiting += arrays
            size += sizes.get(module, 0)
            if size >= least:
                mx.eval(waiting)
                self._add(size)
                waiting, size = [], 0
        mx.eval(waiting)
        self._add(size)

    def read_drafter(self, path: Path) -> None:
        """One has been read, as a whole."""
        self._add(self._drafters[path])

    def _add(self, size: int) -> None:
        self._done += size
        self._report(self._done, self._total)


def stored_bytes(model: nn.Module) -> dict[str, int]:
    """Bytes of each module's own weights, by its path. Nothing is read for it."""
    return {module: sum(array.nbytes for array in arrays) for module, arrays in _by_module(model).items()}


def drafter_bytes(path: Path, beside: Path | None = None) -> int:
    """Bytes that a drafter is stored in: of a folder with MTP heads, these alone."""
    if path.is_file():
        return path.stat().st_size
    if path == beside or heads.has(path):
        return sum(part.tensor.bytes for part in heads.find(path).values())
    files = [*path.glob("*.safetensors")] or [*path.glob("*.gguf")]
    return sum(file.stat().st_size for file in files if file.exists())  # loading says what a dead link means


def _by_module(model: nn.Module) -> dict[str, list[mx.array]]:
    """In the order of the layers, which is about that of the files."""
    found: dict[str, list[mx.array]] = {}
    flat: list[tuple[str, mx.array]] = tree_flatten(model.parameters())  # pyright: ignore[reportAssignmentType]
    for name, array in flat:
        found.setdefault(name.rpartition(".")[0], []).append(array)
    return found
