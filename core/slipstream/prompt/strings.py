"""Strings as models write them, turned into the inside of JSON strings as they come; and the families' dialects."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from slipstream.prompt.tape import LOOKAHEAD, Status, Tape, marker_at, space_end


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a family writes in place of strict JSON."""

    quotes: tuple[str, ...] = ('"', "'")  # the longer before those they begin with
    raw: str = ""  # of those, the one between which a backslash is a backslash
    colon: str = ":"
    parens: bool = False  # f(a=1) is an object, (1, 2) an array
    bare_keys: bool = False
    spaces: bool = False  # a bare word may have spaces in it


JSON = Dialect()
PYTHON = Dialect(quotes=('"""', "'''", '"', "'"), colon="=:", parens=True, bare_keys=True)
GEMMA = Dialect(quotes=('<|"|>', '"', "'"), raw='<|"|>', bare_keys=True, spaces=True)
FUNCTION_GEMMA = Dialect(quotes=("<escape>", '"', "'"), raw="<escape>", bare_keys=True, spaces=True)

_hex4 = re.compile(r"[0-9a-fA-F]{4}").match
_half_unicode = re.compile(r"\\u(?:[0-9a-fA-F]{0,3}|[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?)").fullmatch
_surrogates = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}").match
_half_hex = re.compile(r"\\x[0-9a-fA-F]?").fullmatch
_hex2 = re.compile(r"\\x([0-9a-fA-F]{2})").match


def quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def escape(text: str) -> str:
    return quote(text)[1:-1]


def quote_at(tape: Tape, dialect: Dialect) -> str | None:
    """The quote that begins a string here; "" when that is not certain yet; None when there is none."""
    found = marker_at(tape.text, tape.pos, dialect.quotes, tape.ended)
    if found and not tape.ended and found * 3 in dialect.quotes:
        rest = tape.text[tape.pos : tape.pos + 3]
        if rest in (found, found * 2):
            return ""  # two more may come
    return found


class StringReader:
    """Reads one string from behind its opening quote.

    `closes` is asked at each quote of one character whether it ends the string (None: not certain yet), as models
    forget to escape those inside. `stops` are markers that end it early, at the text's end or before another.
    """

    def __init__(
        self, quote: str, dialect: Dialect, stops: tuple[str, ...], closes: Callable[[Tape], bool | None]
    ) -> None:
        self._quote = quote
        self._is_raw = quote == dialect.raw
        self._has_hex = dialect.parens
        self._stops = stops
        self._closes = closes
        self._search = _special(quote[0] + ("<" if stops else ""))

    def read(self, tape: Tape, put: Callable[[str], None]) -> Status:
        """DONE behind the closing quote, MORE, or STUCK before a marker that ends the string."""
        text = tape.text
        while True:
            pos = tape.pos
            found = self._search(text, pos)
            end = found.start() if found else len(text)
            if end > pos:
                put(text[pos:end])
                tape.pos = pos = end
            if not found:
                return Status.MORE
            status = self._read_special(tape, text[pos], put)
            if status is not None:
                return status

    def _read_special(self, tape: Tape, char: str, put: Callable[[str], None]) -> Status | None:
        """Reads a character that needs a decision. None: it belongs to the string."""
        text, pos = tape.text, tape.pos
        found = marker_at(text, pos, (self._quote,), tape.ended)
        if found == "":
            return Status.MORE
        if found:
            closes = len(found) > 1 or self._closes(tape)
            if closes is None:
                return Status.MORE
            if closes:
                tape.pos += len(found)
                return Status.DONE
        elif char == "\\" and not self._is_raw:
            written = self._unescape(tape)
            if written is not None:
                put(written)
            return Status.MORE if written is None else None
        elif char == "<":
            stops = self._stops_here(tape)
            if stops is not False:
                return Status.MORE if stops is None else Status.STUCK
        put(escape(char))
        tape.pos += 1
        return None

    def _stops_here(self, tape: Tape) -> bool | None:
        text, pos = tape.text, tape.pos
        found = marker_at(text, pos, self._stops, tape.ended)
        if not found:
            return None if found == "" else False
        at = space_end(text, pos + len(found))
        if at >= len(text):
            return True if tape.ended else (None if at - pos < LOOKAHEAD else False)
        following = marker_at(text, at, self._stops, tape.ended)
        return None if following == "" else following is not None

    def _unescape(self, tape: Tape) -> str | None:
        """Reads an escape and returns it as JSON has it. None: it is not all there."""
        text, pos = tape.text, tape.pos
        char = text[pos + 1 : pos + 2]
        if not tape.ended:
            is_half = not char or (char == "u" and _half_unicode(text, pos))
            if is_half or (self._has_hex and _half_hex(text, pos)):
                return None
        length, written = 2, "\\" + char
        if not char:  # the text ended behind the backslash
            length, written = 1, ""
        elif char == "'":
            written = char
        elif char == "u" and _surrogates(text, pos):
            length = 12
            written = text[pos : pos + length]
        elif char == "u" and _hex4(text, pos + 2):
            length = 6
            is_half_a_pair = text[pos + 2] in "dD" and text[pos + 3] in "89abcdefABCDEF"
            written = "\\ufffd" if is_half_a_pair else text[pos : pos + length]  # half a pair is no UTF-8
        elif self._has_hex and (found := _hex2(text, pos)):
            length, written = 4, f"\\u00{found.group(1)}"
        elif char not in '"\\/bfnrt':  # \d in a pattern: the backslash is meant
            length, written = 1, "\\\\"
        tape.pos += length
        return written


@cache
def _special(marks: str) -> Callable[[str, int], re.Match[str] | None]:
    """Finds the next character of a string that needs a decision; all others are passed on."""
    return re.compile(r'[\x00-\x1f"\\' + re.escape(marks) + "]").search
