from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import pytest

from prompt.pieces import TOOLS, brief, parse, parse_every_way
from slipstream.prompt.output import OutputParser, OutputStyle, ToolEnd, ToolStart, detect
from slipstream.prompt.tools import GENERIC, STYLES, openers

A = ("call", "find_text", '{"pattern": "a"}')
A_MAX = ("call", "find_text", '{"pattern": "a", "max": 3}')
B = ("call", "find_text", '{"pattern": "b"}')

P07_A = r'<tool_call>{"name":"find_text","arguments":{"pattern":"\d+","max":3}}</tool_call>'
P07_B = '<function=find_text><parameter=pattern>a, "b"</parameter><parameter=max>3</parameter></function>'  # no wrapper


def hermes(arguments: str, name: str = "find_text") -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


def xml(**values: str) -> str:
    parameters = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in values.items())
    return f"<tool_call>\n<function=set>\n{parameters}</function>\n</tool_call>"


@pytest.mark.parametrize("style", ["json_tools", "qwen3_coder", "llama", GENERIC, None])
def test_p07_tool_calls_as_models_really_write_them(style: str | None) -> None:
    called = parse_every_way(OutputStyle(style), P07_A)
    assert brief(called) == [("call", "find_text", r'{"pattern":"\\d+","max":3}')]
    called = parse_every_way(OutputStyle(style), P07_B)
    assert brief(called) == [("call", "find_text", r'{"pattern": "a, \"b\"", "max": 3}')]

    half = P07_B[: P07_B.index(' "b"')]
    assert brief(parse_every_way(OutputStyle(style), half, cut=True)) == [
        ("cut", "find_text", '{"pattern": "a,', '{"pattern": "a,"}')
    ]
    prose = "In XML a call is written as `<function>`, with the name inside <function> tags."
    assert brief(parse_every_way(OutputStyle(style), prose)) == [("content", prose)]


def test_finish_reason() -> None:
    for text, cut, called in (
        (P07_A, False, True),
        (P07_B, True, True),
        (P07_B[:50], True, False),
        ("x", False, False),
    ):
        parser = OutputParser(OutputStyle("json_tools"), TOOLS)
        parser.feed(text)
        parser.finish(cut)
        assert parser.called is called


JSON_A = '{"name": "find_text", "arguments": {"pattern": "a"}}'
JSON_B = '{"name": "find_text", "arguments": {"pattern": "b"}}'
QWEN = "<tool_call>\n<function=find_text>\n<parameter=pattern>\na\n</parameter>\n</function>\n</tool_call>"
GEMMA = '<|tool_call>call:find_text{pattern:<|"|>a<|"|>,max:3}<tool_call|>'
MINIMAX = (
    '<minimax:tool_call>\n<invoke name="find_text">\n<parameter name="pattern">a</parameter>\n'
    '<parameter name="max">3</parameter>\n</invoke>\n<invoke name="find_text">\n'
    '<parameter name="pattern">b</parameter>\n</invoke>\n</minimax:tool_call>'
)
HARMONY = (
    "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=functions.find_text "
    '<|constrain|>json<|message|>{"pattern": "a"}<|call|>'
)
KIMI_2 = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.find_text:0<|tool_call_argument_begin|>"
    '{"pattern": "a", "max": "3"}<|tool_call_end|><|tool_calls_section_end|>'
)
KIMI_3 = (
    '<|open|>tools<|sep|><|open|>call tool="find_text" index="1"<|sep|><|open|>argument key="pattern" type="string"'
    "<|sep|>a<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>"
)
MUSE = (
    '<atem:function_calls>\n<atem:invoke name="find_text">\n<atem:parameter name="pattern">a</atem:parameter>\n'
    "</atem:invoke>\n</atem:function_calls>"
)
PAIRS = (
    "<tool_call>find_text\n<arg_key>pattern</arg_key>\n<arg_value>a</arg_value>\n<arg_key>max</arg_key>\n"
    "<arg_value>3</arg_value>\n</tool_call>"
)


