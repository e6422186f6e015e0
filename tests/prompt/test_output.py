from __future__ import annotations

import json
import random
import string
from typing import Any

import pytest

from prompt.pieces import THINK, TOOLS, brief, parse, parse_every_way
from slipstream.prompt.output import (
    Content,
    OutputParser,
    OutputStyle,
    Part,
    Thinking,
    ToolCall,
    ToolCut,
    ToolEnd,
    ToolStart,
    detect,
)
from slipstream.prompt.tools import GENERIC, STYLES

CALLS = {
    "json_tools": '<tool_call>\n{"name": "find_text", "arguments": {"pattern": "a \\"b\\"", "max": 3}}\n</tool_call>',
    "qwen3_coder": "<tool_call>\n<function=set>\n<parameter=note>\na < b\n</parameter>\n<parameter=tags>\n"
    '["x", "y"]\n</parameter>\n</function>\n</tool_call>',
    "gemma4": '<|tool_call>call:find_text{pattern:<|"|>a {"b"}<|"|>,max:3}<tool_call|>',
    "llama": '{"name": "find_text", "parameters": {"pattern": "a"}}',
    "mistral": '[TOOL_CALLS]find_text[ARGS]{"pattern": "a"}',
    "pythonic": "<|tool_call_start|>[find_text(pattern='it\\'s', max=3), set(on=True, tags=[])]<|tool_call_end|>",
    "nemotron": '<TOOLCALL>[{"name": "find_text", "arguments": {"pattern": "a"}}]</TOOLCALL>',
    "minicpm5": '<function name="set"><param name="note"><![CDATA[a]]></param><param name="on">true</param></function>',
    "glm47": "<tool_call>set\n<arg_key>note</arg_key>\n<arg_value>a</arg_value>\n</tool_call>",
    "minimax_m2": '<minimax:tool_call><invoke name="set"><parameter name="size">2</parameter></invoke>'
    "</minimax:tool_call>",
    "harmony": '<|channel|>commentary to=functions.find_text<|message|>{"pattern": "a"}<|call|>',
}
SNIPPETS = [
    *'{}[]()<>"\'\\,:=/| \n\tax3-.`;',
    *("<tool_call>", "</tool_call>", "<function=find_text>", "</function>", "<parameter=max>", "</parameter>"),
    *("<think>", "</think>", '<|"|>', '"name"', '"arguments"', "[ARGS]", "[TOOL_CALLS]", "```", "]]>", "<|end|>"),
    *("\\u12", "\\ud83e", "\\ud83e\\udd99", "True", "None", "null", "\x00", "\u00a0", "é", "🦙"),
]  # fmt: skip


def test_an_answer_from_the_first_thought_to_the_last_word() -> None:
    call = CALLS["json_tools"]
    text = f"<think>\nhm\n</think>\n\nLook.\n\n{call}\n{call}\nDone."
    parts = parse_every_way(OutputStyle("json_tools", THINK), text)
    arguments = '{"pattern": "a \\"b\\"", "max": 3}'
    assert brief(parts) == [
        ("thinking", "hm"),
        ("content", "Look."),
        ("call", "find_text", arguments),
        ("call", "find_text", arguments),
        ("content", "\nDone."),
    ]
    assert [part for part in parts if isinstance(part, ToolStart | ToolEnd)] == [
        ToolStart(0, "id", "find_text"),
        ToolEnd(0, ToolCall("id", "find_text", arguments, call, "\n\n")),
        ToolStart(1, "id", "find_text"),
        ToolEnd(1, ToolCall("id", "find_text", arguments, call, "\n")),
    ]


@pytest.mark.parametrize("style", [*sorted(STYLES), None])
def test_plain_text_is_passed_on(style: str | None) -> None:
    for text in (
        "",
        " ",
        "\n\nHello,  world. \n",
        "| a | b |\n|---|---|\n",
        "x = {'a': [1]}; y < 3 <b>",
        "🦙\r\n\u2028",
    ):
        for tools in ([], TOOLS):
            assert brief(parse_every_way(OutputStyle(style, THINK), text, tools=tools)) == (
                [("content", text)] if text else []
            )


def test_wrappers_of_an_answer_are_dropped() -> None:
    style = detect("<|START_THINKING|> <|END_THINKING|> <|START_RESPONSE|> <|START_ACTION|>")
    text = "<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>yes<|END_RESPONSE|>"
    assert style.tools == "command"
    assert brief(parse_every_way(style, text)) == [("thinking", "hm"), ("content", "yes")]


def test_harmony_channels() -> None:
    style = detect(None, ["<|channel|>", "<|message|>"])
    text = (
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary<|message|>First.<|end|>"
        "<|start|>assistant<|channel|>final<|message|>Yes.<|return|>"
    )
    assert brief(parse_every_way(style, text)) == [("thinking", "hm"), ("content", "First.Yes.")]
    assert brief(parse_every_way(style, "so<|end|>", opens_in_thinking=True)) == [("thinking", "so")]
    assert brief(parse_every_way(style, "No channel.")) == [("content", "No channel.")]
    unknown = "<|channel|>commentary to=python<|message|>print(1)<|call|>"
    assert brief(parse_every_way(style, unknown)) == [("content", unknown.removesuffix("<|call|>"))]


def mutated(text: str, dice: random.Random) -> str:
    for _ in range(dice.randint(0, 6)):
        at = dice.randrange(len(text) + 1)
        match dice.randrange(4):
            case 0:
                text = text[:at] + dice.choice(SNIPPETS) + text[at:]
            case 1:
                text = text[:at] + text[at + dice.randint(1, 4) :]
            case 2:
                text = text[:at] + dice.choice(SNIPPETS) + text[at + 1 :]
            case _:
                begin = dice.randrange(len(text) + 1)
                text = text[:at] + text[begin : begin + 40] + text[at:]
    return text[: dice.randrange(len(text) + 1)] if dice.random() < 0.3 else text


