"""What a model's answer is made of, and the writer that the readers report it to."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Content:
    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    text: str


@dataclass(frozen=True, slots=True)
class ToolStart:
    index: int
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ToolArguments:
    """A piece of the JSON text of the arguments. All pieces of an index, joined, are `ToolCall.arguments_json`."""

    index: int
    fragment: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    id: str
    name: str
    arguments_json: str  # strict JSON, always an object
    raw: str  # exactly what the model wrote, markers included: content + lead + raw is its text again
    lead: str = ""  # white space before it that was not given as content
    answer: tuple[int, ...] = ()  # tokens of the whole answer that begins its calls with this one


@dataclass(frozen=True, slots=True)
class ToolEnd:
    index: int
    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolCut:
    """The text ended in the middle of the arguments: not a call to run. What was streamed stays cut short.

    `call.arguments_json` has the same arguments closed to valid JSON, for dialects that cannot show half an object.
    """

    index: int
    call: ToolCall


Part = Content | Thinking | ToolStart | ToolArguments | ToolEnd | ToolCut


def new_call_id() -> str:
    """Unguessable: the exact text of a call is kept under it."""
    return f"call_{secrets.token_hex(12)}"


class Trimmer:
    """Passes text on without the white space that stands beside a marker."""

    def __init__(self) -> None:
        self._space = ""  # seen, not passed on yet
        self._has_text = False
        self._marked = False  # a marker came, and no text since
        self.is_fresh = True  # no text yet, or none since the last marker

    def add(self, text: str) -> str:
        body = text.rstrip()
        if not body:
            self._space += text
            return ""
        passed = self._space + body
        if self._marked and not self._has_text:
            passed = passed.lstrip()
        self._space = text[len(body) :]
        self._has_text, self._marked, self.is_fresh = True, False, False
        return passed

    def marker(self) -> str:
        """A marker stands here. Returns the white space before it, which is dropped."""
        space, self._space = self._space, ""
        self._marked = self.is_fresh = True
        return space

    def finish(self) -> str:
        space, self._space = self._space, ""
        return "" if self._marked else space


class PartWriter:
    """Collects parts. One call may be open at a time, and is ended or cut before the next begins."""

    def __init__(self, new_id: Callable[[], str] = new_call_id, first_index: int = 0) -> None:
        self._new_id = new_id
        self._parts: list[Part] = []
        self._content = Trimmer()
        self._thinking = Trimmer()
        self._open: ToolStart | None = None
        self._lead = ""
        self._arguments: list[str] = []
        self.next_index = first_index
        self.called = False

    @property
    def is_fresh(self) -> bool:
        """The answer has not begun, or none of it has come since a thought or a call."""
        return self._content.is_fresh

    @property
    def is_open(self) -> bool:
        return self._open is not None

    def take(self) -> list[Part]:
        parts, self._parts = self._parts, []
        return parts

    def content(self, text: str) -> None:
        if passed := self._content.add(text):
            self._add_content(passed)

    def thinking(self, text: str) -> None:
        if passed := self._thinking.add(text):
            self._add_thinking(passed)

    def marker(self) -> None:
        """A tag stands here that is not shown: the white space on both its sides goes with it."""
        self._content.marker()
        self._thinking.marker()

    def begin(self, name: str) -> None:
        assert self._open is None
        self._lead = self._content.marker()
        self._thinking.marker()
        self._open = ToolStart(self.next_index, self._new_id(), name)
        self._parts.append(self._open)
        self.next_index += 1

    def arguments(self, fragment: str) -> None:
        if fragment:
            assert self._open is not None
            self._arguments.append(fragment)
            self._parts.append(ToolArguments(self._open.index, fragment))

    def end(self, raw: str) -> None:
        index, call = self._close("", raw)
        self._parts.append(ToolEnd(index, call))
        self.called = True

    def cut(self, missing: str, raw: str) -> None:
        """Ends the open call without running it; `missing` would complete its arguments."""
        index, call = self._close(missing, raw)
        self._parts.append(ToolCut(index, call))

    def _close(self, missing: str, raw: str) -> tuple[int, ToolCall]:
        start = self._open
        assert start is not None
        call = ToolCall(start.id, start.name, "".join(self._arguments) + missing, raw, self._lead)
        self._open = None
        self._arguments = []
        return start.index, call

    def adopt(self, parts: list[Part], next_index: int) -> None:
        """Parts that another writer made."""
        self.marker()
        self._parts += parts
        self.next_index = next_index
        self.called = self.called or any(isinstance(part, ToolEnd) for part in parts)

    def finish(self) -> None:
        if space := self._thinking.finish():
            self._add_thinking(space)
        if space := self._content.finish():
            self._add_content(space)

    def _add_content(self, text: str) -> None:
        if self._parts and isinstance(last := self._parts[-1], Content):
            self._parts[-1] = Content(last.text + text)
        else:
            self._parts.append(Content(text))

    def _add_thinking(self, text: str) -> None:
        if self._parts and isinstance(last := self._parts[-1], Thinking):
            self._parts[-1] = Thinking(last.text + text)
        else:
            self._parts.append(Thinking(text))
