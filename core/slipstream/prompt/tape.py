"""Text that arrives in pieces, and finding markers in it. Knows nothing of what the markers mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import TypeVar

Out = TypeVar("Out")

LOOKAHEAD = 256  # characters of white space looked past before deciding without them


class Status(Enum):
    """What a reader says after it has read as far as it could."""

    MORE = auto()  # undecided: needs more text
    DONE = auto()  # read to its end; the tape stands behind it
    FAILED = auto()  # not what it seemed: the text since the mark belongs to someone else
    STUCK = auto()  # the text does not go on as it should, or has ended
    KEY = auto()  # the value of `key` comes next, and the caller reads it


class Tape:
    """Text that waits to be read at `pos`, and a record of what was read since the mark.

    Readers leave undecided text unread, and only ever a little of it, so the work for each piece is constant.
    """

    def __init__(self) -> None:
        self.text = ""
        self.pos = 0
        self.ended = False  # nothing follows
        self.cut = False  # it ended in the middle: max_tokens, a stop string or a cancel
        self._read: list[str] = []
        self._from = 0  # where in `text` the part of the record not yet in `_read` begins

    def feed(self, text: str) -> None:
        if self.pos:
            if self.pos > self._from:
                self._read.append(self.text[self._from : self.pos])
            self.text = self.text[self.pos :] + text
            self.pos = self._from = 0
        else:
            self.text += text

    def end(self, cut: bool) -> None:
        self.ended = True
        self.cut = cut

    @property
    def is_empty(self) -> bool:
        return self.pos >= len(self.text)

    def mark(self) -> None:
        self._read.clear()
        self._from = self.pos

    def recorded(self) -> str:
        """The exact text between the mark and here."""
        return "".join(self._read) + self.text[self._from : self.pos]

    def rewind(self) -> None:
        """Back to the mark."""
        self.unread(self.recorded())

    def unread(self, text: str) -> None:
        """Puts back what was read last, and forgets the record."""
        self.text = text + self.text[self.pos :]
        self.pos = 0
        self.mark()

    def skip_space(self) -> None:
        self.pos = space_end(self.text, self.pos)


def until_decided(step: Callable[[Tape, Out], Status | None], tape: Tape, out: Out) -> Status:
    """Step after step; one answers None when the next may follow at once."""
    while (status := step(tape, out)) is None:
        pass
    return status


_space = re.compile(r"\s*").match


def space_end(text: str, pos: int) -> int:
    found = _space(text, pos)
    return found.end() if found else pos


def marker_at(text: str, pos: int, markers: Iterable[str], ended: bool = False) -> str | None:
    """The marker that stands at `pos`; "" when the text ends before that is certain; None when there is none."""
    possible = None
    rest = len(text) - pos
    for marker in markers:
        if text.startswith(marker, pos):
            return marker
        if not ended and rest < len(marker) and marker.startswith(text[pos:]):
            possible = ""
    return possible


def closing_at(tape: Tape, pos: int, markers: tuple[str, ...]) -> str | None:
    """As `marker_at`; and what there is of a marker when the text has ended in the middle of it."""
    found = marker_at(tape.text, pos, markers, tape.ended)
    rest = tape.text[pos:]
    if found is None and rest and tape.ended and any(marker.startswith(rest) for marker in markers):
        return rest
    return found


def past_end(tape: Tape, pos: int, markers: tuple[str, ...]) -> tuple[int, bool] | None:
    """Where the text goes on behind white space and, where one stands there (True), an end marker.

    None: that takes more text.
    """
    pos = space_end(tape.text, pos)
    if pos >= len(tape.text) and not tape.ended and pos - tape.pos <= LOOKAHEAD:
        return None
    marker = closing_at(tape, pos, markers)
    return None if marker == "" else (pos + len(marker or ""), marker is not None)


class Markers:
    """Finds the first of several markers, and how much of a text's end may be the beginning of one."""

    def __init__(self, markers: Iterable[str]) -> None:
        self._markers = tuple(markers)
        pattern = "|".join(re.escape(marker) for marker in self._markers)
        self._search = re.compile(pattern or r"(?!)").search
        first = "".join({marker[0] for marker in self._markers})
        self._search_first = re.compile(f"[{re.escape(first)}]" if first else r"(?!)").search
        self._longest = max((len(marker) for marker in self._markers), default=1)

    def find(self, text: str, pos: int) -> re.Match[str] | None:
        return self._search(text, pos)

    def none_at(self, text: str, pos: int, ended: bool) -> bool:
        return marker_at(text, pos, self._markers, ended) is None

    def tail(self, text: str, pos: int) -> int:
        """Where the text's end could be the beginning of a marker; its length when it could not."""
        start = max(pos, len(text) - self._longest + 1)
        while found := self._search_first(text, start):
            if marker_at(text, found.start(), self._markers) is not None:
                return found.start()
            start = found.end()
        return len(text)
