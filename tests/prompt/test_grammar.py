"""Schemas that are refused, the tokens a grammar allows, and forced tool calls."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from slipstream.errors import InvalidRequest
from slipstream.prompt.constraint import Constraint, Vocabulary
from slipstream.prompt.grammar import tool_grammar
from slipstream.prompt.output import OutputParser, OutputStyle, ToolEnd
from slipstream.prompt.schema import (
    MAX_DEPTH,
    MAX_ENUM_VALUES,
    MAX_OPTIONAL,
    MAX_PROPERTIES,
    MAX_SCHEMA_BYTES,
    check_schema,
)
from slipstream.types import Grammar
from tiny_runs import BYTES, END, _byte_characters, write_tokenizer

WIDTH = 270  # more than the tokenizer has


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    """Every byte is a token."""
    folder = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(folder)
    return Vocabulary(AutoTokenizer.from_pretrained(folder), WIDTH, (END,))


MERGES = ('{"', '":', ", ", ', "', "tr", "ue", "true", "na", "me", "name", '"name', ' "', "12", '"}', "e]")


@pytest.fixture(scope="module")
def pieces() -> Vocabulary:
    """Bytes, and tokens of several characters that overlap what a grammar forces."""
    characters = _byte_characters()
    vocabulary = {character: byte for byte, character in characters.items()}
    merges: list[tuple[str, str]] = []
    for text in MERGES:
        spelled = "".join(characters[byte] for byte in text.encode())
        left = next(
            cut for cut in range(len(spelled) - 1, 0, -1) if {spelled[:cut], spelled[cut:]} <= vocabulary.keys()
        )
        merges.append((spelled[:left], spelled[left:]))
        vocabulary[spelled] = len(vocabulary)
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<end>"])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>")
    return Vocabulary(fast, len(vocabulary) + 40, (len(vocabulary),))


def schema_of(schema: object) -> Grammar:
    return Grammar("json_schema", json.dumps(schema))


def legal(constraint: Constraint, drafts: Sequence[int] = ()) -> list[set[int]]:
    masks = np.array(constraint.masks(drafts))
    assert masks.shape[0] == len(drafts) + 1
    return [set(np.flatnonzero(row).tolist()) for row in masks]


def takes(grammar: Grammar, vocabulary: Vocabulary, text: str) -> bool:
    """Whether the text is a whole answer."""
    constraint = Constraint(grammar, vocabulary)
    ids = list(text.encode())
    return (
        constraint.legal_prefix(ids) == len(ids)
        and constraint.legal_prefix([*ids, END]) >= len(ids)
        and (constraint.commit(ids) == len(ids) and (constraint.is_finished or END in legal(constraint)[0]))
    )


LANGUAGES: dict[str, tuple[object, list[object]]] = {
    "enum": ({"enum": ["ab", "abc", "b", 7, None]}, ["ab", "abc", "b", 7, None]),
    "bounds": ({"type": "integer", "minimum": 8, "maximum": 112}, list(range(8, 113))),
    "object": (
        {
            "type": "object",
            "properties": {"name": {"enum": ["x", "né"]}, "on": {"type": "boolean"}},
            "required": ["name"],
            "additionalProperties": False,
        },
        [{"name": name, **on} for name in ("x", "né") for on in ({}, {"on": True}, {"on": False})],
    ),
    "array": (
        {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 2},
        [[True], [False], *([one, two] for one in (True, False) for two in (True, False))],
    ),
    "pattern": ({"type": "string", "pattern": "^a?b{1,2}$"}, ["b", "bb", "ab", "abb"]),
}


@pytest.mark.parametrize("name", LANGUAGES)
def test_masks_are_what_enumeration_of_the_language_gives(name: str, letters: Vocabulary) -> None:
    schema, values = LANGUAGES[name]
    texts = [json.dumps(value, ensure_ascii=False).encode() for value in values]
    for text in texts:
        constraint = Constraint(schema_of(schema), letters)
        rows = legal(constraint, list(text[:-1]))
        for done, row in enumerate(rows):
            said = text[:done]
            goes_on = {other[done] for other in texts if other.startswith(said) and len(other) > done}
            assert row == goes_on | ({END} if said in texts else set())
        assert legal(constraint)[0] == rows[0]  # nothing advanced
        assert constraint.commit(list(text)) == len(text)
        is_whole = not any(other.startswith(text) and other != text for other in texts)
        assert constraint.is_finished == is_whole
        if not is_whole:
            assert constraint.commit([END]) == 1
        assert constraint.is_finished
        assert constraint.commit([END, 5]) == 0


def walk(vocabulary: Vocabulary, grammar: Grammar, seed: int, steps: int = 60) -> list[int]:
    constraint = Constraint(grammar, vocabulary)
    choose = np.random.default_rng(seed)
    said: list[int] = []
    while not constraint.is_finished and len(said) < steps:
        token = int(choose.choice(sorted(legal(constraint)[0])))
        assert constraint.commit([token]) == 1
        said.append(token)
    return said


@pytest.mark.parametrize("seed", range(8))
def test_masks_ahead_of_drafts_are_those_met_one_by_one(seed: int, pieces: Vocabulary) -> None:
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 6},
            "names": {"type": "array", "items": {"enum": ["name", "true", 12]}, "minItems": 1, "maxItems": 3},
            "true": {"type": "boolean"},
        },
        "required": ["name", "names"],
        "additionalProperties": False,
    }
    said = walk(pieces, schema_of(schema), seed)
    one_by_one = Constraint(schema_of(schema), pieces)
    rows: list[set[int]] = []
    for token in said:
        rows += legal(one_by_one)
        one_by_one.commit([token])
    blocks = Constraint(schema_of(schema), pieces)
    at = 0
    while at < len(said):
        block = said[at : at + 1 + (at * 7 + seed) % 6]
        forced = blocks.forced()
        assert blocks.legal_prefix(forced) == len(forced)
        assert blocks.legal_prefix([*block, 0]) == len(block) or 0 in legal(blocks, block)[-1]
        assert legal(blocks, block)[:-1] == rows[at : at + len(block)]
        assert blocks.commit(block) == len(block)
        at += len(block)
    assert blocks.is_finished == one_by_one.is_finished


def test_a_tokenizer_of_pieces_writes_the_same_texts(pieces: Vocabulary) -> None:
    texts: set[str] = set()
    schema = {"type": "array", "items": {"enum": ["name", True, 12]}, "minItems": 1, "maxItems": 2}
    for seed in range(40):
        said = walk(pieces, schema_of(schema), seed)
        texts.add(pieces.tokens.decode_str([token for token in said if token != pieces.tokens.eos_token]))
    values = ["name", True, 12]
    assert texts <= {
        json.dumps(value) for value in [[one] for one in values] + [[a, b] for a in values for b in values]
    }
    assert len(texts) > 6


def test_what_only_one_text_fits_is_forced(letters: Vocabulary) -> None:
    schema = {"type": "object", "properties": {"place": {"type": "boolean"}}, "required": ["place"]}
    constraint = Constraint(schema_of(schema), letters)
    assert bytes(constraint.forced()) == b'{"place": '
    constraint.commit(list(b'{"place": f'))
    assert bytes(constraint.forced()) == b"alse"


def test_drafts_are_legal_up_to_the_one_that_finishes(letters: Vocabulary) -> None:
    constraint = Constraint(schema_of({"enum": ["on", "off"]}), letters)
    assert constraint.legal_prefix([]) == 0
    assert constraint.legal_prefix(list(b'"onx"')) == 3
    assert constraint.legal_prefix([*b'"on"', END, END, 5]) == 4
    assert constraint.legal_prefix([*b'"on"', 34]) == 4
    assert constraint.legal_prefix([WIDTH - 1]) == 0
    assert not constraint.is_finished
    number = Constraint(schema_of({"type": "integer"}), letters)
    assert number.legal_prefix([END]) == 0
    assert number.legal_prefix([*b"12", END, *b"12"]) == 3


@pytest.mark.parametrize(
    ("grammar", "text"),
    [
        (Grammar("regex", "a+b"), "aab"),
        (Grammar("lark", 'start: "x" NUMBER\nNUMBER: /[0-9]{2}/\n'), "x12"),
    ],
)
def test_regular_expressions_and_lark(grammar: Grammar, text: str, letters: Vocabulary) -> None:
    assert takes(grammar, letters, text)
    assert not takes(grammar, letters, text[:-1])


@pytest.mark.parametrize(
    "grammar",
    [
        Grammar("regex", "a("),
        Grammar("lark", "start: nobody"),
        Grammar("json_schema", "[1"),
        Grammar("json_schema", '"x"'),
        schema_of({"type": "array", "uniqueItems": True}),
        schema_of({"$ref": "#"}),
        Grammar("regex", "a" * 2_000_000),
    ],
)
def test_a_grammar_that_cannot_be_followed_is_refused(grammar: Grammar, letters: Vocabulary) -> None:
    with pytest.raises(InvalidRequest):
        Constraint(grammar, letters)


SUPPORTED: list[dict[str, Any]] = [
    {},
    {"type": "object"},
    {"type": ["string", "null"], "minLength": 1, "maxLength": 9},
    {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
    {"type": "string", "format": "date-time"},
    {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "multipleOf": 0.25},
    {"const": {"a": [1, None]}},
    {"enum": [1, "a", None]},
    {"type": "array", "prefixItems": [{"type": "string"}], "items": False},
    {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/node"}], "$defs": {"node": {"type": "object"}}},
    {"oneOf": [{"properties": {"k": {"const": k}}, "required": ["k"], "type": "object"} for k in "ab"]},
    {"allOf": [{"type": "integer"}, {"minimum": 3}]},
    {"type": "object", "patternProperties": {"^x": {"type": "string"}}, "additionalProperties": False},
    {"$ref": "#/$defs/n", "$defs": {"n": {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}}}},
    {
        "title": "T",
        "description": "d",
        "default": 1,
        "examples": [2],
        "$schema": "http://json-schema.org/draft-07/schema#",
        "deprecated": True,
    },
    # No keyword, though it is spelled like one.
    {"type": "object", "properties": {"not": {"type": "string"}, "enum": {"type": "integer"}}},
    {"type": "object", "$defs": {"unused": {"not": {}}}},
]


@pytest.mark.parametrize("schema", SUPPORTED, ids=json.dumps)
def test_supported_schemas_pass(schema: dict[str, Any]) -> None:
    check_schema(schema)


UNSUPPORTED: list[tuple[str, dict[str, Any]]] = [
    ("/not", {"not": {"type": "string"}}),
    ("/properties/a~1b/not", {"type": "object", "properties": {"a/b": {"not": {}}}}),
    ("/items/uniqueItems", {"type": "array", "items": {"type": "array", "uniqueItems": True}}),
    ("/anyOf/1/contains", {"anyOf": [{"type": "null"}, {"type": "array", "contains": {}}]}),
    ("/$defs/x/propertyNames", {"$ref": "#/$defs/x", "$defs": {"x": {"type": "object", "propertyNames": {}}}}),
    (
        "/definitions/x/if",
        {"properties": {"p": {"$ref": "#/definitions/x"}}, "definitions": {"x": {"if": {}, "then": {}}}},
    ),
    ("/properties/a/format", {"properties": {"a": {"type": "string", "format": "no-such"}}}),
    ("/properties/a/pattern", {"properties": {"a": {"type": "string", "pattern": "(?=x)"}}}),
    ("/properties/a/pattern", {"properties": {"a": {"type": "string", "pattern": "(x)\\1"}}}),
    ("/additionalProperties/oneOf", {"additionalProperties": {"oneOf": [{"type": "integer"}, {"type": "number"}]}}),
    ("/$ref", {"$ref": "https://example.org/s"}),
    ("/properties/a/$ref", {"properties": {"a": {"$ref": "#/$defs/none"}}}),
    ("/type", {"type": "text"}),
    ("", {"type": "integer", "minimum": 5, "maximum": 3}),
    ("/properties/a", {"properties": {"a": {"const": 2**70}}}),  # schemathesis: no 64 bits hold it
    ("/dependentRequired", {"dependentRequired": {"a": ["b"]}}),
    ("/unevaluatedProperties", {"unevaluatedProperties": False}),
]


@pytest.mark.parametrize(("pointer", "schema"), UNSUPPORTED, ids=lambda value: json.dumps(value)[:60])
def test_unsupported_schemas_are_refused_with_the_pointer(pointer: str, schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        check_schema(schema)
    assert f'"{pointer}"' in caught.value.message
    assert caught.value.facts["pointer"] == pointer
    assert "\n" not in caught.value.message


def _deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return schema


def _wide(count: int, *, optional: bool) -> dict[str, Any]:
    names = [f"p{index}" for index in range(count)]
    required = [] if optional else names
    return {"type": "object", "properties": {name: {"type": "integer"} for name in names}, "required": required}


HUGE: dict[str, Callable[[], dict[str, Any]]] = {
    "deep": lambda: _deep(MAX_DEPTH),
    "very deep": lambda: _deep(200_000),
    "properties": lambda: _wide(MAX_PROPERTIES + 1, optional=False),
    "optional": lambda: _wide(MAX_OPTIONAL + 1, optional=True),
    "enum": lambda: {"enum": list(range(MAX_ENUM_VALUES + 1))},
    "bytes": lambda: {"description": "x" * MAX_SCHEMA_BYTES},
    "explosion": lambda: {
        "$ref": "#/$defs/d0",
        "$defs": {
            f"d{n}": {"allOf": [{"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"minLength": n}]}] * 3} for n in range(20)
        }
        | {"d20": {"type": "string"}},
    },
}


@pytest.mark.parametrize("name", HUGE)
def test_huge_schemas_are_refused_quickly(name: str) -> None:
    schema = HUGE[name]()
    began = time.monotonic()
    with pytest.raises(InvalidRequest):
        check_schema(schema)
    assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    "schema", [_deep(MAX_DEPTH - 1), _wide(MAX_PROPERTIES, optional=False), _wide(MAX_OPTIONAL, optional=True)]
)
def test_schemas_at_the_bounds_can_be_followed(schema: dict[str, Any], letters: Vocabulary) -> None:
    check_schema(schema)
    constraint = Constraint(schema_of(schema), letters)
    for token in b'{"p' if "properties" in schema else b"[" * (MAX_DEPTH - 1) + b'"':
        assert token in legal(constraint)[0]
        constraint.commit([token])


WEATHER = {
    "name": "weather",
    "description": "Tells the weather.",
    "parameters": {
        "type": "object",
        "properties": {"place": {"type": "string"}, "unit": {"enum": ["C", "F"]}},
        "required": ["place"],
    },
}
CLOCK = {"name": 'clock"é', "parameters": {"type": "object", "properties": {}}}
TOOLS = [{"type": "function", "function": WEATHER}, {"type": "function", "function": CLOCK}]
OSLO = '{"name": "weather", "arguments": {"place": "Oslo", "unit": "C"}}'


def tags(call: str) -> str:
    return f"<tool_call>\n{call}\n</tool_call>"


def test_required_forces_a_call_of_any_tool(letters: Vocabulary) -> None:
    grammar = tool_grammar(TOOLS, "required", "json_tools")
    assert takes(grammar, letters, tags(OSLO))
    assert takes(grammar, letters, tags('{"name": "clock\\"é", "arguments": {}}'))
    assert not takes(grammar, letters, tags('{"name": "nobody", "arguments": {}}'))
    assert not takes(grammar, letters, tags('{"name": "weather", "arguments": {"unit": "C"}}'))
    assert not takes(grammar, letters, tags('{"name": "weather", "arguments": {"place": "Oslo", "more": 1}}'))
    assert not takes(grammar, letters, "It rains.")
    assert not takes(grammar, letters, tags(OSLO) + "\n" + tags(OSLO))


def test_a_name_forces_that_tool(letters: Vocabulary) -> None:
    grammar = tool_grammar(TOOLS, "weather", "generic")
    assert takes(grammar, letters, tags(OSLO))
    assert not takes(grammar, letters, tags('{"name": "clock\\"é", "arguments": {}}'))
    with pytest.raises(InvalidRequest, match="nobody"):
        tool_grammar(TOOLS, "nobody", "generic")
    with pytest.raises(InvalidRequest):
        tool_grammar([], "required", "generic")


CALLS = {
    "json_tools": (tags(OSLO), tags(OSLO) + "\n" + tags(OSLO)),
    "generic": (tags(OSLO), tags(OSLO) + "\n" + tags(OSLO)),
    "nemotron": (f"<TOOLCALL>[{OSLO}]</TOOLCALL>", f"<TOOLCALL>[{OSLO}, {OSLO}]</TOOLCALL>"),
    "llama": tuple("; ".join([OSLO.replace("arguments", "parameters")] * count) for count in (1, 2)),
}


@pytest.mark.parametrize("style", CALLS)
def test_forced_calls_are_what_the_style_reads(style: str, letters: Vocabulary) -> None:
    one, two = CALLS[style]
    assert takes(tool_grammar(TOOLS, "required", style), letters, one)
    assert takes(tool_grammar(TOOLS, "required", style, parallel=True), letters, one)
    assert takes(tool_grammar(TOOLS, "required", style, parallel=True), letters, two)
    for text, count in ((one, 1), (two, 2)):
        parser = OutputParser(OutputStyle(style), TOOLS)
        parts = [*parser.feed(text), *parser.finish()]
        calls = [part.call for part in parts if isinstance(part, ToolEnd)]
        assert [call.name for call in calls] == ["weather"] * count
        assert json.loads(calls[0].arguments_json) == {"place": "Oslo", "unit": "C"}


def test_styles_without_json_fall_back_to_the_generic_markup() -> None:
    generic = tool_grammar(TOOLS, "required", "generic")
    assert tool_grammar(TOOLS, "required", "gemma4") == generic
    assert tool_grammar(TOOLS, "required", None) == generic


def test_tools_come_in_every_shape() -> None:
    flat: list[dict[str, Any]] = [{"type": "function", **WEATHER}]
    anthropic = [{"name": "weather", "input_schema": WEATHER["parameters"]}]
    nested = [TOOLS[0]]
    grammars = {tool_grammar(cast(Any, tools), "required", "generic").text for tools in (flat, anthropic, nested)}
    assert len(grammars) == 1


def test_only_strict_tools_are_refused_for_their_schema(letters: Vocabulary) -> None:
    parameters = {
        "type": "object",
        "properties": {"tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True}},
        "required": ["tags"],
    }
    with pytest.raises(InvalidRequest, match="/properties/tags/uniqueItems") as caught:
        tool_grammar([{"name": "tag", "parameters": parameters, "strict": True}], "tag", "generic")
    assert caught.value.facts["tool"] == "tag"
    lenient = tool_grammar([{"name": "tag", "parameters": parameters}], "tag", "generic")
    assert takes(lenient, letters, tags('{"name": "tag", "arguments": {"tags": ["a"]}}'))
    assert not takes(lenient, letters, tags('{"name": "tag", "arguments": {"tags": 1}}'))
    hopeless = {**parameters, "properties": {"tags": {"type": "string", "pattern": "(?=x)"}}}
    anything = tool_grammar([{"name": "tag", "parameters": hopeless}], "tag", "generic")
    assert takes(anything, letters, tags('{"name": "tag", "arguments": {"tags": 1}}'))


def test_a_vocabulary_needs_an_end_token(tmp_path: Path) -> None:
    write_tokenizer(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    with pytest.raises(InvalidRequest):
        Vocabulary(tokenizer, BYTES, ())
