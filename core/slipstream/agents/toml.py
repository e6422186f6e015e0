"""Changes single keys in TOML text and leaves every other character alone. tomllib reads it and says what is valid."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from slipstream.agents.jsonc import Json
from slipstream.agents.splice import spliced

Path = tuple[str, ...]

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_REST_OF_LINE = re.compile(r"[^\n]*\n?")
_KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*'""")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_TEXT = re.compile(
    r'''"""(?:\\.|[^\\])*?"""(?:"{0,2})|\'\'\'.*?\'\'\'(?:'{0,2})|"(?:\\.|[^"\\\n])*"|'[^'\n]*\'''', re.DOTALL
)
_OTHER = re.compile(r"\d{4}-\d\d-\d\d \d\d:[^\s,\]}#]*|[^\s,\]}#]+")  # a date may have a blank before its time


@dataclass(frozen=True, slots=True)
class _Entry:
    """`key = value`, on lines of its own or within an inline table."""

    path: Path
    start: int  # of the key
    value: int
    value_end: int
    end: int  # of the line; within an inline table that of the value


@dataclass(slots=True)
class _Section:
    """A header and the entries below it. The root's has no header."""

    path: Path
    start: int
    end: int  # of the header's line
    is_reachable: bool  # not within an array of tables, where a path would not say which
    entries: list[_Entry] = field(default_factory=list[_Entry])


