"""Which family writes its tool calls how: the markers of each style, and the reader behind each marker."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Protocol

from slipstream.prompt.calls_json import JsonCalls
from slipstream.prompt.calls_named import (
    FUNCTION_GEMMA_CALL,
    GEMMA_CALL,
    MISTRAL,
    PYTHONIC,
    ForeignCalls,
    NamedCalls,
)
from slipstream.prompt.calls_xml import GLM, LONGCAT, MINICPM, MINIMAX, MUSE, QWEN, XmlCalls
from slipstream.prompt.parts import PartWriter
from slipstream.prompt.signature import Tools
from slipstream.prompt.tape import Status, Tape, marker_at

HARMONY = "harmony"
GENERIC = "generic"


class Section(Protocol):
    """A reader of one stretch of the answer. FAILED: the text since the mark is not what it seemed."""

    def read(self, tape: Tape, out: PartWriter) -> Status: ...


@dataclass(frozen=True, slots=True)
class Opener:
    open: Callable[[Tools], Section]
    reads_marker: bool = False  # the marker is the beginning of the call's own tag


class _TagCalls:
    """Behind <tool_call>, families differ: JSON, <function=…>, or a name and <arg_key>."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._calls: Section | None = None

    def read(self, tape: Tape, out: PartWriter) -> Status:
        if self._calls is None:
            tape.skip_space()
            if tape.is_empty:
                return Status.FAILED if tape.ended else Status.MORE
            char = tape.text[tape.pos]
            if char in "{[":
                self._calls = JsonCalls(self._tools, ("</tool_call>", "<tool_call>"))
            elif char == "<":
                found = marker_at(tape.text, tape.pos, ("<function",), tape.ended)
                if not found:
                    return Status.MORE if found == "" else Status.FAILED
                self._calls = XmlCalls(self._tools, QWEN)
            else:
                self._calls = XmlCalls(self._tools, GLM)
        return self._calls.read(tape, out)


def _json(end: str) -> Opener:
    return Opener(lambda tools: JsonCalls(tools, (end,)))


_OPENERS: dict[str, Opener] = {
    "<tool_call>": Opener(_TagCalls),
    "<function=": Opener(lambda tools: XmlCalls(tools, QWEN), reads_marker=True),
    "<function name=": Opener(lambda tools: XmlCalls(tools, MINICPM), reads_marker=True),
    "<|tool_call>": Opener(lambda tools: NamedCalls(tools, GEMMA_CALL, ("<tool_call|>", "<|tool_call>"))),
    "<start_function_call>": Opener(
        lambda tools: NamedCalls(tools, FUNCTION_GEMMA_CALL, ("<end_function_call>", "<start_function_call>"))
    ),
    "<|python_tag|>": Opener(lambda tools: NamedCalls(tools, PYTHONIC)),
    "<|python_start|>": Opener(lambda tools: NamedCalls(tools, PYTHONIC, ("<|python_end|>",))),
    "[TOOL_CALLS]": Opener(lambda tools: NamedCalls(tools, MISTRAL)),
    "<|tool_call_start|>": Opener(lambda tools: NamedCalls(tools, PYTHONIC, ("<|tool_call_end|>",))),
    "<TOOLCALL>": _json("</TOOLCALL>"),
    "<|tool_call|>": _json("<|/tool_call|>"),
    "<|START_ACTION|>": _json("<|END_ACTION|>"),
    "<minimax:tool_call>": Opener(lambda tools: XmlCalls(tools, MINIMAX)),
    "<atem:function_calls>": Opener(lambda tools: XmlCalls(tools, MUSE)),
    "<longcat_tool_call>": Opener(lambda tools: XmlCalls(tools, LONGCAT)),
    "<|tool_calls_section_begin|>": Opener(lambda tools: ForeignCalls(tools, "kimi_k2", "<|tool_calls_section_end|>")),
    "<|open|>tools<|sep|>": Opener(lambda tools: ForeignCalls(tools, "kimi_k3", "<|close|>tools<|sep|>")),
}