def check(parts: list[Part]) -> str:
    """Asserts what every answer must keep, and returns its text as the parts have it."""
    text = ""
    for part in parts:
        match part:
            case Content() | Thinking():
                text += part.text
            case ToolEnd(_, call) | ToolCut(_, call):
                assert isinstance(json.loads(call.arguments_json), dict)
                call.arguments_json.encode()
                text += call.lead + call.raw
            case _:
                pass
    brief(parts)
    return text


def bare(text: str, tags: tuple[str, ...]) -> str:
    text = "".join(text.split())
    while any(tag in text for tag in tags):
        for tag in tags:
            text = text.replace(tag, "")
    return text


@pytest.mark.parametrize("name", sorted(CALLS))
def test_calls_cut_and_mutated(name: str) -> None:
    dice = random.Random(name)
    for _ in range(400):
        text = dice.choice(["", "Prose. ", "<think>hm</think>"]) + mutated(CALLS[name], dice)
        text += dice.choice(["", "\nMore prose.", "\n" + CALLS[name]])
        style = OutputStyle(name if name == "harmony" else dice.choice([name, name, GENERIC]), THINK)
        options: dict[str, Any] = {"cut": dice.random() < 0.3, "opens_in_thinking": dice.random() < 0.2}
        parts = parse(style, [text], **options)
        kept = check(parts)
        if name != "harmony":  # whose headers are dropped
            assert bare(kept, (THINK.start, THINK.end)) == bare(text, (THINK.start, THINK.end)), text
        at = dice.randrange(len(text) + 1)
        assert parse(style, [text[:at], text[at:]], **options) == parts, (text, at)
        assert parse(style, list(text), **options) == parts, text


def random_json(dice: random.Random, depth: int = 0) -> Any:
    kind = dice.randrange(8 if depth < 3 else 6)
    if kind < 3:
        return "".join(dice.choice(SNIPPETS + list(string.printable)) for _ in range(dice.randrange(8)))
    if kind < 6:
        return dice.choice([None, True, False, 0, -1, 12345678901234567890, 1.5, 1e-9, -2.5e30])
    if kind == 6:
        return [random_json(dice, depth + 1) for _ in range(dice.randrange(4))]
    return {f"k{i}, {dice.choice(SNIPPETS)}": random_json(dice, depth + 1) for i in range(dice.randrange(4))}


def test_valid_json_is_never_changed() -> None:
    dice = random.Random(7)
    for _ in range(400):
        value = {f"free {i}": random_json(dice) for i in range(dice.randrange(4))}
        arguments = json.dumps(
            value,
            ensure_ascii=dice.random() < 0.5,
            indent=dice.choice([None, None, 2]),
            separators=dice.choice([None, (",", ":"), (" ,\t", " :\n")]),
        )
        text = f'<tool_call>{{"name": "find_text", "arguments": {arguments}}}</tool_call>'
        for pieces in ([text], list(text)):
            if "\\ud83e" not in arguments.replace("\\ud83e\\udd99", ""):
                assert brief(parse(OutputStyle("json_tools"), pieces)) == [("call", "find_text", arguments)]


BIG = 'def f(x):\n    return x < 3 and "q" # é\n' * 5200


def parts_of(style: str, pieces: str | list[str]) -> list[Part]:
    parser = OutputParser(OutputStyle(style, THINK), TOOLS)
    parts: list[Part] = []
    for piece in pieces:
        parts += parser.feed(piece)
    return parts + parser.finish()


@pytest.mark.parametrize(
    ("style", "before", "after"),
    [
        ("json_tools", '<tool_call>{"name": "find_text", "arguments": {"pattern": JSON', "}}</tool_call>"),
        ("qwen3_coder", "<function=find_text>\n<parameter=pattern>\nTEXT", "\n</parameter>\n</function>"),
        ("gemma4", '<|tool_call>call:find_text{pattern:<|"|>TEXT', '<|"|>}<tool_call|>'),
        ("json_tools", "TEXT", ""),
    ],
)
def test_200_kilobytes_in_single_characters(style: str, before: str, after: str) -> None:
    """Work that grew with the square of the length would take minutes here."""
    text = before.replace("JSON", json.dumps(BIG, ensure_ascii=False)).replace("TEXT", BIG) + after
    assert len(text) > 200_000
    found = brief(parts_of(style, text))
    if after:
        assert json.loads(found[0][2])["pattern"] == BIG


ARGUMENTS = '<tool_call>{"name":"find_text","arguments":{"pattern":'


@pytest.mark.parametrize(
    ("before", "again"),
    [
        ("", "<tool_call>{"),
        ("", "<"),
        ("", "<function="),
        (ARGUMENTS, "["),
        (ARGUMENTS, '{"a":'),
        (ARGUMENTS, '"'),
        (ARGUMENTS + '"', "\\"),
        (ARGUMENTS + '"', "</tool_call>"),
        (ARGUMENTS + '"a"', " "),
        ("<function=find_text><parameter=pattern>", "</parameter>"),
        ("<function=find_text><parameter=pattern>", "\n"),
    ],
)
def test_long_text_without_end_is_borne(before: str, again: str) -> None:
    """Work that grew with the square of the length would take minutes here."""
    text = before + again * (40_000 // len(again))
    for pieces in (list(text), [text]):
        check(parts_of(GENERIC, pieces))
