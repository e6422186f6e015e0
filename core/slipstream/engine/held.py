"""What a loaded pair holds of the memory, by what it is for: counted on the engine's thread, read from any."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from slipstream.store import memory
from slipstream.store.memory import Limit

EVERY_S = 0.25  # between two counts while answers are written


@dataclass(frozen=True, slots=True)
class Held:
    """Bytes. `active` is all that MLX has given out: these three, kept prompts, and what passes work with."""

    target: int
    drafters: int
    caches: int  # keys, values and states of the answers under way, the drafters' included
    active: int
    free: int  # that can still be given out


class Ledger:
    """One engine's. `now` is replaced as a whole, so that it can be read while the engine counts anew."""

    def __init__(self, target: int, drafters: int, limit: Limit) -> None:
        """`target`, `drafters`: bytes of their weights as they were loaded."""
        self._target, self._drafters, self._limit = target, drafters, limit
        self._caches: dict[object, Callable[[], int]] = {}
        self._counted_s = 0.0
        self.now = self._count()

    @contextmanager
    def holding(self, size: Callable[[], int]) -> Generator[None]:
        """While an answer is made whose caches have this size."""
        key = object()
        self._caches[key] = size
        try:
            yield
        finally:
            del self._caches[key]
            self.look(soon=False)

    def look(self, *, soon: bool = True) -> None:
        """Count anew. `soon`: unless it was done a moment ago."""
        now = time.monotonic()
        if not soon or now - self._counted_s >= EVERY_S:
            self._counted_s = now
            self.now = self._count()

    def _count(self) -> Held:
        import mlx.core as mx

        caches = sum(size() for size in self._caches.values())
        free = max(0, memory.headroom(self._limit))
        return Held(self._target, self._drafters, caches, mx.get_active_memory(), free)