class _Scanner:
    """Where things stand in text that tomllib has found valid."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self.sections = [_Section((), 0, 0, True)]
        self.inline: dict[Path, _Entry] = {}  # entries within inline tables
        arrays: list[Path] = []
        while self._skip(_BLANK) < len(text):
            start = self._at
            if text[start] == "[":
                is_array = text.startswith("[[", start)
                self._at += 2 if is_array else 1
                path = self._keys()
                if is_array:
                    arrays.append(path)
                reachable = not any(path[: len(array)] == array for array in arrays)
                line = text.rfind("\n", 0, start) + 1
                self.sections.append(_Section(path, line, self._skip(_REST_OF_LINE), reachable))
            else:
                section = self.sections[-1]
                path = section.path + self._keys()
                value = self._equals()
                end = self._value(path if section.is_reachable else None)
                section.entries.append(_Entry(path, start, value, end, self._skip(_REST_OF_LINE)))

    def _skip(self, pattern: re.Pattern[str]) -> int:
        found = pattern.match(self._text, self._at)
        assert found is not None, self._at
        self._at = found.end()
        return self._at

    def _keys(self) -> Path:
        keys: list[str] = []
        while True:
            start = self._skip(_SPACE)
            raw = self._text[start : self._skip(_KEY)]
            keys.append(str(tomllib.loads(f"x = {raw}")["x"]) if raw[0] in "\"'" else raw)
            self._skip(_SPACE)
            if self._text[self._at] != ".":
                return tuple(keys)
            self._at += 1

    def _equals(self) -> int:
        self._at += 1
        return self._skip(_SPACE)

    def _value(self, path: Path | None) -> int:
        first = self._text[self._at]
        if first == "[":
            self._items("]", None)
        elif first == "{":
            self._items("}", path)
        else:
            self._skip(_TEXT if first in "\"'" else _OTHER)
        return self._at

    def _items(self, close: str, path: Path | None) -> None:
        self._at += 1
        while self._text[self._skip(_BLANK)] != close:
            if close == "]":
                self._value(None)
            else:
                start = self._at
                keys = self._keys()
                value = self._equals()
                inner = None if path is None else path + keys
                end = self._value(inner)
                if inner is not None:
                    self.inline[inner] = _Entry(inner, start, value, end, end)
            if self._text[self._skip(_BLANK)] == ",":
                self._at += 1
        self._at += 1


class TomlDocument:
    """TOML text whose keys can be read, set and removed. Raises ValueError when made from something else."""

    def __init__(self, text: str) -> None:
        self._load(text)

    def _load(self, text: str) -> None:
        self.text = text
        self._value: dict[str, Any] = tomllib.loads(text)
        scanner = _Scanner(text)
        self._sections, self._inline = scanner.sections, scanner.inline
        self._lines = {e.path: e for s in scanner.sections if s.is_reachable for e in s.entries}

    @property
    def value(self) -> Json:
        return self._value

    @property
    def is_bare(self) -> bool:
        return not self.text.strip()

    def has(self, path: Sequence[str]) -> bool:
        return self.get(path) is not None

    def get(self, path: Sequence[str]) -> Json:
        value: Any = self._value
        for key in path:
            if not isinstance(value, dict) or key not in value:
                return None
            value = value[key]
        return value

    def raw(self, path: Sequence[str]) -> str | None:
        entry = self._entry(tuple(path))
        return None if entry is None else self.text[entry.value : entry.value_end]

    def read_raw(self, raw: str) -> Json:
        return tomllib.loads(f"x = {raw}")["x"]

    def set(self, path: Sequence[str], value: Json) -> None:
        self.set_raw(path, _written(value))

    def set_raw(self, path: Sequence[str], raw: str) -> None:
        path = tuple(path)
        if isinstance(self.get(path), dict):
            raise ValueError(f"{'.'.join(path)} is a table")
        entry = self._entry(path)
        if entry is not None:
            self._splice((entry.value, entry.value_end, raw))
        else:
            self._insert(path, raw)

    def remove(self, path: Sequence[str]) -> None:
        path = tuple(path)
        if path in self._inline:
            self._splice(self._inline_cut(self._inline[path]))
            return
        cuts: list[tuple[int, int, str]] = []
        for section in self._sections:
            is_below = section.path[: len(path)] == path
            if is_below:
                # The blank line above a header goes with it. Comments stay: they may mean what follows.
                start = section.start - 1 if self.text[: section.start].endswith("\n\n") else section.start
                cuts.append((start, section.end, ""))
            cuts += [
                (self.text.rfind("\n", 0, entry.start) + 1, entry.end, "")
                for entry in section.entries
                if is_below or (section.is_reachable and entry.path[: len(path)] == path)
            ]
        self._splice(*cuts)

    def _entry(self, path: Path) -> _Entry | None:
        return self._lines.get(path) or self._inline.get(path)

    def _splice(self, *cuts: tuple[int, int, str]) -> None:
        self._load(spliced(self.text, *cuts))

    def _inline_cut(self, entry: _Entry) -> tuple[int, int, str]:
        behind = re.compile(r"\s*,\s*").match(self.text, entry.value_end)
        if behind:
            return entry.start, behind.end(), ""
        before = re.search(r"\s*,\s*\Z", self.text[: entry.start])
        return (before.start() if before else entry.start), entry.value_end, ""

    def _insert(self, path: Path, raw: str) -> None:
        depth = next(n for n in range(len(path) - 1, -1, -1) if n == 0 or self.has(path[:n]))
        parent, rest = path[:depth], path[depth:]
        if not isinstance(self.get(parent), dict):
            raise ValueError(f"{'.'.join(parent)} is not a table")
        entry = self._entry(parent)
        if entry is not None:
            self._insert_inline(entry, rest, raw)
            return
        if len(rest) == 1:
            section = next((s for s in self._sections if s.path == parent and s.is_reachable), None)
            if section is not None:
                self._insert_line(section, section.entries[-1:], path, raw)
                return
        for section in self._sections:
            # A table that dotted keys made, as in `a.b.c = 1`, may have no header.
            beside = [e for e in section.entries if len(section.path) < depth and e.path[:depth] == parent]
            if beside and section.is_reachable:
                self._insert_line(section, beside[-1:], path, raw)
                return
        gap = "" if self.is_bare else "\n" if self.text.endswith("\n") else "\n\n"
        new = f"{gap}[{_dotted(path[:-1])}]\n{_dotted(path[-1:])} = {raw}\n"
        self._splice((len(self.text), len(self.text), new))

    def _insert_inline(self, table: _Entry, rest: Path, raw: str) -> None:
        for key in reversed(rest[1:]):
            raw = f"{{ {_dotted((key,))} = {raw} }}"
        new = f"{_dotted(rest[:1])} = {raw}"
        close = table.value_end - 1
        anchor = len(self.text[:close].rstrip(" \t\r\n"))
        if self.get(table.path):
            self._splice((anchor, anchor, f", {new}"))
        else:
            self._splice((anchor, close, f" {new} "))

    def _insert_line(self, section: _Section, after: list[_Entry], path: Path, raw: str) -> None:
        line = f"{_dotted(path[len(section.path) :])} = {raw}\n"
        if after:
            at = after[0].end
            start = self.text.rfind("\n", 0, after[0].start) + 1
            line = self.text[start : after[0].start] + line  # as far to the right as its neighbour
        elif section.path:
            at = section.end
        elif len(self._sections) > 1:
            at, line = 0, f"{line}\n"
        else:
            at = len(self.text)
        if at and not self.text[:at].endswith("\n"):
            line = f"\n{line}"
        self._splice((at, at, line))


def _dotted(path: Path) -> str:
    return ".".join(key if _BARE_KEY.fullmatch(key) else _written(key) for key in path)


def _written(value: Json) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    if value is None or isinstance(value, dict):
        raise TypeError(f"{value!r} is not written as one TOML value here")
    return json.dumps(value, ensure_ascii=False)
