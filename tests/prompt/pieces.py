"""Runs a text through the output parser in pieces, and joins what came out so that any cutting can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from slipstream.prompt.output import (
    Content,
    OutputParser,
    OutputStyle,
    Part,
    Thinking,
    ToolArguments,
    ToolCut,
    ToolEnd,
    ToolStart,
)
from slipstream.prompt.thinking import ThinkTags

THINK = ThinkTags("<think>", "</think>")

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "find_text",
            "parameters": {
                "type": "object",
                "properties": {"pattern": {"type": "string"}, "max": {"type": "integer"}},
                "required": ["pattern"],
            },
        },
    },
    {
        "name": "set",
        "input_schema": {
            "type": "object",
            "$defs": {"size": {"type": "number"}},
            "properties": {
                "on": {"type": "boolean"},
                "note": {"type": ["string", "null"]},
                "tags": {"type": "array", "items": {"type": "string"}},
                "size": {"$ref": "#/$defs/size"},
                "count": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "key": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                "any": {"description": "says nothing of its type"},
                "mode": {"enum": ["1", "2"]},
            },
        },
    },
]


def parse(
    style: OutputStyle,
    pieces: Iterable[str],
    *,
    tools: list[dict[str, Any]] = TOOLS,
    opens_in_thinking: bool = False,
    cut: bool = False,
) -> list[Part]:
    parser = OutputParser(style, tools, opens_in_thinking, new_id=lambda: "id")
    parts: list[Part] = []
    for piece in pieces:
        parts += parser.feed(piece)
    return joined(parts + parser.finish(cut))


def joined(parts: Iterable[Part]) -> list[Part]:
    result: list[Part] = []
    for part in parts:
        match result[-1] if result else None, part:
            case Content(before), Content(text):
                result[-1] = Content(before + text)
            case Thinking(before), Thinking(text):
                result[-1] = Thinking(before + text)
            case ToolArguments(index, before), ToolArguments(same, fragment) if index == same:
                result[-1] = ToolArguments(index, before + fragment)
            case _:
                result.append(part)
    return result


def cuttings(text: str) -> Iterator[list[str]]:
    """At every position, and everywhere."""
    for position in range(1, len(text)):
        yield [text[:position], text[position:]]
    yield list(text)


def parse_every_way(style: OutputStyle, text: str, **options: Any) -> list[Part]:
    """The parts of a text, which must be the same for every cutting."""
    parts = parse(style, [text], **options)
    for pieces in cuttings(text):
        assert parse(style, pieces, **options) == parts, pieces
    return parts


def brief(parts: Iterable[Part]) -> list[tuple[str, ...]]:
    """Parts as a table can show them. Checks that a call's pieces are its arguments."""
    result: list[tuple[str, ...]] = []
    name = streamed = ""
    for part in parts:
        match part:
            case Content(text):
                result.append(("content", text))
            case Thinking(text):
                result.append(("thinking", text))
            case ToolStart():
                name, streamed = part.name, ""
            case ToolArguments(_, fragment):
                streamed += fragment
            case ToolEnd(_, call):
                assert call.name == name and call.arguments_json == streamed
                result.append(("call", name, streamed))
            case ToolCut(_, call):
                assert call.name == name and call.arguments_json.startswith(streamed)
                result.append(("cut", name, streamed, call.arguments_json))
    return result
