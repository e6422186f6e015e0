"""An answer's Markdown in blocks, as it comes: what is finished stays as it is, only the last block may still change.

Knows nothing of Qt. A block of prose is Markdown again; code in fences is a block of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

# Characters from which on a paragraph or list is cut at a line's end: the tail is laid out anew with each piece.
LONG_TAIL = 3000


@dataclass(frozen=True, slots=True)
class Prose:
    text: str


@dataclass(frozen=True, slots=True)
class Code:
    language: str
    text: str


Block = Prose | Code

_FENCE = re.compile(r"(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)")
_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_MAX_INDENT = 3  # of a fence; more only inside a list


@dataclass(slots=True)
class _Open:
    """The block that may still grow."""

    lines: list[str] = field(default_factory=list[str])  # with their line ends
    length: int = 0
    fence: str = ""  # the opening fence: it is code
    indent: int = 0
    language: str = ""
    blanks: list[str] = field(default_factory=list[str])  # seen inside a list, and perhaps its end

    @property
    def is_list(self) -> bool:
        return bool(self.lines) and bool(_ITEM.match(self.lines[0]))

    @property
    def is_table(self) -> bool:
        return len(self.lines) > 1 and bool(re.fullmatch(r"[ |:\-\t]*\|[ |:\-\t]*-?[ |:\-\t]*\n", self.lines[1]))

    def add(self, line: str) -> None:
        self.lines.append(line)
        self.length += len(line)

    def block(self) -> Block:
        text = "".join(self.lines)
        return Code(self.language, text.removesuffix("\n")) if self.fence else Prose(text.strip("\n"))


class Splitter:
    """Feed it the text in any pieces; the blocks are the same for all."""

    def __init__(self) -> None:
        self._open = _Open()
        self._line = ""  # not ended yet

    def feed(self, text: str) -> list[Block]:
        """The blocks that are finished now."""
        done: list[Block] = []
        lines = (self._line + text).split("\n")
        self._line = lines.pop()
        for line in lines:
            self._take(line + "\n", done)
        return done

    def finish(self) -> list[Block]:
        """The last blocks: an open fence ends here."""
        done: list[Block] = []
        if self._line:
            self._take(self._line, done)
            self._line = ""
        self._close(done)
        return done

    @property
    def tail(self) -> Block | None:
        """What is there of the unfinished block."""
        state, line = self._open, self._line
        if state.fence:
            shown = "" if self._may_close(line) else _unindent(line, state.indent)
            return Code(state.language, "".join(state.lines) + shown if shown else state.block().text)
        if self._fence(line) is not None or (line.strip() and set(line.strip()) in ({"`"}, {"~"})):
            line = ""  # a fence that is being written is not shown as text
        text = ("".join(state.lines) + "".join(state.blanks) + line).strip("\n")
        return Prose(text) if text.strip() else None

    def _take(self, line: str, done: list[Block]) -> None:
        state = self._open
        if state.fence:
            if self._closes(line):
                done.append(state.block())
                self._open = _Open()
            else:
                state.add(_unindent(line, state.indent))
            return
        if (opened := self._fence(line)) is not None:
            self._close(done)
            self._open = opened
            return
        if not line.strip() and state.is_list:
            state.blanks.append(line)
        elif not line.strip() or self._is_new(line):
            self._close(done)
        else:
            for blank in state.blanks:
                state.add(blank)
            state.blanks.clear()
        if line.strip():
            self._open.add(line)

    def _is_new(self, line: str) -> bool:
        """Whether a line of text begins another block."""
        state, is_item = self._open, bool(_ITEM.match(line))
        if state.blanks and not is_item and not line.startswith(("  ", "\t")):
            return True  # the list is over
        return state.length > LONG_TAIL and not state.is_table and (is_item or not state.is_list)

    def _close(self, done: list[Block]) -> None:
        if self._open.fence or any(line.strip() for line in self._open.lines):
            done.append(self._open.block())
        self._open = _Open()

    def _fence(self, line: str) -> _Open | None:
        """The code block that `line` opens."""
        found = _FENCE.match(line)
        if found is None or ("`" in found["info"] and found["fence"][0] == "`"):
            return None
        if len(found["indent"]) > _MAX_INDENT and not self._open.is_list:
            return None
        language = found["info"].strip().split(" ")[0].strip("{}.").lower()
        return _Open(fence=found["fence"], indent=len(found["indent"]), language=language)

    def _closes(self, line: str) -> bool:
        mark = line.strip()
        fence = self._open.fence
        return len(mark) >= len(fence) and set(mark) == {fence[0]} and _indent_of(line) <= self._open.indent + 3

    def _may_close(self, line: str) -> bool:
        """Whether an unfinished line may become the closing fence: it is not shown then."""
        mark = line.strip()
        return bool(mark) and set(mark) == {self._open.fence[0]}


def split(text: str) -> list[Block]:
    splitter = Splitter()
    return splitter.feed(text) + splitter.finish()


def _indent_of(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _unindent(line: str, count: int) -> str:
    return line[min(count, _indent_of(line)) :]


_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
_IMAGE = re.compile(r"!(?=\[)")


def without_images(text: str) -> str:
    """Images become links: showing an answer must ask nobody for anything."""
    out: list[str] = []
    at = 0
    for code in _CODE_SPAN.finditer(text):
        out += [_IMAGE.sub("", text[at : code.start()]), code.group()]
        at = code.end()
    return "".join(out) + _IMAGE.sub("", text[at:])
