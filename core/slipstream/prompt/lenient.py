"""One JSON value as a model writes it, turned into strict JSON as it comes. Knows nothing of tools.

Valid JSON passes unchanged, white space included. Repaired: invalid escapes, raw control characters, quotes inside
strings, single quotes, bare keys and words, Python's literals, missing and surplus commas, missing closing brackets.
What has been written is never taken back.
"""

from __future__ import annotations

import json
import re
from enum import Enum, auto

from slipstream.prompt.strings import JSON, Dialect, StringReader, quote, quote_at
from slipstream.prompt.tape import LOOKAHEAD, Status, Tape, marker_at, space_end

MAX_DEPTH = 100  # Python's own json gives up at some 1000
MAX_DIGITS = 300  # and refuses integers of more than 4300 digits


class _State(Enum):
    VALUE = auto()
    KEY = auto()
    COLON = auto()
    AFTER = auto()  # a value: a comma or a closing bracket comes
    STRING = auto()
    BARE = auto()
    DONE = auto()


_OPENERS = {"{": "}}", "[": "]]"}  # the closing bracket as the model writes it, then as JSON has it
_CLOSERS = "}])"
_bare_key = re.compile(r"[\w$.-]+").match
_bare_start = re.compile(r"[\w.+\-/\\$#@~*%^&|?!]").match
_bare_end = re.compile(r"[,}\]\r\n<\s]").search
_bare_end_spaces = re.compile(r"[,}\]\r\n<]").search
_bare_end_parens = re.compile(r"[,}\])\r\n<\s]").search
_number = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?").fullmatch
_numberish = re.compile(
    r"[+-]?(?:0[xXoObB][\da-fA-F_]+|[\d_]+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)"
).fullmatch

_LITERALS = {
    "true": "true",
    "false": "false",
    "null": "null",
    "True": "true",
    "False": "false",
    "None": "null",
    "NaN": "null",
    "undefined": "null",
}


def number(token: str) -> str | None:
    """A number as JSON has it, or None."""
    if len(token) > MAX_DIGITS:
        return None
    if _number(token):
        return token
    if not _numberish(token):
        return None
    for read in (lambda: int(token, 0), lambda: int(token), lambda: float(token)):
        try:
            value = read()
            return json.dumps(value, allow_nan=False)
        except ValueError:
            pass
    return None


def scalar(token: str) -> str:
    """A bare word as JSON: a literal, a number, or else a string."""
    return _LITERALS.get(token) or number(token) or quote(token)


