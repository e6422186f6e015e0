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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from slipstream.events import Miss, Shortfall
from slipstream.store.cache_status import CacheStatus, entries_of
from slipstream.store.pieces import Arrays, Found, Piece, Source
from slipstream.store.prefixes import Node, Rows, Slab, common, nodes, reach, walk
from slipstream.store.prompt_file import Damaged
from slipstream.store.prompts import PromptStore, Record, State

logger = logging.getLogger(__name__)

PIECE = 512  # tokens of a node at most: what is evicted, written and read at once
WRITTEN_FROM = 256  # tokens of a prompt from which on it is worth a file
GONE_TOKENS = 250_000  # remembered though their state is gone (some 40 bytes each): they say why nothing was reused
NODE_TOKENS = 64  # what a node itself takes, in tokens: many short prompts are many nodes
CHECKPOINT_EVERY = 4096  # tokens between the older checkpoints of one prompt
LATEST_CHECKPOINTS = 4  # of one prompt that are kept however close they stand


class PromptCache:
    """One loaded model's. `find`, `fetch` and `keep` are for the engine's thread, the rest for any."""

    def __init__(self, arrays: Arrays, ram_limit: int, store: PromptStore | None = None) -> None:
        self._arrays = arrays
        self._ram_limit = ram_limit
        self._store = store
        self._root = Node(None, (), 0)
        self._ram = 0
        self._tick = 0
        self._unwritten: deque[tuple[Node, str]] = deque()
        self._asked = self._reused = 0
        self._misses: dict[str, int] = {}
        self._lock = threading.RLock()
        self._victims: deque[Node] | None = None
        self._now_s = time.monotonic()
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
            self._tick += 1
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
            self._tick += 1
            self._victims = None
            self._now_s = time.monotonic()
            fits = _Room(self, sources, len(tokens))
            checkpoints = {at for source in sources.values() for at in source.checkpoints if 0 < at <= len(tokens)}
            node = self._root
            for at in sorted({*checkpoints, len(tokens)}):
                if (reached := self._extend(node, tokens, at, sources, fits)) is None:
                    break
                node = reached
            self._thin(node)
            self._prune()
            self._pump()
            self._publish()

    def shed(self) -> None:
        """Give the memory back. What was written to disk can still be found there. On the engine's thread."""
        with self._lock:
            self._tick += 1
            self._victims = None
            self._make_room(self._ram_limit)
            self._publish()

    def clear(self) -> None:
        """Forget everything, on disk too, other models' included."""
        with self._lock:
            self._root = Node(None, (), 0)
            self._ram = 0
            self._unwritten.clear()
            self._victims = None
            if self._store is not None:
                self._store.collect()
                self._store.clear()
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
            self._root = Node(None, (), 0)
            self._ram = 0

    # Finding.

    def _found(self, prompt: Sequence[int], needs: Mapping[str, bool]) -> Found:
        limit = len(prompt) - 1
        path = walk(self._root, prompt)
        matched = sum(count for _, count in path)
        whole = [part for part, fixed in needs.items() if fixed]
        pieces: list[Piece] = []
        shortfall: Shortfall | None = None
        checkpoint = 0  # pieces up to the last place where everything that can only be kept whole was kept
        for node, count in path:
            stop = min(node.start + count, limit)
            if stop == node.start:
                break
            if lacking := [part for part in needs if part not in node.slabs or not node.slabs[part].is_there]:
                shortfall = Shortfall(_why(node, lacking), node.start)
                break
            pieces.append(self._piece(node, stop, needs))
            if stop == node.end and all(node.slabs[part].has_fixed(stop) for part in whole):
                checkpoint = len(pieces)
        if shortfall is None and matched < limit:
            shortfall = self._difference(path, matched)
        if whole:
            if checkpoint < len(pieces):
                shortfall = Shortfall(Miss.CHECKPOINT, pieces[-1].stop)
            pieces = pieces[:checkpoint]
        found = Found(prompt, needs, pieces[-1].stop if pieces else 0, matched, shortfall, pieces)
        for part in whole if pieces else ():
            slab = pieces[-1].node.slabs[part]
            if slab.fixed is not None:
                found.fixed[part] = slab.fixed
            elif slab.record is not None:
                found.fixed[part] = slab.record
        return found

    def _piece(self, node: Node, stop: int, needs: Iterable[str]) -> Piece:
        """A node's state up to a position: rows that are in memory, files of the others."""
        piece = Piece(node.start, stop, node, (node.start, node.end), {}, {})
        for part in needs:
            slab = node.slabs[part]
            if slab.rows is not None:
                is_whole = stop == node.end
                piece.rows[part] = slab.rows if is_whole else self._arrays.cut(slab.rows, 0, stop - node.start)
            elif slab.record is not None:
                piece.records[part] = slab.record
        return piece

    def _difference(self, path: Sequence[tuple[Node, int]], matched: int) -> Shortfall | None:
        """Why nothing kept goes on as the prompt does."""
        node, count = path[-1] if path else (self._root, 0)
        if count < len(node.tokens) or node.children:
            return Shortfall(Miss.DIFFERS, matched)
        if path:
            return None  # all of a kept prompt was found, and this one goes on
        return Shortfall(Miss.IDENTITY if self._has_old else Miss.NEW, 0)

    def _touch(self, found: Found) -> None:
        self._now_s = time.monotonic()
        for node, _ in walk(self._root, found.prompt[: found.tokens]):
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
        self._victims = None
        if piece.stop == node.end and self._make_room(size):
            slab.rows = piece.rows[part]
            self._ram += slab.bytes

    def _take_fixed(self, piece: Piece, part: str, fixed: Rows) -> None:
        """The same for what was kept whole, beside rows that are in memory."""
        node = piece.node
        slab = node.slabs.get(part)
        self._victims = None
        size = sum(array.nbytes for array in fixed.values())
        is_same = (node.start, node.end) == piece.span and piece.stop == node.end
        if is_same and slab is not None and slab.is_in_memory and slab.fixed is None and self._make_room(size):
            slab.fixed = fixed
            self._ram += size

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
        node.used, node.used_s = self._tick, self._now_s
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
                self._ram -= slab.bytes
                slab.rows = source.rows(node.start, node.end) if slab.rows is None else slab.rows
                # A file without the checkpoint is written again, in the same place.
                slab.fixed, slab.record = fixed, None
                self._ram += slab.bytes
                self._queue(node, part, tokens)
            elif not slab.is_in_memory:
                rows = source.rows(node.start, node.end)
                slab.record = self._write(node, part, tokens[: node.end], rows, fixed)
        return True

    def _make_room(self, size: int) -> bool:
        """Evict what was not used by the latest request, oldest first and ends before beginnings."""
        if self._victims is None:
            old = [node for node in nodes(self._root) if node.used < self._tick and node.bytes]
            self._victims = deque(sorted(old, key=lambda node: (node.used, -node.end)))
        while self._ram + size > self._ram_limit and self._victims:
            node = self._victims.popleft()
            self._ram -= node.bytes
            for slab in node.slabs.values():
                slab.rows = slab.fixed = None
        return self._ram + size <= self._ram_limit

    def _thin(self, last: Node) -> None:
        """Let go of checkpoints that stand close together, but for the first and the latest."""
        path: list[Node] = []
        node: Node | None = last
        while node is not None:
            if any(slab.fixed is not None for slab in node.slabs.values()):
                path.append(node)
            node = node.parent
        path.reverse()
        before = path[0].end if path else 0
        for node in path[1:-LATEST_CHECKPOINTS]:
            if node.end - before >= CHECKPOINT_EVERY:
                before = node.end
                continue
            self._ram -= node.bytes
            for slab in node.slabs.values():
                slab.fixed = None
            self._ram += node.bytes

    def _prune(self) -> None:
        """Forget the oldest ends of which nothing is left, once they are many."""
        gone = [node for node in nodes(self._root) if not node.is_there]
        excess = sum(NODE_TOKENS + len(node.tokens) for node in gone) - GONE_TOKENS
        for node in sorted(gone, key=lambda node: (node.used, -node.end)):
            if excess <= 0:
                return
            if not node.children:
                node.remove()
                excess -= NODE_TOKENS + len(node.tokens)

    # On disk.

    def _adopt(self, record: Record, tokens: Sequence[int]) -> None:
        """A file that was there at the start. Whether it can be used is found out when it is read."""
        assert self._store is not None
        node = reach(self._root, tokens, record.start, self._arrays.cut)
        reach(self._root, tokens, record.end, self._arrays.cut)
        is_new = False
        for child, _ in walk(self._root, tokens):
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
            if slab.rows is not None and slab.record is None and self._is_in_tree(node):
                slab.record = self._write(node, part, node.prompt(), slab.rows, slab.fixed)

    def _write(self, node: Node, part: str, prompt: Sequence[int], rows: Rows, fixed: Rows | None) -> Record | None:
        assert self._store is not None
        freeze = self._arrays.freeze
        # What the same request used since then stays; a moment less, since two clocks are compared.
        before_s = time.time() - (time.monotonic() - node.used_s) - 1e-3
        return self._store.add(prompt, node.start, part, freeze(rows), freeze(fixed or {}), before_s=before_s)

    def _is_in_tree(self, node: Node) -> bool:
        while node.parent is not None:
            if node.parent.children.get(node.tokens[0]) is not node:
                return False
            node = node.parent
        return node is self._root

    def _collect(self) -> None:
        if self._store is not None:
            self._store.collect()

    # Telling.

    def _publish(self) -> None:
        now = time.monotonic()
        self._status = CacheStatus(
            self._ram,
            self._ram_limit,
            0 if self._store is None else self._store.bytes,
            0 if self._store is None else self._store.limit,
            tuple(entries_of(self._root, now)),
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

    def __init__(self, cache: PromptCache, sources: Mapping[str, Source], tokens: int) -> None:
        checkpoints = [fixed for source in sources.values() for fixed in source.checkpoints.values()]
        fixed = sum(array.nbytes for checkpoint in checkpoints for array in checkpoint.values())
        self._cache = cache
        self._whole = sum(source.row_bytes for source in sources.values()) * tokens + fixed
        self._is_long = tokens >= WRITTEN_FROM

    def in_memory(self, size: int) -> bool:
        cache = self._cache
        if self._whole > cache._ram_limit:
            return cache._ram + size <= cache._ram_limit
        return cache._make_room(size)

    def on_disk(self) -> bool:
        store = self._cache._store
        return store is not None and self._is_long and store.has_room_to_wait and self._whole <= store.limit


def _why(node: Node, lacking: Sequence[str]) -> Miss:
    """Why parts of a node's state are not there."""
    others = [slab for part, slab in node.slabs.items() if part not in lacking]
    if any(slab.is_there for slab in others):
        return Miss.PART
    return Miss.EVICTED
