"""The prefix cache: what was computed for a prompt, kept for the next one that begins the same way.

In memory and on disk, each within its own number of bytes; what was used least recently goes first, ends before
beginnings. Holds the target's state and the drafters': a drafter that lacked the context of a reused prefix would be
weak, and nobody would know.
Knows nothing of MLX: what arrays are is told by `Arrays`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from slipstream.events import Miss, Shortfall
from slipstream.store import finding
from slipstream.store.cache_status import CacheStatus, entries_of
from slipstream.store.pieces import Arrays, Found, Piece, Source
from slipstream.store.prefixes import Node, Rows, Slab, common, reach, walk
from slipstream.store.prompt_file import Damaged
from slipstream.store.prompts import PromptStore, Record, State
from slipstream.store.shelf import Shelf

logger = logging.getLogger(__name__)

PIECE = 512  # tokens of a node at most: what is evicted, written and read at once
WRITTEN_FROM = 256  # tokens of a prompt from which on it is worth a file


class PromptCache:
    """One loaded model's. `find`, `fetch` and `keep` are for the engine's thread, the rest for any."""

    def __init__(self, arrays: Arrays, ram_limit: int, store: PromptStore | None = None) -> None:
        self._arrays = arrays
        self._store = store
        self._shelf = Shelf(ram_limit)
        self._unwritten: deque[tuple[Node, str]] = deque()
        self._asked = self._reused = 0
        self._misses: dict[str, int] = {}
        self._lock = threading.RLock()
        self._has_old = store is not None and store.was_other
        for record, tokens in sorted(store.found, key=lambda pair: pair[0].end) if store else ():
            self._adopt(record, tokens)
        self._publish()

    def find(self, prompt: Sequence[int], needs: Mapping[str, bool]) -> Found:
        """The longest beginning of a prompt whose state is all there; its last token is always computed.

        `needs`: parts of the state, and whether each has something that can only be kept whole.
        """
        with self._lock:
            self._collect()
            self._shelf.begin()
            found = self._found(prompt, needs)
            self._asked += len(prompt)
            self._touch(found)
        return found

    def fetch(self, found: Found) -> Iterator[None]:
        """Read what is on disk alone, a file at each step. Between steps others may use the cache."""
        last: dict[str, tuple[Record, Rows, Rows]] = {}

        def read(part: str, record: Record) -> tuple[Rows, Rows]:
            """Rows and fixed arrays. Raises Damaged."""
            if part not in last or last[part][0] is not record:
                assert self._store is not None
                if record.state is State.GONE:  # evicted for others meanwhile, or cleared
                    raise _Gone
                # Where the tree has parted since it was written, only its beginning may be wanted.
                stop = max((piece.stop for piece in found.pieces if piece.records.get(part) is record), default=None)
                rows, fixed = self._store.read(record, found.prompt[:stop])
                last[part] = (record, self._arrays.thaw(rows), self._arrays.thaw(fixed))
            return last[part][1:]

        while True:
            try:
                for piece in found.pieces:
                    for part, record in list(piece.records.items()):
                        yield
                        with self._lock:
                            rows, _ = read(part, record)
                            self._take(piece, part, record, rows)
                with self._lock:
                    for part, record in found.fixed.items():
                        if isinstance(record, Record):
                            found.fixed[part] = fixed = read(part, record)[1]
                            self._take_fixed(found.pieces[-1], part, fixed)
            except Damaged as error:
                with self._lock:
                    again = self._found(found.prompt, found.needs)
                    found.pieces, found.fixed, found.tokens = again.pieces, again.fixed, again.tokens
                    reason = Miss.EVICTED if isinstance(error, _Gone) else Miss.DAMAGED
                    found.shortfall = Shortfall(reason, again.tokens)
                continue
            with self._lock:
                self._reused += found.tokens
                if found.shortfall is not None:
                    reason = found.shortfall.reason.value
                    self._misses[reason] = self._misses.get(reason, 0) + 1
                self._publish()
            return

    def keep(self, tokens: Sequence[int], sources: Mapping[str, Source]) -> None:
        """Keep the state of `tokens`, as far as there is room for it beside what others used since it was asked for."""
        with self._lock:
            self._collect()
            self._shelf.begin()
            fits = _Room(self._shelf, self._store, sources, len(tokens))
            checkpoints = {at for source in sources.values() for at in source.checkpoints if 0 < at <= len(tokens)}
            node = self._shelf.root
            for at in sorted({*checkpoints, len(tokens)}):
                if (reached := self._extend(node, tokens, at, sources, fits)) is None:
                    break
                node = reached
            self._shelf.thin(node)
            self._shelf.prune()
            self._pump()
            self._publish()

    def shed(self) -> None:
        """Give the memory back. What was written to disk can still be found there. On the engine's thread."""
        with self._lock:
            self._shelf.empty()
            self._publish()

    def clear(self) -> None:
        """Forget everything, on disk too, other models' included."""
        with self._lock:
            self._shelf.clear()
            self._unwritten.clear()
            if self._store is not None:
                self._store.collect()
                self._store.clear()
                self._has_old = False
            self._publish()

    @property
    def status(self) -> CacheStatus:
        return self._status

    @property
    def is_idle(self) -> bool:
        """Nothing waits to be written."""
        return not self._unwritten

    def tick(self) -> None:
        """Now and then, on the engine's thread: queue more to be written, let go of what has been."""
        with self._lock:
            self._collect()
            self._pump()

    def close(self) -> None:
        """On the engine's thread. What waits is written, for a moment."""
        with self._lock:
            self._pump()
            if self._store is not None:
                self._store.close()
            self._shelf.clear()

    # Finding.

    def _found(self, prompt: Sequence[int], needs: Mapping[str, bool]) -> Found:
        return finding.find(self._shelf.root, prompt, needs, self._arrays.cut, was_other=self._has_old)

    def _touch(self, found: Found) -> None:
        for node, _ in walk(self._shelf.root, found.prompt[: found.tokens]):
            self._mark(node)

    def _take(self, piece: Piece, part: str, record: Record, rows: Rows) -> None:
        """Rows that were read: for the request, and for the next one."""
        offset = piece.start - record.start
        piece.rows[part] = self._arrays.cut(rows, offset, offset + piece.stop - piece.start)
        del piece.records[part]
        node = piece.node
        slab = node.slabs.get(part)
        if (node.start, node.end) != piece.span or slab is None or slab.rows is not None or slab.record is not record:
            return
        size = sum(array.nbytes for array in rows.values()) * len(node.tokens) // (record.end - record.start)
        if piece.stop == node.end and self._shelf.make_room(size, anew=True):
            self._shelf.put(slab, piece.rows[part], None)

    def _take_fixed(self, piece: Piece, part: str, fixed: Rows) -> None:
        """The same for what was kept whole, beside rows that are in memory."""
        node = piece.node
        slab = node.slabs.get(part)
        size = sum(array.nbytes for array in fixed.values())
        is_same = (node.start, node.end) == piece.span and piece.stop == node.end
        if not is_same or slab is None or not slab.is_in_memory or slab.fixed is not None:
            return
        if self._shelf.make_room(size, anew=True):
            self._shelf.put(slab, slab.rows, fixed)

    # Keeping.

    def _extend(
        self, node: Node, tokens: Sequence[int], at: int, sources: Mapping[str, Source], fits: _Room
    ) -> Node | None:
        """Keep the tokens from a node's end up to a position. None where there was no more room."""
        while node.end < at:
            child = node.children.get(tokens[node.end])
            if child is None:
                child = Node(node, tuple(tokens[node.end : min(at, node.end + PIECE)]), node.end)
                self._mark(child)
                if not self._fill(child, tokens, sources, fits):
                    return None
                node.children[child.tokens[0]] = child
            else:
                count = common(child.tokens, tuple(tokens[node.end : at]))
                if count < len(child.tokens):
                    is_whole = at == len(tokens) == child.start + count and not self._lacks(child, sources)
                    if is_whole and not any(at in source.checkpoints for source in sources.values()):
                        self._mark(child)
                        return child  # the prompt ends inside it, and adds nothing
                    child = child.split(child.start + count, self._arrays.cut)
                    for part, slab in child.slabs.items():
                        if slab.record is None:
                            self._queue(child, part, tokens)
                self._mark(child)
                if not self._fill(child, tokens, sources, fits):
                    return None
            node = child
        return node

    def _mark(self, node: Node) -> None:
        self._shelf.use(node)
        for slab in node.slabs.values():
            if slab.record is not None and slab.is_on_disk and self._store is not None:
                self._store.touch(slab.record)

    @staticmethod
    def _lacks(node: Node, sources: Mapping[str, Source]) -> bool:
        return any(part not in node.slabs or not node.slabs[part].is_there for part in sources)

    def _fill(self, node: Node, tokens: Sequence[int], sources: Mapping[str, Source], fits: _Room) -> bool:
        """Give a node the parts it lacks. False, and nothing done, when there is no room for them."""
        size, lacking = 0, list[str]()
        for part, source in sources.items():
            slab = node.slabs.get(part, Slab())
            is_late = slab.is_in_memory and node.end in source.checkpoints and not slab.has_fixed(node.end)
            if slab.is_there and not is_late:
                continue
            lacking.append(part)
            size += 0 if slab.is_there else source.row_bytes * len(node.tokens)
            size += sum(array.nbytes for array in source.checkpoints.get(node.end, {}).values())
        if not lacking:
            return True
        in_memory = fits.in_memory(size)
        if not in_memory and not fits.on_disk():
            return False
        for part in lacking:
            source, slab = sources[part], node.slabs.setdefault(part, Slab())
            fixed = source.checkpoints.get(node.end)
            if in_memory:
                rows = source.rows(node.start, node.end) if slab.rows is None else slab.rows
                self._shelf.put(slab, rows, fixed)
                slab.record = None  # a file without the checkpoint is written again, in the same place
                self._queue(node, part, tokens)
            elif not slab.is_in_memory:
                rows = source.rows(node.start, node.end)
                slab.record = self._write(node, part, tokens[: node.end], rows, fixed)
        return True

    # On disk.

    def _adopt(self, record: Record, tokens: Sequence[int]) -> None:
        """A file that was there at the start. Whether it can be used is found out when it is read."""
        assert self._store is not None
        root, cut = self._shelf.root, self._arrays.cut
        node = reach(root, tokens, record.start, cut)
        reach(root, tokens, record.end, cut)
        is_new = False
        for child, _ in walk(root, tokens):
            if child.start >= node.end and not child.slabs.setdefault(record.part, Slab()).is_there:
                child.slabs[record.part].record = record
                child.used_s = time.monotonic() - max(0.0, time.time() - record.used_s)
                is_new = True
        if not is_new:
            self._store.drop(record)

    def _queue(self, node: Node, part: str, tokens: Sequence[int]) -> None:
        if self._store is not None and len(tokens) >= WRITTEN_FROM:
            self._unwritten.append((node, part))

    def _pump(self) -> None:
        """Hand over as much as may wait; the rest is handed over later."""
        while self._store is not None and self._unwritten and self._store.has_room_to_wait:
            node, part = self._unwritten.popleft()
            slab = node.slabs[part]
            if slab.rows is not None and slab.record is None and self._shelf.holds(node):
                slab.record = self._write(node, part, node.prompt(), slab.rows, slab.fixed)

    def _write(self, node: Node, part: str, prompt: Sequence[int], rows: Rows, fixed: Rows | None) -> Record | None:
        assert self._store is not None
        freeze = self._arrays.freeze
        # What the same request used since then stays; a moment less, since two clocks are compared.
        before_s = time.time() - (time.monotonic() - node.used_s) - 1e-3
        return self._store.add(prompt, node.start, part, freeze(rows), freeze(fixed or {}), before_s=before_s)

    def _collect(self) -> None:
        if self._store is not None:
            self._store.collect()

    # Telling.

    def _publish(self) -> None:
        now = time.monotonic()
        self._status = CacheStatus(
            self._shelf.bytes,
            self._shelf.limit,
            0 if self._store is None else self._store.bytes,
            0 if self._store is None else self._store.limit,
            tuple(entries_of(self._shelf.root, now)),
            self._asked,
            self._reused,
            dict(self._misses),
        )


