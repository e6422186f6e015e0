"""Colours for code: Pygments reads it once, in slices short enough for the window's thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Any

from PySide6.QtCore import QTimer, Slot
from PySide6.QtGui import QColor, QFont, QSyntaxHighlighter, QTextCharFormat, QTextDocument

SLICE_S = 0.004
WAIT_MS = 20  # between two looks whether a language can be read
MAX_CHARACTERS = 400_000  # beyond, code stays plain

Kind = str  # a key of the palette that the owner gives


@cache
def _kinds() -> list[tuple[Any, Kind]]:
    """Pygments' token types, the finer before the coarser, and the colour that each gets."""
    from pygments.token import Token

    return [
        (Token.Comment, "comment"),
        (Token.Keyword, "keyword"),
        (Token.Operator.Word, "keyword"),
        (Token.Literal.String, "string"),
        (Token.Literal.Number, "number"),
        (Token.Name.Function, "function"),
        (Token.Name.Class, "function"),
        (Token.Name.Decorator, "function"),
        (Token.Name.Builtin, "builtin"),
        (Token.Name.Tag, "keyword"),
        (Token.Name.Attribute, "builtin"),
        (Token.Generic.Inserted, "string"),
        (Token.Generic.Deleted, "number"),
        (Token.Generic.Heading, "keyword"),
    ]


@lru_cache(maxsize=64)
def lexer_for(language: str) -> Any | None:  # Any: Pygments has no types
    """None when Pygments does not know the name."""
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False) if language else None
    except ClassNotFound:
        return None


def spans(language: str, text: str) -> Iterator[tuple[int, int, Kind]]:
    """Start, length and kind of what has a colour, in order. Offsets count Python characters."""
    lexer = lexer_for(language)
    if lexer is None:
        return
    for start, token, value in lexer.get_tokens_unprocessed(text):
        for kind, name in _kinds():
            if token in kind:
                yield start, len(value), name
                break


class _Readers:
    """Pygments and a language's lexer are imported on a thread: on the window's own that takes a tenth of a second."""

    def __init__(self) -> None:
        self._asked: set[str] = set()
        self._there: set[str] = set()

    def has(self, language: str) -> bool:
        """Whether it can be read at once; else it soon can."""
        if language not in self._asked:
            self._asked.add(language)
            threading.Thread(target=self._fetch, args=(language,), name="slipstream-lexer", daemon=True).start()
        return language in self._there

    def _fetch(self, language: str) -> None:
        try:
            _kinds()
            lexer_for(language)
        finally:
            self._there.add(language)


_readers = _Readers()


class Highlighter(QSyntaxHighlighter):
    """Colours a finished document: `start` once; `recolour` when the theme changes."""

    def __init__(self, document: QTextDocument, colours: Mapping[Kind, QColor]) -> None:
        super().__init__(document)
        self._colours = _formats(colours)
        self._lines: dict[int, list[tuple[int, int, Kind]]] = {}  # by block number; offsets in UTF-16 units
        self._language = ""
        self._spans: Iterator[tuple[int, int, Kind]] | None = None
        self._text = ""
        self._line = 0  # where the reading stands
        self._line_start = 0
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._read_on)

    def start(self, language: str, text: str) -> None:
        if len(text) > MAX_CHARACTERS:
            return
        self._text = text
        self._language, self._spans = language, None
        self._lines, self._line, self._line_start = {}, 0, 0
        self._timer.start()

    def recolour(self, colours: Mapping[Kind, QColor]) -> None:
        self._colours = _formats(colours)
        self.rehighlight()

    @property
    def is_reading(self) -> bool:
        return self._timer.isActive()

    @Slot()
    def _read_on(self) -> None:
        if self._spans is None:
            if not _readers.has(self._language):
                self._timer.setInterval(WAIT_MS)
                return
            self._timer.setInterval(0)
            self._spans = spans(self._language, self._text)
        until = time.monotonic() + SLICE_S
        first = self._line
        while time.monotonic() < until:
            span = next(self._spans, None)
            if span is None:
                self._timer.stop()
                self._show(first, self._line + 1)
                return
            self._add(*span)
        self._show(first, self._line)
        # The line that is being read is shown with the next slice.

    def _add(self, start: int, length: int, kind: Kind) -> None:
        """Spread a span over the lines that it covers."""
        end = start + length
        while True:
            line_end = self._text.find("\n", self._line_start)
            line_end = len(self._text) if line_end < 0 else line_end
            if start < line_end and start < end:
                piece = self._text[self._line_start : min(end, line_end)]
                before, inside = piece[: start - self._line_start], piece[start - self._line_start :]
                entry = (_units(before), _units(inside), kind)
                self._lines.setdefault(self._line, []).append(entry)
            if end <= line_end or line_end == len(self._text):
                return
            self._line, self._line_start = self._line + 1, line_end + 1
            start = max(start, self._line_start)

    def _show(self, first: int, last: int) -> None:
        block = self.document().findBlockByNumber(first)
        while block.isValid() and block.blockNumber() < last:
            self.rehighlightBlock(block)
            block = block.next()

    def highlightBlock(self, text: str) -> None:
        for start, length, kind in self._lines.get(self.currentBlock().blockNumber(), ()):
            self.setFormat(start, length, self._colours.get(kind, QTextCharFormat()))


def _units(text: str) -> int:
    """Length as Qt counts it."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def _formats(colours: Mapping[Kind, QColor]) -> dict[Kind, QTextCharFormat]:
    made: dict[Kind, QTextCharFormat] = {}
    for kind, colour in colours.items():
        made[kind] = QTextCharFormat()
        made[kind].setForeground(colour)
        if kind == "comment":
            made[kind].setFontItalic(True)
        if kind == "keyword":
            made[kind].setFontWeight(QFont.Weight.DemiBold)
    return made