class JsonStream:
    """Reads one value off a tape; `take` gives the strict JSON so far, `close` writes what is missing at its end.

    `within` is the bracket that will close what the value stands in, `stops` the markers that end it early.
    A pausing stream reads an object and returns KEY before each of its values, which the caller reads.
    """

    def __init__(
        self, dialect: Dialect = JSON, *, within: str = "", stops: tuple[str, ...] = (), pausing: bool = False
    ) -> None:
        self.key = ""
        self.has_begun = False
        self._dialect = dialect
        self._within = within
        self._stops = stops
        self._pausing = pausing
        self._state = _State.VALUE
        self._stack: list[str] = []
        self._out: list[str] = []
        self._gap = ""  # comma, key and white space that are written once a value follows
        self._word: list[str] = []  # the key or bare word being read
        self._is_key = False
        self._string: StringReader | None = None
        self.has_bare_keys = dialect.bare_keys
        if dialect.parens:
            self._bare_end = _bare_end_parens
        else:
            self._bare_end = _bare_end_spaces if dialect.spaces else _bare_end

    def take(self) -> str:
        out = "".join(self._out)
        self._out.clear()
        return out

    def take_gap(self) -> str:
        """What stands before the value that the caller reads: the comma, the key and the colon."""
        gap, self._gap = self._gap, ""
        return gap

    def read(self, tape: Tape) -> Status:
        """DONE behind the value, MORE, KEY, or STUCK where it does not go on (or has ended: then `close` it)."""
        while self._state is not _State.DONE:
            if self._string is not None:
                status = self._read_string(self._string, tape)
            elif self._state is _State.BARE:
                status = self._read_bare(tape)
            else:
                status = self._read_structure(tape)
            if status is not None:
                return Status.STUCK if status is Status.MORE and tape.ended else status
        return Status.DONE

    def close(self) -> None:
        if self._string is not None and not self._is_key:
            self._out.append('"')
        elif self._state is _State.BARE:
            self._begin()
            self._out.append(scalar("".join(self._word).strip()))
        self._gap = ""
        self._string = None
        self._out.extend(closer[1] for closer in reversed(self._stack))
        self._stack.clear()
        self._state = _State.DONE

    # Structure

    def _read_structure(self, tape: Tape) -> Status | None:
        text, pos = tape.text, tape.pos
        end = space_end(text, pos)
        if end > pos:
            if self._state is _State.AFTER:
                self._out.append(_json_space(text[pos:end]))
            else:
                self._gap += _json_space(text[pos:end])
            tape.pos = pos = end
        if pos >= len(text) or marker_at(text, pos, self._stops, tape.ended) == "":
            return Status.MORE
        match self._state:
            case _State.VALUE:
                return self._read_value(tape, text[pos])
            case _State.KEY:
                return self._read_key(tape, text[pos])
            case _State.COLON:
                return self._read_colon(tape, text[pos])
            case _:
                return self._read_after(tape, text[pos])

    def _read_value(self, tape: Tape, char: str) -> Status | None:
        if char in _OPENERS or (char == "(" and self._dialect.parens):
            return self._read_opener(tape, char)
        if not self._pausing:
            if self._stack and char in ",}])":
                return self._read_missing(tape, char)
            if (found := quote_at(tape, self._dialect)) is not None:
                return self._begin_string(tape, found, is_key=False)
            if _bare_start(char):
                self.has_begun = True
                self._word = []
                self._state = _State.BARE
                return None
        return Status.STUCK

    def _read_opener(self, tape: Tape, char: str) -> Status | None:
        if len(self._stack) >= MAX_DEPTH or (self._pausing and char == "["):
            return Status.STUCK
        closer = _OPENERS.get(char) or (")}" if self._pausing else ")]")
        self._begin()
        self._out.append("{" if closer[1] == "}" else "[")
        self._stack.append(closer)
        self._state = _State.KEY if closer[1] == "}" else _State.VALUE
        tape.pos += 1
        return None

    def _read_missing(self, tape: Tape, char: str) -> Status | None:
        """No value where one should be: [1, ] or {"a": }."""
        if self._stack[-1][1] == "}":
            self._begin()
            self._out.append("null")
            self._state = _State.AFTER
        elif char == ",":
            tape.pos += 1
        else:
            return self._read_closer(tape, char)
        return None

    def _read_key(self, tape: Tape, char: str) -> Status | None:
        if char == ",":
            tape.pos += 1
            return None
        if char in _CLOSERS:
            return self._read_closer(tape, char)
        if (at_quote := quote_at(tape, self._dialect)) is not None:
            return self._begin_string(tape, at_quote, is_key=True)
        if found := _bare_key(tape.text, tape.pos):
            if found.end() == len(tape.text):
                return Status.MORE if found.end() - found.start() <= LOOKAHEAD else Status.STUCK
            self.has_bare_keys = True
            self._end_key(quote(found.group()))
            tape.pos = found.end()
            return None
        return Status.STUCK

    def _end_key(self, key: str) -> None:
        if len(self._stack) == 1:
            self.key = json.loads(key)
        self._gap += key
        self._state = _State.COLON

    def _read_colon(self, tape: Tape, char: str) -> Status | None:
        if char not in self._dialect.colon:
            return Status.STUCK
        tape.pos += 1
        self._gap += ":" if char == ":" else ": "
        if self._pausing and len(self._stack) == 1:
            self._state = _State.AFTER
            return Status.KEY
        self._state = _State.VALUE
        return None

    def _read_after(self, tape: Tape, char: str) -> Status | None:
        in_object = self._stack[-1][1] == "}"
        if char in _CLOSERS:
            return self._read_closer(tape, char)
        if char != ",":
            at_quote = quote_at(tape, self._dialect)
            if at_quote == "":
                return Status.MORE
            fits = at_quote or _bare_key(char) or (char in _OPENERS and not in_object)
            if not fits:
                return Status.STUCK
        else:
            tape.pos += 1
        self._gap = ","
        self._state = _State.KEY if in_object else _State.VALUE
        return None

    def _read_closer(self, tape: Tape, char: str) -> Status | None:
        if all(closer[0] != char for closer in self._stack):
            return Status.STUCK
        self._begin(self._gap.replace(",", "", 1))
        while True:
            closer = self._stack.pop()
            self._out.append(closer[1])
            if closer[0] == char:
                break
        tape.pos += 1
        self._end_value()
        return None

    def _begin(self, gap: str | None = None) -> None:
        gap = self._gap if gap is None else gap
        if gap:
            self._out.append(gap)
        self._gap = ""
        self.has_begun = True

    def _end_value(self) -> None:
        self._state = _State.AFTER if self._stack else _State.DONE

    # Bare words

    def _read_bare(self, tape: Tape) -> Status | None:
        found = self._bare_end(tape.text, tape.pos)
        end = found.start() if found else len(tape.text)
        self._word.append(tape.text[tape.pos : end])
        tape.pos = end
        if not found and not tape.ended:
            return Status.MORE
        word = "".join(self._word)
        token = word.rstrip()
        self._begin()
        self._out.append(scalar(token) + _json_space(word[len(token) :]))
        self._end_value()
        return None

    # Strings

    def _begin_string(self, tape: Tape, found: str, is_key: bool) -> Status | None:
        if not found:
            return Status.MORE
        tape.pos += len(found)
        self._string = StringReader(found, self._dialect, self._stops, self._closes)
        self._is_key = is_key
        self._state = _State.STRING
        if is_key:
            self._word = []
        else:
            self._begin()
            self._out.append('"')
        return None

    def _read_string(self, string: StringReader, tape: Tape) -> Status | None:
        status = string.read(tape, self._word.append if self._is_key else self._out.append)
        if status is not Status.DONE:
            return status
        self._string = None
        if self._is_key:
            self._end_key('"' + "".join(self._word) + '"')
        else:
            self._out.append('"')
            self._end_value()
        return None

    def _closes(self, tape: Tape) -> bool | None:
        """Whether the quote that stands here ends the string. None: undecided. In valid JSON it always does."""
        around = self._stack[-1][0] if self._stack else self._within
        text = tape.text
        after = tape.pos + 1
        at = space_end(text, after)
        has_comma = text[at : at + 1] == "," and not self._is_key
        if not around or (has_comma and self._stack and self._stack[-1][1] == "]"):
            return True
        if has_comma:
            at = space_end(text, at + 1)
        if at >= len(text):
            return True if tape.ended or at - after > LOOKAHEAD else None
        char = text[at]
        if self._is_key:
            return char in self._dialect.colon
        if has_comma:  # in an object, where a key must follow
            return self._may_be_key(char, around)
        found = marker_at(text, at, self._stops, tape.ended)
        if found is not None:
            return True if found else None
        is_closed = char == around or any(char == closer[0] for closer in self._stack)
        return is_closed or (char in "\"'" and "\n" in text[after:at])  # a forgotten comma

    def _may_be_key(self, char: str, around: str) -> bool:
        if char == "<":
            return bool(self._dialect.raw or self._stops)
        return char in "\"'}," or char == around or (self.has_bare_keys and _bare_key(char) is not None)


def _json_space(space: str) -> str:
    """JSON knows four kinds of white space; Unicode has more."""
    return "".join(char if char in " \t\r\n" else " " for char in space)


def repair(text: str) -> str | None:
    """A whole text as strict JSON, or None when it is no value, or more than one."""
    tape = Tape()
    tape.feed(text)
    tape.end(cut=False)
    stream = JsonStream()
    status = stream.read(tape)
    if status is Status.STUCK:
        if not stream.has_begun or not tape.is_empty:
            return None
        stream.close()
    tape.skip_space()
    return stream.take() if tape.is_empty else None