Row = tuple[str, str, list[tuple[str, ...]]]
FAMILIES: list[Row] = [
    ("json_tools", hermes('{"pattern": "a"}'), [A]),
    ("json_tools", hermes('{"pattern": "a"}') + "\n" + hermes('{"pattern": "b"}'), [A, B]),
    ("json_tools", f"<tool_call>[{JSON_A}]</tool_call>", [A]),
    ("json_tools", f"<tool_call>{JSON_A}\n{JSON_B}</tool_call>", [A, B]),
    ("json_tools", JSON_A, [A]),
    ("qwen3_coder", QWEN, [A]),
    ("qwen3_coder", QWEN.removeprefix("<tool_call>\n"), [A]),
    ("qwen3_coder", '<function=find_text>{"pattern": "a"}</function>', [A]),
    ("qwen3_coder", "<tool_call><function=set></function></tool_call>", [("call", "set", "{}")]),
    # Nemotron 3 is as Qwen 3 Coder; its elders:
    ("nemotron", f"<TOOLCALL>[{JSON_A}, {JSON_B}]</TOOLCALL>", [A, B]),
    ("gemma4", GEMMA, [("call", "find_text", '{"pattern":"a","max":3}')]),
    ("gemma4", GEMMA + GEMMA, [("call", "find_text", '{"pattern":"a","max":3}')] * 2),
    ("gemma4", '<|tool_call>call:set{note:<|"|>{"x\\d": [}<|"|>, tags:[<|"|>a<|"|>], on:true}<tool_call|>',
               [("call", "set", r'{"note":"{\"x\\d\": [}", "tags":["a"], "on":true}')]),
    ("function_gemma", "<start_function_call>call:find_text{pattern:<escape>a<escape>,max:3}<end_function_call>",
                       [("call", "find_text", '{"pattern":"a","max":3}')]),
    ("llama", f"<|python_tag|>{JSON_A}".replace("arguments", "parameters"), [A]),
    ("llama", f"{JSON_A}; {JSON_B}".replace("arguments", "parameters"), [A, B]),
    ("llama", '{"type": "function", "name": "find_text", "parameters": {"pattern": "a", "max": "3"}}', [A_MAX]),
    ("llama", '<|python_start|>[find_text(pattern="a"), find_text(pattern="b")]<|python_end|>', [A, B]),
    ("mistral", f'[TOOL_CALLS][{JSON_A[:-1]}, "id": "123456789"}}]', [A]),
    ("mistral", f"[TOOL_CALLS] [{JSON_A}, {JSON_B}]", [A, B]),
    ("mistral", '[TOOL_CALLS]find_text[ARGS]{"pattern": "a"}[TOOL_CALLS]find_text[ARGS]{"pattern": "b"}', [A, B]),
    ("mistral", '[TOOL_CALLS]find_text[CALL_ID]123456789[ARGS]{"pattern": "a"}', [A]),
    ("pythonic", '<|tool_call_start|>[find_text(pattern="a", max=3)]<|tool_call_end|>', [A_MAX]),
    ("pythonic", "<|tool_call_start|>[find_text(pattern='a'), find_text(pattern=\"b\")]<|tool_call_end|>", [A, B]),
    ("pythonic", "<|tool_call_start|>[set(on=True, note=None, tags=['x', \"y\"], any={'k': (1, .5)})]"
                 "<|tool_call_end|>",
                 [("call", "set", '{"on": true, "note": null, "tags": ["x", "y"], "any": {"k": [1, 0.5]}}')]),
    ("pythonic", "<|tool_call_start|>[set()]<|tool_call_end|>", [("call", "set", "{}")]),
    # MiniCPM 3 and 4, then 5
    ("pythonic", '<|tool_call_start|>\n```python\nfind_text(pattern="a")\n```\n<|tool_call_end|>', [A]),
    ("minicpm5", '<function name="find_text"><param name="pattern">a</param><param name="max">3</param></function>',
                 [A_MAX]),
    ("minicpm5", '<function name="find_text"><param name="pattern"><![CDATA[<a>\n]]&]]></param></function>',
                 [("call", "find_text", '{"pattern": "<a>\\n]]&"}')]),
    ("glm47", PAIRS, [A_MAX]),
    ("laguna", PAIRS, [A_MAX]),
    ("longcat", PAIRS.replace("arg_", "longcat_arg_").replace("tool_call", "longcat_tool_call"), [A_MAX]),
    ("minimax_m2", MINIMAX, [A_MAX, B]),
    ("muse_spark", MUSE, [A]),
    ("kimi_k2", KIMI_2, [A_MAX]),
    ("kimi_k3", KIMI_3, [A]),
    ("phi4", f"<|tool_call|>[{JSON_A}]<|/tool_call|>", [A]),
    ("command", '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "find_text", '
                '"parameters": {"pattern": "a"}}]<|END_ACTION|>', [A]),
    ("harmony", HARMONY, [("thinking", "hm"), A]),
    ("harmony", HARMONY.removesuffix("<|call|>"), [("thinking", "hm"), A]),
]  # fmt: skip


