"""What the prefix cache takes and gives: parts of a request's state, and what of a prompt was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from slipstream.events import Shortfall
from slipstream.store.prefixes import Node, Rows
from slipstream.store.prompt_file import Stored
from slipstream.store.prompts import Record


class Arrays(Protocol):
    """What the cache has done to arrays. On the thread that owns them."""

    def cut(self, rows: Rows, start: int, stop: int) -> Rows:
        """Some tokens of rows, in arrays of their own: the whole may be let go."""
        ...

    def freeze(self, arrays: Rows) -> Mapping[str, Stored]:
        """The bytes, without copying them."""
        ...

    def thaw(self, arrays: Mapping[str, Stored]) -> Rows: ...


class Source(Protocol):
    """One part of a request's state, to be kept."""

    @property
    def row_bytes(self) -> int:
        """For each token."""
        ...

    @property
    def checkpoints(self) -> Mapping[int, Rows]:
        """State that can only be kept whole, by the number of tokens it was taken at."""
        ...

    def rows(self, start: int, stop: int) -> Rows:
        """The state of some tokens, in arrays of their own."""
        ...


@dataclass(slots=True)
class Piece:
    """Part of what was found: rows in memory, or the file to read them from."""

    start: int
    stop: int
    node: Node
    span: tuple[int, int]  # of the node, when it was found
    rows: dict[str, Rows]
    records: dict[str, Record]


@dataclass(slots=True)
class Found:
    """How much of a prompt need not be computed. `PromptCache.fetch` completes it, and may shorten it."""

    prompt: Sequence[int]
    needs: Mapping[str, bool]
    tokens: int
    matched: int  # tokens that some kept prompt begins with as well, whether or not their state is there
    shortfall: Shortfall | None  # None: nothing that could be reused was missing
    pieces: list[Piece]
    fixed: dict[str, Rows | Record] = field(default_factory=dict)

    def rows_of(self, part: str) -> list[Rows]:
        """One after the other, `tokens` in sum. After `fetch`."""
        return [piece.rows[part] for piece in self.pieces]

    def fixed_of(self, part: str) -> Rows:
        found = self.fixed.get(part, {})
        assert not isinstance(found, Record)
        return found