# What stands behind the openers, where vocabularies have it as special tokens.
_INSIDE = (
    *("</tool_call>", "</function>", "<parameter=", "</parameter>", "</param>", "</invoke>", "<tool_call|>", '<|"|>'),
    *("<end_function_call>", "<escape>", "<|python_end|>", "[ARGS]", "[CALL_ID]", "<|tool_call_end|>", "</TOOLCALL>"),
    *(
        "<|/tool_call|>",
        "<|END_ACTION|>",
        "</minimax:tool_call>",
        "</atem:function_calls>",
        "</atem:invoke>",
        "</atem:parameter>",
        "</longcat_tool_call>",
    ),
    *("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "<longcat_arg_key>", "</longcat_arg_key>"),
    *("<longcat_arg_value>", "</longcat_arg_value>", "<|tool_calls_section_end|>", "<|tool_call_begin|>"),
    *("<|tool_call_argument_begin|>", "<|open|>", "<|close|>", "<|sep|>"),
    *("<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|end|>", "<|call|>", "<|return|>"),  # Harmony
)
CALL_MARKERS = frozenset((*_OPENERS, *_INSIDE))

# Small and badly quantised models fall back to these, whatever their template says.
_COMMON = ("<tool_call>", "<function=", "<function name=")

# The names are mlx-lm's where it has one (`tool_parser_type` in a tokenizer's configuration).
STYLES: dict[str, tuple[str, ...]] = {
    "json_tools": _COMMON,  # Hermes, Qwen 2.5 and 3
    "qwen3_coder": _COMMON,  # also Qwen 3.5, Nemotron 3
    "minicpm5": _COMMON,
    "glm47": _COMMON,
    "laguna": _COMMON,
    "gemma4": ("<|tool_call>",),
    "function_gemma": ("<start_function_call>",),
    "llama": ("<|python_tag|>", "<|python_start|>", *_COMMON),
    "mistral": ("[TOOL_CALLS]", *_COMMON),
    "pythonic": ("<|tool_call_start|>", *_COMMON),  # LFM 2, MiniCPM 3 and 4
    "nemotron": ("<TOOLCALL>", *_COMMON),
    "phi4": ("<|tool_call|>", *_COMMON),  # also Granite
    "command": ("<|START_ACTION|>",),
    "minimax_m2": ("<minimax:tool_call>",),
    "muse_spark": ("<atem:function_calls>",),
    "longcat": ("<longcat_tool_call>",),
    "kimi_k2": ("<|tool_calls_section_begin|>",),
    "kimi_k3": ("<|open|>tools<|sep|>",),
    HARMONY: (),  # its channels are read by harmony.py
    GENERIC: tuple(_OPENERS),
}

# Styles that also write a call without any marker, as their whole answer or after another call.
_BARE = frozenset({"json_tools", "llama", "pythonic", "nemotron", "phi4", GENERIC})

# What stands in a template that teaches the style; the first row that is there decides.
_TEMPLATE_SIGNS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("<|channel|>", "<|message|>"), HARMONY),
    (("<minimax:tool_call>",), "minimax_m2"),
    (("<|tool_call>", "<tool_call|>"), "gemma4"),
    (("<start_function_call>",), "function_gemma"),
    (("<longcat_tool_call>",), "longcat"),
    (("<arg_key>",), "glm47"),
    (("<|tool_list_start|>",), "pythonic"),
    (("<|tool_call_start|>",), "pythonic"),
    (("<function=", "<parameter="), "qwen3_coder"),
    (("<|tool_calls_section_begin|>",), "kimi_k2"),
    (('<function name="', '<param name="'), "minicpm5"),
    (("[TOOL_CALLS]",), "mistral"),
    (("<atem:function_calls>",), "muse_spark"),
    (("<TOOLCALL>",), "nemotron"),
    (("<|START_ACTION|>",), "command"),
    (("<|/tool_call|>",), "phi4"),
    (("<tool_call>",), "json_tools"),
    (("<|python_tag|>",), "llama"),
    (("<|python_start|>",), "llama"),
    (('"parameters": dictionary of argument name',), "llama"),
    (("<|tool_call|>",), "phi4"),
)
_VOCABULARY_SIGNS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("<|channel|>", "<|message|>"), HARMONY),
    (("<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>"), "kimi_k3"),
    (("<|tool_call_start|>", "<|tool_call_end|>"), "pythonic"),
    (("<|python_tag|>",), "llama"),
)


def detect_tools(chat_template: str | None, vocabulary: Container[str], parser_type: str | None = None) -> str | None:
    """The style in which a model writes its calls; None when nothing says that it can."""
    if parser_type in STYLES:
        return parser_type
    for signs, style in _TEMPLATE_SIGNS:
        if all(sign in (chat_template or "") for sign in signs):
            return style
    for signs, style in _VOCABULARY_SIGNS:
        if all(sign in vocabulary for sign in signs):
            return style
    return GENERIC if "tools" in (chat_template or "") else None


def openers(style: str) -> dict[str, Opener]:
    return {marker: _OPENERS[marker] for marker in STYLES[style]}


def bare_calls(style: str) -> Callable[[Tools], Section] | None:
    """The reader of calls that begin with a bracket; None when the style has none."""
    return (lambda tools: NamedCalls(tools, PYTHONIC, is_bare=True)) if style in _BARE else None