@pytest.mark.parametrize(("style", "text", "expected"), FAMILIES)
def test_every_family(style: str, text: str, expected: list[tuple[str, ...]]) -> None:
    parts = parse_every_way(OutputStyle(style), text)
    assert brief(parts) == expected
    if style != "harmony":
        assert "".join(part.call.lead + part.call.raw for part in parts if isinstance(part, ToolEnd)) == text
        after = "\n\n" if style != "mistral" else " \n"
        expected = [("content", "Look:"), *expected, ("content", f"{after}Done.")]
        if text.startswith("{"):
            expected = [("content", f"Look:\n{text}{after}Done.")]  # a call without a marker is the whole answer
        assert brief(parse_every_way(OutputStyle(style), f"Look:\n{text}{after}Done.")) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        # valid JSON comes through as it is
        ('{ "pattern" :\t"a\\n\\u00e9\\ud83e\\udd99 \\"q\\"" ,\n "max":-3 }', None),
        (r'{"pattern": "\d\s\.\("}', r'{"pattern": "\\d\\s\\.\\("}'),
        (r'{"pattern": "C:\Users\u12"}', r'{"pattern": "C:\\Users\\u12"}'),
        (r'{"pattern": "\ud83e!"}', r'{"pattern": "\ufffd!"}'),
        ('{"pattern": "a\nb\tc"}', r'{"pattern": "a\nb\tc"}'),
        ('{"pattern": "a",}', '{"pattern": "a"}'),
        ('{"pattern": "a",, "max": 3}', '{"pattern": "a", "max": 3}'),
        ('{"pattern": "a"\n "max": 3}', '{"pattern": "a"\n ,"max": 3}'),
        ("{'pattern': 'it\\'s \"a\"', 'max': 3}", '{"pattern": "it\'s \\"a\\"", "max": 3}'),
        ("{'pattern': 'it's'}", '{"pattern": "it\'s"}'),
        ('{pattern: "a", max: 3}', '{"pattern": "a", "max": 3}'),
        ('{"pattern": "say "hi", now"}', r'{"pattern": "say \"hi\", now"}'),
        ('{"pattern": a}', '{"pattern": "a"}'),
        ('{"pattern": "a", "max": 3', '{"pattern": "a", "max": 3}'),
        ('{"pattern": "a", "max": 3}}', '{"pattern": "a", "max": 3}'),
        ('{"pattern": ["a", {"b": 1}', '{"pattern": ["a", {"b": 1}]}'),
        ('{"pattern": , "max": 3}', '{"pattern":null, "max": 3}'),
        ('{"x": [1, 2,], "y": {"z": True,}}', '{"x": [1, 2], "y": {"z": true}}'),
        ('{"x": [.5, +1, 0x10, 1_000, 007, NaN, None]}', '{"x": [0.5, 1, 16, 1000, 7, null, null]}'),
        ('"{\\"pattern\\": \\"a\\"}"', '{"pattern": "a"}'),
        ("null", "{}"),
        # as the schema wants it
        ('{"max": "3"}', '{"max": 3}'),
        ('{"max": 3.0}', '{"max": 3}'),
        ('{"max": "many"}', '{"max": "many"}'),
        ('{"pattern": 3}', '{"pattern": "3"}'),
        ('{"pattern": null}', '{"pattern": null}'),
    ],
)
def test_json_is_repaired(arguments: str, expected: str | None) -> None:
    for style in ("json_tools", GENERIC):
        parts = parse_every_way(OutputStyle(style), hermes(arguments))
        assert brief(parts) == [("call", "find_text", arguments if expected is None else expected)]
        assert isinstance(json.loads(brief(parts)[0][2]), dict)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("on", "true", True),
        ("on", "False", False),
        ("on", "yes", True),
        ("note", "null", None),
        ("note", "null and more", "null and more"),
        ("note", "nu", "nu"),
        ("note", "", ""),
        ("tags", '["a", "b"]', ["a", "b"]),
        ("tags", "['a', 'b',]", ["a", "b"]),
        ("tags", "a", "a"),
        ("size", "0.5", 0.5),
        ("size", "7", 7),
        ("count", "7", 7),
        ("count", "null", None),
        ("key", "7", 7),
        ("key", "007", "007"),
        ("any", "7", "7"),
        ("any", '{"a": 1}', {"a": 1}),
        ("mode", "1", "1"),
        ("unknown", "7", "7"),
        ("unknown", '{"a": 1}', '{"a": 1}'),
        # text stays text, to the last space
        ("mode", "  two\n\n\tlines ", "  two\n\n\tlines "),
        ("mode", "\nx\n", "\nx\n"),
        ("mode", "if a < b and </b>: </parameter> x", "if a < b and </b>: </parameter> x"),
        ("mode", "<parameter=x>\n</function>\ny", "<parameter=x>\n</function>\ny"),
        ("mode", 'quotes " and \\ and \x00 and 🦙', 'quotes " and \\ and \x00 and 🦙'),
    ],
)
def test_xml_values_have_the_type_of_the_schema(key: str, value: str, expected: Any) -> None:
    found = brief(parse_every_way(OutputStyle("qwen3_coder"), xml(**{key: value})))
    assert [(kind, name, json.loads(arguments)) for kind, name, arguments in found] == [
        ("call", "set", {key: expected})
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Put it in <tool_call> and </tool_call> tags.",
        "`<function=find_text>` calls it, `<function=` does not.",
        "<tool_call>\nis a tag",
        '<tool_call>{"name": "nobody", "arguments": {"a": 1}}</tool_call>',
        '<tool_call>{"arguments": {"a": 1}, "name": "nobody"}</tool_call>',
        "<function=nobody><parameter=a>b</parameter></function>",
        '<tool_call>{"name": "find_text" is how you begin',
        '<tool_call>{"name": "find_text", "arguments": 5}</tool_call>',
        '<tool_call>{"name": "find_text", "pattern": "a"}</tool_call>',
        '<tool_call>{"pattern": "a"}</tool_call>',
        "[link](https://example.com) and [1, 2]",
        "[find_text] is a tool",
        '[find_text("a")]',
        '{"name": "Ann", "age": 3}',
        '{"name": "find_text"}',
        '{"name": "find_text", "age": 3}',
        '{"answer": 42}',
        "{",
        "a < b, c <",
        "  \n",
        "[TOOL_CALLS] is a token",
        "[TOOL_CALLS]nobody[ARGS]{}",
        "<|tool_call>call:nobody{}<tool_call|>",
        "<|tool_call_start|>[nobody(a=1)]<|tool_call_end|>",
        KIMI_2.replace("find_text", "nobody"),
        KIMI_2.replace("{", "").replace("}", ""),
        "<minimax:tool_call>\nno",
    ],
)
def test_what_is_no_call_is_text(text: str) -> None:
    for style in (GENERIC, "json_tools", "mistral", "llama"):
        assert brief(parse_every_way(OutputStyle(style), text)) == [("content", text)]


