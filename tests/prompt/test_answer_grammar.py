"""What a whole answer may be: thoughts, then JSON or calls; the tags as the vocabulary has them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from transformers import AddedToken, AutoTokenizer

from prompt.pieces import TOOLS, brief, parse
from prompt.test_grammar import takes
from slipstream.errors import InvalidRequest
from slipstream.prompt.constraint import Constraint, Vocabulary
from slipstream.prompt.grammar import Thoughts, answer_grammar, written_style
from slipstream.prompt.output import OutputStyle
from slipstream.prompt.tools import GENERIC, STYLES
from slipstream.types import Grammar
from tiny_runs import END, write_tokenizer

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
JSON = '{"a": 12}'
CALL = '<tool_call>\n{"name": "find_text", "arguments": {"pattern": "x"}}\n</tool_call>'
BAD_CALL = '<tool_call>\n{"name": "find_text", "arguments": {"max": 3}}\n</tool_call>'
STRICT = [{**TOOLS[0], "strict": True}, TOOLS[1]]

# None of them in the vocabulary; all of them special, as most have them; ordinary tokens that only look so to us.
TAGS = (
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "[THINK]",
    "[/THINK]",
    "◁think▷",
    "◁/think▷",
    "<|channel>",
)
HARMONY = ("<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|end|>", "<|call|>")


@pytest.fixture(scope="module", params=["text", "special", "ordinary"])
def vocabulary(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    folder = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    if request.param != "text":
        is_special = request.param == "special"
        tokenizer.add_tokens([AddedToken(tag, special=is_special, normalized=False) for tag in (*TAGS, *HARMONY)])
    return Vocabulary(tokenizer, len(tokenizer), (END,))


def answers(grammar: Grammar | None, vocabulary: Vocabulary, text: str) -> bool:
    """Whether the text, as the tokenizer writes it, may be the whole answer."""
    assert grammar is not None
    constraint = Constraint(grammar, vocabulary)
    ids = vocabulary._tokenizer.encode(text, add_special_tokens=False)
    if constraint.legal_prefix(ids) < len(ids):
        return False
    constraint.commit(ids)
    return constraint.is_finished or constraint.legal_prefix([END]) == 1


@pytest.mark.parametrize(
    ("start", "end"),
    [("<think>", "</think>"), ("[THINK]", "[/THINK]"), ("◁think▷", "◁/think▷"), ("<thought>", "</thought>")],
)
def test_json_begins_behind_the_thoughts(start: str, end: str, vocabulary: Vocabulary) -> None:
    may = answer_grammar(SCHEMA, thoughts=Thoughts(start, end))
    inside = 'hm {"a": no} < <b> 🙂\n'
    assert answers(may, vocabulary, JSON)
    assert answers(may, vocabulary, f"{start}{inside}{end}\n\n{JSON}")
    assert answers(may, vocabulary, f"{start}{end}{JSON}")
    assert not answers(may, vocabulary, f"{start}{inside}{end}")
    assert not answers(may, vocabulary, f"{start}{inside}")
    assert not answers(may, vocabulary, inside)
    assert not answers(may, vocabulary, f"{start}{inside}{end}\n\n{JSON} Done.")
    is_open = answer_grammar(SCHEMA, thoughts=Thoughts(start, end, is_open=True))
    assert answers(is_open, vocabulary, f"{inside}{end}\n\n{JSON}")
    assert not answers(is_open, vocabulary, JSON)


def test_a_tag_of_several_tokens(vocabulary: Vocabulary) -> None:
    may = answer_grammar(SCHEMA, thoughts=Thoughts("<|channel>thought", "<channel|>"))
    assert answers(may, vocabulary, f"<|channel>thought\nhm<channel|>{JSON}")
    assert not answers(may, vocabulary, f"<|channel>other\nhm<channel|>{JSON}")


def test_beside_a_schema_the_tools_may_be_called(vocabulary: Vocabulary) -> None:
    either = answer_grammar(SCHEMA, TOOLS)
    assert answers(either, vocabulary, JSON)
    assert answers(either, vocabulary, CALL)
    assert answers(either, vocabulary, f"{CALL}\n{CALL}")
    assert not answers(answer_grammar(SCHEMA, TOOLS, parallel=False), vocabulary, f"{CALL}\n{CALL}")
    assert not answers(either, vocabulary, BAD_CALL)
    assert not answers(either, vocabulary, "Look: ")


def test_calls_of_strict_tools_are_right_and_the_rest_is_free(vocabulary: Vocabulary) -> None:
    free = answer_grammar(None, STRICT, style="json_tools", thoughts=Thoughts("<think>", "</think>"))
    for text in (
        "",
        "Hello.",
        "a < b <tool",
        CALL,
        f"Look:\n{CALL}",
        f"{CALL}\n{CALL}",
        f"<think>hm</think>\n\nI see. {CALL}",
    ):
        assert answers(free, vocabulary, text), text
    for text in (BAD_CALL, f"Look: {BAD_CALL}", "x <tool_call>\nfind", f"{CALL}\n{BAD_CALL}"):
        assert not answers(free, vocabulary, text), text
    assert not answers(answer_grammar(None, STRICT, style="json_tools", parallel=False), vocabulary, f"{CALL}\n{CALL}")
    assert answer_grammar(None, TOOLS, style="json_tools") is None
    assert answer_grammar(None, STRICT, style="llama") is None
    with pytest.raises(InvalidRequest, match="/uniqueItems"):
        answer_grammar(None, [{"name": "x", "strict": True, "parameters": {"uniqueItems": True}}])


def test_channels(vocabulary: Vocabulary) -> None:
    thought = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant"
    final = f"<|channel|>final<|message|>{JSON}"
    form = answer_grammar(SCHEMA, style="harmony")
    assert answers(form, vocabulary, thought + final)
    assert answers(form, vocabulary, final)
    assert not answers(form, vocabulary, JSON)
    assert brief(parse(OutputStyle("harmony"), [thought + final])) == [("thinking", "hm"), ("content", JSON)]
    forced = answer_grammar(None, TOOLS, "find_text", "harmony")
    call = '<|channel|>commentary to=functions.find_text <|constrain|>json<|message|>{"pattern": "x"}'
    assert answers(forced, vocabulary, thought + call)
    assert not answers(forced, vocabulary, thought + final)
    said = brief(parse(OutputStyle("harmony"), [thought + call]))
    assert said == [("thinking", "hm"), ("call", "find_text", '{"pattern": "x"}')]


@pytest.mark.parametrize("style", [*STYLES, None])
def test_a_forced_call_is_read_by_the_style_it_is_written_in(style: str | None, vocabulary: Vocabulary) -> None:
    grammar = answer_grammar(None, TOOLS, "required", style)
    written = written_style(style)
    call = {
        "llama": '{"name": "find_text", "parameters": {"pattern": "x"}}',
        "nemotron": '<TOOLCALL>[{"name": "find_text", "arguments": {"pattern": "x"}}]</TOOLCALL>',
        "harmony": '<|channel|>commentary to=functions.find_text <|constrain|>json<|message|>{"pattern": "x"}',
    }.get(written, CALL)
    assert answers(grammar, vocabulary, call)
    assert brief(parse(OutputStyle(written), [call])) == [("call", "find_text", '{"pattern": "x"}')]


def test_a_name_cannot_write_the_grammar(vocabulary: Vocabulary) -> None:
    names = ('x" | "y', "tag_0", "a\nstart: ANYTHING", '"}} %json {', "naïve 🙂")
    tools: list[dict[str, Any]] = [{"name": name, "parameters": {"type": "object", "properties": {}}} for name in names]
    grammar = answer_grammar({"type": "string", "enum": ["tag_0 \n start: x"]}, tools)
    for name in names:
        body = json.dumps({"name": name, "arguments": {}}, ensure_ascii=False)
        assert answers(grammar, vocabulary, f"<tool_call>\n{body}\n</tool_call>")
    assert not answers(grammar, vocabulary, "y")


def test_a_schema_alone_is_what_it_was(vocabulary: Vocabulary) -> None:
    assert answer_grammar(SCHEMA) == Grammar("json_schema", json.dumps(SCHEMA))
    assert answer_grammar(None) is None
    assert written_style("gemma4") == GENERIC
    assert takes(Grammar("json_schema", json.dumps(SCHEMA)), vocabulary, JSON)
