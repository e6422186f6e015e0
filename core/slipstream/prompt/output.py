"""A model's text, as it comes, into thoughts, answer and tool calls. Nothing is lost, nothing is shown twice.

When the text ends inside a call:
- nothing of its arguments was streamed yet: its text is content;
- the model stopped by itself (`finish()`): what is missing is closed, and it is a call. Models forget brackets;
- it was cut off (`finish(cut=True)`): ToolCut. What was streamed stays half a JSON object. A client that gets
  such arguments tells the model (Claude Code, Codex and opencode do), while closed ones would be run: half a file
  written, half a command executed. OpenAI and Anthropic leave them cut short as well.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slipstream.prompt.harmony import Harmony
from slipstream.prompt.parts import (
    Content,
    Part,
    PartWriter,
    Thinking,
    ToolArguments,
    ToolCall,
    ToolCut,
    ToolEnd,
    ToolStart,
    new_call_id,
)
from slipstream.prompt.signature import Tools
from slipstream.prompt.tape import Markers, Status, Tape, space_end
from slipstream.prompt.thinking import HARMONY_TAGS, TAG_TEXTS, ThinkTags, Thought, detect_tags
from slipstream.prompt.tools import CALL_MARKERS, GENERIC, HARMONY, Section, bare_calls, detect_tools, openers

__all__ = [
    "Content",
    "OutputParser",
    "OutputStyle",
    "Part",
    "Thinking",
    "ToolArguments",
    "ToolCall",
    "ToolCut",
    "ToolEnd",
    "ToolStart",
    "detect",
]

RESCAN_LIMIT = 4096  # characters of a failed call in which another may begin; keeps the work linear

# Markers around an answer that are not part of it: Command A, Kimi K3.
_WRAPPERS = (
    ("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    ("<|START_TEXT|>", "<|END_TEXT|>"),
    ("<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>"),
)


_MARKERS = CALL_MARKERS | TAG_TEXTS | {marker for group in _WRAPPERS for marker in group}


def is_marker(token: str) -> bool:
    """Whether a special token's text is one of those that answers are read by, or part of one."""
    return any(token in marker for marker in _MARKERS)


@dataclass(frozen=True, slots=True)
class OutputStyle:
    """How a model marks what it writes."""

    tools: str | None = None  # a name in tools.STYLES
    think: ThinkTags | None = None
    wrappers: tuple[str, ...] = ()


def detect(
    chat_template: str | None, vocabulary: Container[str] = (), tool_parser_type: str | None = None
) -> OutputStyle:
    """The style of a model, from its template and the tokens it has.

    `tool_parser_type` is what the tokenizer's configuration says, in mlx-lm's names.
    """
    tools = detect_tools(chat_template, vocabulary, tool_parser_type)
    if tools == HARMONY:
        return OutputStyle(HARMONY, HARMONY_TAGS)
    template = chat_template or ""
    wrappers = tuple(
        marker
        for group in _WRAPPERS
        if group[0] in template or group[0] in vocabulary or (tools == "kimi_k3" and "response" in group[0])
        for marker in group
    )
    return OutputStyle(tools, detect_tags(chat_template, vocabulary), wrappers)


