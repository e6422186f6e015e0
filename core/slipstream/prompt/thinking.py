"""Telling a model's thoughts from its answer."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Protocol

from slipstream.prompt.parts import Content, Part, PartWriter, Thinking, ToolCut
from slipstream.prompt.tape import Markers, Status, Tape, marker_at, space_end


@dataclass(frozen=True, slots=True)
class ThinkTags:
    start: str
    end: str


# In the order they are looked for. Behind the tags: the tokens by which a vocabulary has them, where those differ.
_TAGS: tuple[tuple[ThinkTags, tuple[str, ...]], ...] = (
    (ThinkTags("<think>", "</think>"), ()),
    (ThinkTags("<|channel>thought", "<channel|>"), ("<|channel>", "<channel|>")),  # Gemma 4
    (ThinkTags("[THINK]", "[/THINK]"), ()),  # Mistral
    (ThinkTags("<seed:think>", "</seed:think>"), ()),
    (ThinkTags("<|START_THINKING|>", "<|END_THINKING|>"), ()),  # Command A
    (ThinkTags("<longcat_think>", "</longcat_think>"), ()),
    (ThinkTags("<|think:start|>", "<|think:end|>"), ()),
    (ThinkTags("<|open|>think<|sep|>", "<|close|>think<|sep|>"), ("<|open|>", "<|close|>", "<|sep|>")),  # Kimi K3
    (ThinkTags("◁think▷", "◁/think▷"), ()),  # Kimi VL
    (ThinkTags("<|begin_of_thought|>", "<|end_of_thought|>"), ()),
    (ThinkTags("<thinking>", "</thinking>"), ()),
    (ThinkTags("<reasoning>", "</reasoning>"), ()),
    (ThinkTags("<thought>", "</thought>"), ()),
)

TAG_TEXTS = frozenset(text for tags, _ in _TAGS for text in (tags.start, tags.end))

HARMONY_TAGS = ThinkTags("<|channel|>analysis<|message|>", "<|end|>")


def detect_tags(chat_template: str | None, vocabulary: Container[str]) -> ThinkTags | None:
    """The template says what the model was trained to write; the vocabulary, where it does not."""
    template = chat_template or ""
    for tags, _ in _TAGS:
        if tags.end in template and (tags.start in template or tags.start not in vocabulary):
            return tags
    for tags, tokens in _TAGS:
        if all(token in vocabulary for token in tokens or (tags.start, tags.end)):
            return tags
    # A template may open the thought and leave its end to the model, in a vocabulary that spells both in pieces.
    return next((tags for tags, _ in _TAGS if tags.start in template), None)


def prompt_opens_thinking(rendered_prompt: str, tags: ThinkTags | None) -> bool:
    """Whether the template has opened the thought, so that the model goes on inside it.

    Only a tag at the very end counts: one that a user wrote somewhere does not.
    """
    return tags is not None and rendered_prompt.rstrip().endswith(tags.start)


class Answer(Protocol):
    """A parser for what may turn out to be calls."""

    @property
    def next_index(self) -> int: ...
    def feed(self, text: str) -> list[Part]: ...
    def finish(self, cut: bool) -> list[Part]: ...


class Thought:
    """Reads from behind the start tag to behind the end tag. Without an end tag the rest is thought.

    But a model may forget the end tag before a call (Qwen 3.5 does). So calls that end an unclosed thought, with
    nothing behind them, are calls. They are held back until then; followed by anything else they are thoughts.
    """

    def __init__(self, tags: ThinkTags, call_markers: tuple[str, ...], parse_calls: Callable[[], Answer]) -> None:
        self._tags = tags
        self._markers = Markers([tags.end, *call_markers])
        self._parse_calls = parse_calls
        self._is_first = True
        self._calls: Answer | None = None
        self._parts: list[Part] = []
        self._held: list[str] = []
        self._marker = ""

    def read(self, tape: Tape, out: PartWriter) -> Status:
        if self._is_first and not self._skip_second_start(tape):
            return Status.MORE
        while True:
            if self._calls is not None:
                status = self._read_calls(self._calls, tape, out)
                if status is not None:
                    return status
            text, pos = tape.text, tape.pos
            found = self._markers.find(text, pos)
            if not found:
                stop = len(text) if tape.ended else self._markers.tail(text, pos)
                out.thinking(text[pos:stop])
                tape.pos = stop
                return Status.DONE if tape.ended else Status.MORE
            out.thinking(text[pos : found.start()])
            if found.group() == self._tags.end:
                out.marker()
                tape.pos = found.end()
                return Status.DONE
            tape.pos = found.start()
            self._marker = found.group()
            self._calls = self._parse_calls()
            self._parts, self._held = [], []

    def _read_calls(self, calls: Answer, tape: Tape, out: PartWriter) -> Status | None:
        text = tape.text[tape.pos :]
        tape.pos = len(tape.text)
        self._held.append(text)
        parts = calls.feed(text)
        if tape.ended:
            parts += calls.finish(tape.cut)
        self._parts += parts
        is_other = any(isinstance(part, Content | Thinking | ToolCut) for part in parts)
        if not is_other and not tape.ended:
            return Status.MORE
        self._calls = None
        if not is_other:
            out.adopt(self._parts, calls.next_index)
            return Status.DONE
        tape.unread("".join(self._held))
        out.thinking(self._marker)
        tape.pos = len(self._marker)
        return None

    def _skip_second_start(self, tape: Tape) -> bool:
        """A model may write the tag that the template has already written. False: undecided."""
        at = space_end(tape.text, tape.pos)
        start = marker_at(tape.text, at, (self._tags.start,), tape.ended)
        if start == "":
            return False
        if start:
            tape.pos = at + len(start)
        self._is_first = False
        return True
