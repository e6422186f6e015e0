"""The kept prompts in memory, within a number of bytes: the least recently used go first, ends before beginnings.

Knows the tree and its sizes; not what is on disk, nor what a request needs.
"""

from __future__ import annotations

import time
from collections import deque

from slipstream.store.prefixes import Node, Rows, Slab, nodes

GONE_TOKENS = 250_000  # remembered though their state is gone (some 40 bytes each): they say why nothing was reused
NODE_TOKENS = 64  # what a node itself takes, in tokens: many short prompts are many nodes
CHECKPOINT_EVERY = 4096  # tokens between the older checkpoints of one prompt
LATEST_CHECKPOINTS = 4  # of one prompt that are kept however close they stand


class Shelf:
    """Not locked: its owner does that."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.bytes = 0
        self.root = Node(None, (), 0)
        self._request = 0
        self._now_s = time.monotonic()
        self._victims: deque[Node] | None = None

    def begin(self) -> None:
        """A request: what it uses from now on is younger than all else, and is not evicted for it."""
        self._request += 1
        self._now_s = time.monotonic()
        self._victims = None

    def use(self, node: Node) -> None:
        node.used, node.used_s = self._request, self._now_s

    def put(self, slab: Slab, rows: Rows | None, fixed: Rows | None) -> None:
        """What a slab of the tree holds in memory from now on."""
        self.bytes -= slab.bytes
        slab.rows, slab.fixed = rows, fixed
        self.bytes += slab.bytes

    def make_room(self, size: int, *, anew: bool = False) -> bool:
        """Evict until so many bytes fit, but nothing of the latest request. Whether they do.

        `anew`: others have used the tree since this request began.
        """
        if anew or self._victims is None:
            old = [node for node in nodes(self.root) if node.used < self._request and node.bytes]
            self._victims = deque(sorted(old, key=_age))
        while self.bytes + size > self.limit and self._victims:
            for slab in self._victims.popleft().slabs.values():
                self.put(slab, None, None)
        return self.bytes + size <= self.limit

    def empty(self) -> None:
        """All of it leaves the memory; the tree stays, and says what is on disk."""
        self.begin()
        self.make_room(self.limit)

    def clear(self) -> None:
        """The tree too."""
        self.root = Node(None, (), 0)
        self.bytes = 0
        self._victims = None

    def holds(self, node: Node) -> bool:
        """Whether a node is still part of the tree."""
        while node.parent is not None:
            if node.parent.children.get(node.tokens[0]) is not node:
                return False
            node = node.parent
        return node is self.root

    def thin(self, last: Node) -> None:
        """Let go of checkpoints that stand close together on the way to a node, but for the first and the latest."""
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
            for slab in node.slabs.values():
                self.put(slab, slab.rows, None)

    def prune(self) -> None:
        """Forget the oldest ends of which nothing is left, once they are many."""
        gone = [node for node in nodes(self.root) if not node.is_there]
        excess = sum(NODE_TOKENS + len(node.tokens) for node in gone) - GONE_TOKENS
        for node in sorted(gone, key=_age):
            if excess <= 0:
                return
            if not node.children:
                node.remove()
                excess -= NODE_TOKENS + len(node.tokens)


def _age(node: Node) -> tuple[int, int]:
    """Oldest first, ends before beginnings."""
    return node.used, -node.end