class OutputParser:
    """Feed it the text in any pieces; what the parts say is the same for all.

    A call is one of `tools`; without tools, and for a name that is not among them, its text is content.
    """

    def __init__(
        self,
        style: OutputStyle,
        tools: Tools | Sequence[Mapping[str, Any]] = (),  # Any: as the client sent them
        opens_in_thinking: bool = False,
        *,
        is_single: bool = False,
        new_id: Callable[[], str] = new_call_id,
        first_index: int = 0,
    ) -> None:
        """`is_single`: the answer is over when a call is complete, and nothing behind it is given."""
        tools = tools if isinstance(tools, Tools) else Tools(tools)
        self._style = style
        self._tools = tools
        self._is_single = is_single
        self._has_given_call = False
        self._new_id = new_id
        self._tape = Tape()
        self._out = PartWriter(new_id, first_index)
        self._section: Section | None = None
        self._marker_length = 0  # of the marker that the section began with
        self._first_index = first_index  # of the calls in the section
        name = style.tools or GENERIC
        self._openers = openers(name) if tools else {}
        self._bare = bare_calls(name) if tools else None
        tags = (style.think.start, style.think.end) if style.think else ()
        self._markers = Markers([*self._openers, *tags, *style.wrappers])
        if style.tools == HARMONY:
            self._section = Harmony(tools, opens_in_thinking)
        elif style.think and opens_in_thinking:
            self._section = self._thought(style.think)
        if opens_in_thinking:
            self._out.marker()

    @property
    def called(self) -> bool:
        """Whether a call is complete: the finish reason is then tool_calls."""
        return self._out.called

    @property
    def next_index(self) -> int:
        return self._out.next_index

    def feed(self, text: str) -> list[Part]:
        self._tape.feed(text)
        while self._step():
            pass
        return self._take()

    def finish(self, cut: bool = False) -> list[Part]:
        """The last parts. `cut`: the model did not end by itself (max_tokens, a stop string, a cancel)."""
        self._tape.end(cut)
        while self._step():
            pass
        self._out.finish()
        return self._take()

    @property
    def is_over(self) -> bool:
        """Whether the one call that was asked for is complete."""
        return self._is_single and self.called

    def _take(self) -> list[Part]:
        parts = self._out.take()
        if not self.is_over:
            return parts
        if self._has_given_call:
            return []
        self._has_given_call = True
        end = next(at for at, part in enumerate(parts) if isinstance(part, ToolEnd))
        return parts[: end + 1]

    def _step(self) -> bool:
        """Reads on. False: there is nothing more to read now."""
        if self._section is None:
            return self._scan()
        status = self._section.read(self._tape, self._out)
        if status is Status.MORE and not self._tape.ended:
            return False
        self._section = None
        if status is not Status.DONE:
            assert not self._out.is_open
            self._release()
        return True

    def _scan(self) -> bool:
        """Passes content on, up to a marker or to what may become one."""
        tape, out = self._tape, self._out
        if tape.is_empty:
            return False
        text, pos = tape.text, tape.pos
        if self._bare and out.is_fresh and (begin := self._bare_begin(tape)) is not None:
            out.content(text[pos:begin])
            tape.pos = begin
            self._open(self._bare(self._tools), 1, reads_marker=True)
            return True
        found = self._markers.find(text, pos)
        if not found:
            stop = len(text) if tape.ended else self._markers.tail(text, pos)
            out.content(text[pos:stop])
            tape.pos = stop
            return False
        out.content(text[pos : found.start()])
        tape.pos = found.start()
        self._meet(found.group())
        return True

    def _bare_begin(self, tape: Tape) -> int | None:
        """Where the answer begins with a bracket that is not the beginning of a marker."""
        begin = space_end(tape.text, tape.pos)
        if tape.text[begin : begin + 1] not in ("{", "["):
            return None
        return begin if self._markers.none_at(tape.text, begin, tape.ended) else None

    def _meet(self, marker: str) -> None:
        tape, out, think = self._tape, self._out, self._style.think
        if opener := self._openers.get(marker):
            self._open(opener.open(self._tools), len(marker), opener.reads_marker)
            return
        tape.pos += len(marker)
        if think and marker in (think.start, think.end) and not out.is_fresh:
            out.content(marker)  # the answer has begun: it speaks of tags
            return
        out.marker()
        if think and marker == think.start:
            self._section = self._thought(think)

    def _open(self, section: Section, marker_length: int, reads_marker: bool) -> None:
        self._tape.mark()
        self._marker_length = marker_length
        self._section = section
        if not reads_marker:
            self._tape.pos += marker_length
        self._first_index = self._out.next_index

    def _release(self) -> None:
        """The section was no call: its text is content, or another call begins in it."""
        tape = self._tape
        length = len(tape.recorded())
        tape.rewind()
        if length <= RESCAN_LIMIT:
            is_whole = self._first_index == self._out.next_index  # no call of it was right
            length = self._marker_length if is_whole else 0
        self._out.content(tape.text[:length])
        tape.pos = length

    def _thought(self, tags: ThinkTags) -> Thought:
        return Thought(tags, tuple(self._openers), self._parse_calls)

    def _parse_calls(self) -> OutputParser:
        style = OutputStyle(self._style.tools)
        return OutputParser(style, self._tools, new_id=self._new_id, first_index=self._out.next_index)