def test_without_tools_everything_is_text() -> None:
    for text in (P07_A, P07_B, KIMI_2):
        assert brief(parse_every_way(OutputStyle(GENERIC), text, tools=[])) == [("content", text)]


def test_a_call_behind_one_that_failed() -> None:
    text = "Write <tool_call> then " + hermes('{"pattern": "a"}')
    assert brief(parse_every_way(OutputStyle("json_tools"), text)) == [("content", "Write <tool_call> then"), A]
    listed = f'<TOOLCALL>[{JSON_A}, {{"name": "nobody", "arguments": {{}}}}]</TOOLCALL>'
    assert brief(parse_every_way(OutputStyle("nemotron"), listed)) == [
        A,
        ("content", '{"name": "nobody", "arguments": {}}]</TOOLCALL>'),
    ]


@pytest.mark.parametrize(
    ("style", "text", "stopped", "cut"),
    [
        # nothing of the arguments was there yet
        ("json_tools", '<tool_call>{"name": "find_text", "argum', "text", "text"),
        ("json_tools", "<tool_ca", "text", "text"),
        ("qwen3_coder", "<tool_call>\n<function=find_text>\n", "text", "text"),
        ("gemma4", "<|tool_call>call:find_text{", "text", "text"),
        ("kimi_k2", KIMI_2[:-50], "text", "text"),
        # half an argument
        ("json_tools", '<tool_call>{"name": "find_text", "arguments": {"pattern": "rm -r', '"rm -r"}', '"rm -r'),
        ("qwen3_coder", "<function=find_text><parameter=pattern>\nrm -r", '"rm -r"}', '"rm -r'),
        ("qwen3_coder", "<function=find_text><parameter=pattern>\nrm -r\n</param", '"rm -r\\n</param"}', '"rm -r'),
        ("qwen3_coder", "<function=find_text><parameter=pattern>\nrm -r\n</parameter>\n", '"rm -r"}', '"rm -r"'),
        ("pythonic", '<|tool_call_start|>[find_text(pattern="rm -r', '"rm -r"}', '"rm -r'),
        # all of them
        ("json_tools", '<tool_call>{"name": "find_text", "arguments": {"pattern": "ls"}', '"ls"}', "call"),
        ("json_tools", hermes('{"pattern": "ls"}')[:-5], '"ls"}', "call"),
        ("qwen3_coder", "<function=find_text><parameter=pattern>\nls\n</parameter>\n</function>\n", '"ls"}', "call"),
    ],
)
def test_text_that_ends_inside_a_call(style: str, text: str, stopped: str, cut: str) -> None:
    (found,) = brief(parse_every_way(OutputStyle(style), text))
    assert found[0] == "content" if stopped == "text" else found == ("call", "find_text", '{"pattern": ' + stopped)
    first, *more = brief(parse_every_way(OutputStyle(style), text, cut=True))
    if cut == "text":
        assert first[0] == "content" and first[1].strip() == text.strip()
    elif cut == "call":
        assert first[0] == "call"
    else:
        assert first[0] == "cut"
        assert first[2].startswith('{"pattern": "rm -r')
        assert json.loads(first[3])["pattern"].startswith("rm -r")
    assert not more