class CacheDesk:
    """The prefix cache of the engine that is loaded, if any: for threads that do not know the engine."""

    def __init__(self) -> None:
        self._cache: PromptCache | None = None

    def attach(self, cache: PromptCache | None) -> None:
        """By the engine, when it opens and when it closes."""
        self._cache = cache

    @property
    def status(self) -> CacheStatus | None:
        """None when no prompts are kept."""
        cache = self._cache
        return None if cache is None else cache.status

    def clear(self) -> None:
        """May wait for a prefill chunk's time; not for an event loop's thread."""
        if (cache := self._cache) is not None:
            cache.clear()

    def as_json(self) -> dict[str, Any]:
        status = self.status
        return {"enabled": False} if status is None else {"enabled": True, **asdict(status)}


class _Gone(Damaged):
    """The file is no longer there."""


class _Room:
    """Whether a request's state may take more room. One that is larger than a whole budget may evict nobody."""

    def __init__(self, shelf: Shelf, store: PromptStore | None, sources: Mapping[str, Source], tokens: int) -> None:
        checkpoints = [fixed for source in sources.values() for fixed in source.checkpoints.values()]
        fixed = sum(array.nbytes for checkpoint in checkpoints for array in checkpoint.values())
        self._shelf, self._store = shelf, store
        self._whole = sum(source.row_bytes for source in sources.values()) * tokens + fixed
        self._is_long = tokens >= WRITTEN_FROM

    def in_memory(self, size: int) -> bool:
        shelf = self._shelf
        if self._whole > shelf.limit:
            return shelf.bytes + size <= shelf.limit
        return shelf.make_room(size)

    def on_disk(self) -> bool:
        store = self._store
        return store is not None and self._is_long and store.has_room_to_wait and self._whole <= store.limit
