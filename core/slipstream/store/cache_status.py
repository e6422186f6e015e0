"""What the prefix cache says of itself. Numbers alone: no tokens, no texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from slipstream.store.prefixes import Node


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A stretch of tokens without a branch. Its tokens are no secret to those who may read the cache: numbers alone."""

    start: int
    end: int
    ram_bytes: int
    on_disk: bool
    idle_s: float


@dataclass(frozen=True, slots=True)
class CacheStatus:
    """For any thread. `ram_bytes` is the sum over `entries`."""

    ram_bytes: int
    ram_limit: int
    disk_bytes: int  # of every model
    disk_limit: int
    entries: tuple[CacheEntry, ...]
    prompt_tokens: int  # asked for so far
    reused_tokens: int
    misses: Mapping[str, int]  # why less was reused than could have been, by `Miss`


def entries_of(root: Node, now: float) -> Iterator[CacheEntry]:
    """Chains of nodes without a branch, those that hold something."""
    waiting = list(root.children.values())
    while waiting:
        first = last = waiting.pop()
        size, on_disk = last.bytes, any(slab.is_on_disk for slab in last.slabs.values())
        while len(last.children) == 1:
            (last,) = last.children.values()
            size += last.bytes
            on_disk = on_disk or any(slab.is_on_disk for slab in last.slabs.values())
        waiting.extend(last.children.values())
        if size or on_disk:
            yield CacheEntry(first.start, last.end, size, on_disk, max(0.0, now - last.used_s))
