"""The tree of kept prompts: each node a stretch of tokens, what several prompts begin with stored once.

Knows tokens and which state is where; not what the state is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from slipstream.store.prompts import Record, State

Rows = Mapping[str, Any]  # arrays; Any: MLX's in the engine, whatever has `nbytes` in tests
Cut = Callable[[Rows, int, int], Rows]  # some tokens of rows, in arrays of their own


@dataclass(slots=True)
class Slab:
    """One part of the state (the target's, a drafter's) over one node's tokens: in memory, on disk, or both."""

    rows: Rows | None = None
    fixed: Rows | None = None  # the part that can only be kept whole, as it was at the node's end
    record: Record | None = None

    @property
    def bytes(self) -> int:
        """In memory."""
        return sum(array.nbytes for group in (self.rows, self.fixed) if group for array in group.values())

    @property
    def is_in_memory(self) -> bool:
        return self.rows is not None

    @property
    def is_on_disk(self) -> bool:
        return self.record is not None and self.record.state is State.READY

    @property
    def is_there(self) -> bool:
        return self.is_in_memory or self.is_on_disk

    def has_fixed(self, end: int) -> bool:
        if self.is_in_memory and self.fixed is not None:
            return True
        record = self.record
        return self.is_on_disk and record is not None and record.has_fixed and record.end == end


@dataclass(slots=True, eq=False)
class Node:
    parent: Node | None
    tokens: tuple[int, ...]
    start: int
    children: dict[int, Node] = field(default_factory=dict)  # by their first token
    slabs: dict[str, Slab] = field(default_factory=dict)  # by part
    used: int = 0  # number of the latest request that passed here
    used_s: float = 0.0

    @property
    def end(self) -> int:
        return self.start + len(self.tokens)

    @property
    def bytes(self) -> int:
        """In memory."""
        return sum(slab.bytes for slab in self.slabs.values())

    @property
    def is_there(self) -> bool:
        return any(slab.is_there for slab in self.slabs.values())

    def prompt(self) -> list[int]:
        """All tokens from the root to this node's end."""
        stretches: list[tuple[int, ...]] = []
        node: Node | None = self
        while node is not None:
            stretches.append(node.tokens)
            node = node.parent
        return [token for stretch in reversed(stretches) for token in stretch]

    def add_child(self, tokens: Sequence[int]) -> Node:
        child = Node(self, tuple(tokens), self.end)
        self.children[child.tokens[0]] = child
        return child

    def remove(self) -> None:
        assert self.parent is not None
        del self.parent.children[self.tokens[0]]

    def split(self, at: int, cut: Cut) -> Node:
        """Part this node at a position inside it. It keeps its end; the new node before it is returned."""
        count = at - self.start
        assert 0 < count < len(self.tokens)
        assert self.parent is not None
        first = Node(self.parent, self.tokens[:count], self.start, used=self.used, used_s=self.used_s)
        first.parent.children[first.tokens[0]] = first  # type: ignore[union-attr]
        first.children[self.tokens[count]] = self
        for part, slab in self.slabs.items():
            rows = None
            if slab.rows is not None:
                rows, slab.rows = cut(slab.rows, 0, count), cut(slab.rows, count, len(self.tokens))
            first.slabs[part] = Slab(rows, None, slab.record)
        self.parent, self.tokens, self.start = first, self.tokens[count:], at
        return first


def common(first: Sequence[int], second: Sequence[int]) -> int:
    """How many tokens both begin with."""
    count = min(len(first), len(second))
    if first[:count] == second[:count]:
        return count
    return next(index for index in range(count) if first[index] != second[index])


def walk(root: Node, tokens: Sequence[int]) -> list[tuple[Node, int]]:
    """The nodes that a prompt passes, and how many of each node's tokens it has; only the last may be incomplete."""
    tokens = tuple(tokens)
    path: list[tuple[Node, int]] = []
    node, at = root, 0
    while at < len(tokens) and (child := node.children.get(tokens[at])) is not None:
        count = common(child.tokens, tokens[at : at + len(child.tokens)])
        path.append((child, count))
        at += count
        if count < len(child.tokens):
            break
        node = child
    return path


def nodes(root: Node) -> Iterator[Node]:
    """All but the root, parents before their children."""
    waiting = list(root.children.values())
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(node.children.values())


def reach(root: Node, tokens: Sequence[int], at: int, cut: Cut) -> Node:
    """The node that ends at a position of a prompt, made where there is none."""
    node = root
    while node.end < at:
        child = node.children.get(tokens[node.end])
        if child is None:
            return node.add_child(tokens[node.end : at])
        count = common(child.tokens, tuple(tokens[node.end : at]))
        node = child if count == len(child.tokens) else child.split(child.start + count, cut)
    return node