def test_arguments_are_streamed_as_they_come() -> None:
    for text in (hermes('{"pattern": "a long one"}'), P07_B.replace('a, "b"', "a long one")):
        parser = OutputParser(OutputStyle("json_tools"), TOOLS)
        begin = text.index(" long")
        parts = parser.feed(text[:begin])
        assert isinstance(parts[0], ToolStart)
        assert brief([*parts, *parser.feed(" long"), *parser.finish(cut=True)])[0][2] == '{"pattern": "a long'


def test_prose_is_held_back_only_while_it_may_be_a_marker() -> None:
    parser = OutputParser(OutputStyle("json_tools"), TOOLS)
    assert brief(parser.feed("a <fun")) == [("content", "a")]
    assert brief(parser.feed("ny")) == [("content", " <funny")]


@pytest.mark.parametrize("style", sorted(STYLES))
def test_no_marker_begins_another(style: str) -> None:
    for one, other in permutations(openers(style), 2):
        assert not one.startswith(other)


@pytest.mark.parametrize(
    ("template", "vocabulary", "style"),
    [
        ('<tool_call>\\n{\\"name\\": tool_call.name', [], "json_tools"),
        ("<tool_call>\n<function=' + tool_call.name + '>\n<parameter=", [], "qwen3_coder"),
        ("<|tool_call>call:x<tool_call|>", [], "gemma4"),
        ("[TOOL_CALLS]", [], "mistral"),
        ("List of tools: <|tool_list_start|>", [], "pythonic"),
        ("{{ tools }}", ["<|tool_call_start|>", "<|tool_call_end|>"], "pythonic"),
        ('<function name="fn"><param name="p">', [], "minicpm5"),
        ("<TOOLCALL>{{ tools }}", [], "nemotron"),
        ("<tool_call>{{ x }}<arg_key>", [], "glm47"),
        ('Environment: ipython {"name": function name, "parameters": dictionary of argument name', [], "llama"),
        ("{{ tools }}", ["<|python_tag|>"], "llama"),
        ("<|start|>assistant<|channel|>final<|message|>", [], "harmony"),
        ("{% if tools %}", [], GENERIC),
        ("{{ messages }}", [], None),
        (None, [], None),
    ],
)
def test_detect(template: str | None, vocabulary: list[str], style: str | None) -> None:
    assert detect(template, vocabulary).tools == style


def test_the_tokenizers_own_word_on_its_style_counts() -> None:
    assert detect("<tool_call>", (), "glm47").tools == "glm47"
    assert detect("<tool_call>", (), "of_next_year").tools == "json_tools"


def test_call_ids_cannot_be_guessed() -> None:
    parser = OutputParser(OutputStyle("json_tools"), TOOLS)
    ids = {part.id for part in parser.feed(P07_A + P07_A) if isinstance(part, ToolStart)}
    assert len(ids) == 2 and all(len(call_id) >= 24 for call_id in ids)


def test_names_with_a_namespace() -> None:
    assert brief(parse(OutputStyle("json_tools"), [hermes('{"pattern": "a"}', "functions.find_text")])) == [A]
