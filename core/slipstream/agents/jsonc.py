"""Changes single keys in JSON text and leaves every other character alone: order, spacing, numbers and comments."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from slipstream.agents.splice import spliced

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

MAX_DEPTH = 100
_BLANK = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_SCALAR = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"|-?\d[\d.eE+-]*|true|false|null')


class JsonError(ValueError):
    """Not JSON. The message names the line."""


@dataclass(slots=True)
class _Node:
    """A value and where its text is; `items` for an array, `members` for an object."""

    start: int
    end: int = 0
    scalar: Json = None
    items: list[_Node] | None = None
    members: list[_Member] | None = None

    @property
    def value(self) -> Json:
        if self.members is not None:
            return {member.key: member.node.value for member in self.members}
        if self.items is not None:
            return [item.value for item in self.items]
        return self.scalar


@dataclass(slots=True)
class _Member:
    key: str
    start: int
    node: _Node = field(default_factory=lambda: _Node(0))
    comma: int | None = None  # of the comma behind it


class _Reader:
    def __init__(self, text: str, comments: bool) -> None:
        self._text, self._comments, self._at, self._depth = text, comments, 0, 0

    def read(self) -> _Node:
        self._skip()
        node = self._value()
        self._skip()
        if self._at < len(self._text):
            raise self._error("there is text after the end")
        return node

    def _error(self, what: str) -> JsonError:
        return JsonError(f"{what} (line {self._text.count(chr(10), 0, self._at) + 1})")

    def _skip(self) -> None:
        while True:
            blank = _BLANK.match(self._text, self._at)
            self._at = blank.end() if blank else self._at
            comment = _COMMENT.match(self._text, self._at)
            if comment is None:
                return
            if not self._comments:
                raise self._error("it has a comment, which this file may not have")
            self._at = comment.end()

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _value(self) -> _Node:
        if self._peek() in ("{", "["):
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise self._error("it is nested too deeply")
            node = self._object() if self._peek() == "{" else self._array()
            self._depth -= 1
            return node
        found = _SCALAR.match(self._text, self._at)
        if found is None:
            raise self._error("a value is missing or wrong")
        try:
            scalar: Json = json.loads(found.group())
        except ValueError:
            raise self._error("a value is wrong") from None
        node = _Node(self._at, found.end(), scalar)
        self._at = found.end()
        return node

    def _comma(self, close: str) -> int | None:
        """Pass a comma and what is blank around it. None: there was none, so the end must follow."""
        self._skip()
        comma = None
        if self._peek() == ",":
            comma = self._at
            self._at += 1
            self._skip()
            if self._peek() == close and not self._comments:
                raise self._error("there is a comma before the end")
        elif self._peek() != close:
            raise self._error(f"a comma or {close} is missing")
        return comma

    def _array(self) -> _Node:
        node = _Node(self._at, items=[])
        assert node.items is not None
        self._at += 1
        self._skip()
        while self._peek() != "]":
            node.items.append(self._value())
            self._comma("]")
        self._at += 1
        node.end = self._at
        return node

    def _object(self) -> _Node:
        node = _Node(self._at, members=[])
        assert node.members is not None
        self._at += 1
        self._skip()
        while self._peek() != "}":
            start = self._at
            key = self._value() if self._peek() == '"' else None
            if key is None or not isinstance(key.scalar, str):
                raise self._error("a key is missing or wrong")
            self._skip()
            if self._peek() != ":":
                raise self._error("a colon is missing")
            self._at += 1
            self._skip()
            member = _Member(key.scalar, start, self._value())
            member.comma = self._comma("}")
            node.members.append(member)
        self._at += 1
        node.end = self._at
        return node


class JsonDocument:
    """JSON text whose keys can be read, set and removed. Raises JsonError when made from something else."""

    def __init__(self, text: str, comments: bool) -> None:
        self._comments = comments
        self._load(text if text.strip() else "{}\n")

    def _load(self, text: str) -> None:
        self.text = text
        self._root = _Reader(text, self._comments).read()
        if self._root.members is None:
            raise JsonError("it does not hold an object")

    @property
    def value(self) -> Json:
        return self._root.value

    @property
    def is_bare(self) -> bool:
        """Neither a key nor a comment is left."""
        return re.sub(r"\s", "", self.text) == "{}"

    def has(self, path: Sequence[str]) -> bool:
        return self._find(path) is not None

    def get(self, path: Sequence[str]) -> Json:
        node = self._find(path)
        return None if node is None else node.value

    def raw(self, path: Sequence[str]) -> str | None:
        """The text of the value, None if there is none."""
        node = self._find(path)
        return None if node is None else self.text[node.start : node.end]

    def read_raw(self, raw: str) -> Json:
        return _Reader(raw, self._comments).read().value

    def set_raw(self, path: Sequence[str], raw: str) -> None:
        node = self._find(path)
        if node is not None:
            self._splice((node.start, node.end, raw))
            return
        # The deepest object that is there gets the first key that is missing.
        depth = next(depth for depth in range(len(path) - 1, -1, -1) if self._find(path[:depth]) is not None)
        parent = self._find(path[:depth])
        assert parent is not None
        if parent.members is None:
            raise JsonError(f"{'.'.join(path[:depth])} is not an object")
        self._insert(parent, path[depth:], raw)

    def set(self, path: Sequence[str], value: Json) -> None:
        node = self._find(path)
        margin = self._margin(node.start) if node else ""
        self.set_raw(path, self._pretty(value, margin))

    def remove(self, path: Sequence[str]) -> None:
        parent = self._find(path[:-1])
        if parent is None or not parent.members:
            return
        index = next((i for i, m in enumerate(parent.members) if m.key == path[-1]), None)
        if index is None:
            return
        member, text = parent.members[index], self.text
        start, end = member.start, member.node.end
        cuts: list[tuple[int, int, str]] = []
        if member.comma is None and index > 0:
            before = parent.members[index - 1].comma
            assert before is not None
            cuts.append((before, before + 1, ""))
        elif member.comma == end:
            end += 1
        elif member.comma is not None:
            cuts.append((member.comma, member.comma + 1, ""))
        line = text.rfind("\n", 0, start) + 1
        next_line = text.find("\n", end) + 1
        if next_line and not text[line:start].strip() and not text[end:next_line].strip():
            start, end = line, next_line  # it had its lines to itself
        elif index > 0:
            start = len(text[:start].rstrip(" \t"))
        else:
            end += len(text[end:]) - len(text[end:].lstrip(" \t"))
        self._splice(*cuts, (start, end, ""))

    def _find(self, path: Sequence[str]) -> _Node | None:
        node = self._root
        for key in path:
            # A key that stands twice counts where it stands last, as in JavaScript.
            found = [member.node for member in node.members or () if member.key == key]
            if not found:
                return None
            node = found[-1]
        return node

    def _splice(self, *cuts: tuple[int, int, str]) -> None:
        self._load(spliced(self.text, *cuts))

    def _margin(self, at: int) -> str:
        """The white space with which the line of `at` begins."""
        line = self.text.rfind("\n", 0, at) + 1
        return self.text[line : len(self.text) - len(self.text[line:].lstrip(" \t"))]

    def _unit(self) -> str:
        found = re.search(r"\n([ \t]+)\S", self.text[self._root.start :])
        return found.group(1) if found else "  "

    def _pretty(self, value: Json, margin: str) -> str:
        lines = json.dumps(value, indent=self._unit(), ensure_ascii=False).split("\n")
        return f"\n{margin}".join(lines)

    def _insert(self, parent: _Node, path: Sequence[str], raw: str) -> None:
        assert parent.members is not None
        text, close = self.text, parent.end - 1
        anchor = len(text[:close].rstrip(" \t\r\n"))  # behind the last member and any comment after it
        last = parent.members[-1] if parent.members else None
        margin = self._margin(parent.start)
        inner = margin + self._unit()
        if last is not None and not text[text.rfind("\n", 0, last.start) + 1 : last.start].strip():
            inner = self._margin(last.start)
        if last and parent is not self._root and len(path) == 1 and "\n" not in text[parent.start : parent.end]:
            lead, tail = " ", ""  # an object on one line stays on one line
        else:
            lead = f"\n{inner}"
            tail = "" if "\n" in text[anchor:close] else f"\n{margin}"
        new = self._nested(path, raw, inner)
        cuts: list[tuple[int, int, str]] = []
        if last is not None and last.comma is not None:
            new += ","
        elif last is not None:
            cuts.append((last.node.end, last.node.end, ","))
        cuts.append((anchor, close if tail else anchor, lead + new + tail))
        self._splice(*cuts)

    def _nested(self, path: Sequence[str], raw: str, margin: str) -> str:
        key = json.dumps(path[0], ensure_ascii=False)
        if len(path) == 1:
            return f"{key}: " + raw.replace("\n", f"\n{margin}")
        inner = margin + self._unit()
        return f"{key}: {{\n{inner}{self._nested(path[1:], raw, inner)}\n{margin}}}"
