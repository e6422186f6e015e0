"""What an answer may look like, as text for llguidance: JSON schemas checked, forced tool calls spelled out.

Knows no tokenizer and no MLX, so that an HTTP route can refuse a schema before the engine sees it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from llguidance import LLMatcher, LLParserLimits

from slipstream.errors import InvalidRequest
from slipstream.prompt.tools import GENERIC, HARMONY
from slipstream.types import Grammar

if TYPE_CHECKING:
    from llguidance._lib import JsonCompileOptions  # its stubs have it, the module does not

Schema = Mapping[str, Any]  # Any: a schema is any JSON

# At these bounds a schema compiles in half a second; beyond them in many, or the parser gives up while decoding.
MAX_SCHEMA_BYTES = 256 * 1024
MAX_GRAMMAR_BYTES = 1024 * 1024  # the tools of a request together
MAX_DEPTH = 64  # brackets within brackets; llguidance's JSON reader stops at 128
MAX_PROPERTIES = 1000  # in the whole schema
MAX_OPTIONAL = 400  # optional properties of one object: the parser holds up to 2000 ways to go on, 4 for each
MAX_ENUM_VALUES = 5000  # in the whole schema
LOCATE_S = 0.3  # time to find out which part of a schema is at fault

# Bounds the work of one compilation (fuel: some 50,000 a ms) and of one mask (14,000 a ms), and their memory
# (1 to 2 kB a state).
LIMITS = LLParserLimits(
    initial_lexer_fuel=1_000_000,
    step_lexer_fuel=200_000,
    step_max_items=50_000,
    max_items_in_row=2000,
    max_lexer_states=50_000,
    max_grammar_size=200_000,
    verbose_errors=False,
)

# JSON is written as json.dumps does. Left to themselves, models under a grammar may write white space for ever; and
# where there is one way to go on, tokens are forced, which makes them free drafts.
_STRICT: JsonCompileOptions = {
    "whitespace_flexible": False,
    "item_separator": ", ",
    "key_separator": ": ",
    "lenient": False,
    "coerce_one_of": False,
}
_LENIENT: JsonCompileOptions = {**_STRICT, "lenient": True, "coerce_one_of": True}


def check_schema(schema: Schema) -> None:
    """Raises InvalidRequest, with the JSON pointer, for what no answer can be held to or what is too large."""
    _check_size(schema)
    complaint = _complaint(schema)
    if complaint is None:
        return
    pointer, part = _locate(schema, complaint)
    if unknown := re.fullmatch(r'Unimplemented keys: \["([^"]+)".*\]', complaint):
        keyword = unknown[1]
        raise _refusal(_join(pointer, keyword), f"the keyword {keyword} is not supported; leave it out")
    for sign, keyword in _KEYWORDS.items():
        if sign in complaint and keyword in part:
            pointer = _join(pointer, keyword)
            break
    # A complaint of the regex reader is a drawing of several lines; its last says why.
    raise _refusal(pointer, complaint.strip().splitlines()[-1].removeprefix("error: "))


# What is said about which keyword.
_KEYWORDS = {
    "Unknown format": "format",
    "Invalid type": "type",
    "regex": "pattern",
    "lookaround": "pattern",
    "oneOf": "oneOf",
    "Resource '": "$ref",
    "Pointer '": "$ref",
    "anyOf is empty": "enum",
}


def source(grammar: Grammar, spell: Callable[[str], Sequence[str | int]] = lambda text: (text,)) -> str:
    """The grammar in llguidance's own form. It is checked when a matcher is made of it.

    `spell`: a tag as the vocabulary has it, pieces of text and ids of special tokens.
    """
    size = len(grammar.text.encode("utf-8", "replace"))
    if size > MAX_GRAMMAR_BYTES:
        raise InvalidRequest(f"the grammar is too large: {size} bytes > {MAX_GRAMMAR_BYTES}; make it smaller")
    match grammar.kind:
        case "json_schema":
            try:
                return LLMatcher.grammar_from_json_schema(grammar.text, overrides=_STRICT)
            except ValueError as error:
                raise InvalidRequest(f"the JSON schema is no JSON object: {error}") from error
        case "regex":
            return LLMatcher.grammar_from_regex(grammar.text)
        case "lark":
            rules = [rule for index, tag in enumerate(grammar.tags) for rule in _tag_rules(index, spell(tag))]
            return LLMatcher.grammar_from_lark("\n".join([grammar.text, *([_ANYTHING] if rules else []), *rules]))


_ANYTHING = r"ANYTHING: /(?s:.+)/"


def _tag_rules(index: int, pieces: Sequence[str | int]) -> Iterator[str]:
    """A special token never is part of what ANYTHING stands for; text is, so that its first occurrence must end it."""
    spelled = [f"<[{piece}]>" if isinstance(piece, int) else _quoted(piece) for piece in pieces]
    yield f"tag_{index}: {' '.join(spelled)}"
    if isinstance(pieces[0], int):
        yield f"until_{index}: ANYTHING? tag_{index}"
        return
    yield f"until_{index}: before_{index} {' '.join(spelled[1:])}".rstrip()
    yield f"before_{index}[suffix={spelled[0]}]: /(?s:.*)/"


def _refusal(pointer: str, reason: str) -> InvalidRequest:
    return InvalidRequest(f'schema at "{pointer}": {reason}', pointer=pointer)


def _complaint(schema: Schema, options: JsonCompileOptions = _STRICT) -> str | None:
    """What llguidance has against a schema."""
    try:
        text = LLMatcher.grammar_from_json_schema(dict(schema), overrides=options)
    except ValueError as error:  # a whole number of more than 64 bits
        return str(error)
    is_wrong, messages = LLMatcher.validate_grammar_with_warnings(text, limits=LIMITS)
    return messages[0] if is_wrong else None


_DEFINITIONS = ("$defs", "definitions")
_MAPS = (*_DEFINITIONS, "properties", "patternProperties", "dependentSchemas")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_SINGLE = (
    *("items", "additionalItems", "additionalProperties", "unevaluatedItems", "unevaluatedProperties"),
    *("contains", "propertyNames", "contentSchema", "not", "if", "then", "else"),
)


def _parts(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """The schemas directly inside a schema, definitions first, and their pointers from there."""
    for key in _MAPS:
        for name, part in _items(schema.get(key)):
            if isinstance(part, Mapping):
                yield _join("", key, name), cast(Schema, part)
    for key in _LISTS:
        values: object = schema.get(key)
        for index, part in enumerate(cast(list[object], values) if isinstance(values, list) else ()):
            if isinstance(part, Mapping):
                yield _join("", key, str(index)), cast(Schema, part)
    for key in _SINGLE:
        part: object = schema.get(key)
        if isinstance(part, Mapping):
            yield _join("", key), cast(Schema, part)


def _items(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        yield from cast(Mapping[str, object], value).items()


def _join(pointer: str, *names: str) -> str:
    return pointer + "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in names)


def _check_size(schema: Schema) -> None:
    """Without recursion, so that no depth of brackets can overflow the stack."""
    level: list[tuple[str, object]] = [("", schema)]
    for _ in range(MAX_DEPTH):
        level = [
            (_join(pointer, str(name)), inner)
            for pointer, value in level
            for name, inner in (
                enumerate(cast(list[object], value)) if isinstance(value, list | tuple) else _items(value)
            )
            if isinstance(inner, Mapping | list | tuple)
        ]
        if not level:
            break
    else:
        raise _refusal(level[0][0], f"it is nested more than {MAX_DEPTH} deep; make it flatter")
    try:
        size = len(json.dumps(schema))
    except (TypeError, ValueError) as error:
        raise _refusal("", f"it is no JSON ({error})") from error
    if size > MAX_SCHEMA_BYTES:
        raise _refusal("", f"it is too large: {size} bytes > {MAX_SCHEMA_BYTES}; make it smaller")
    properties, values = 0, 0
    waiting: list[tuple[str, Schema]] = [("", schema)]
    while waiting:
        pointer, part = waiting.pop()
        names = dict(_items(part.get("properties")))
        required: object = part.get("required")
        needed = set(cast(list[str], required)) if isinstance(required, list) else set[str]()
        optional = len(names.keys() - needed)
        if optional > MAX_OPTIONAL:
            reason = f"{optional} optional properties > {MAX_OPTIONAL}; make some required, or fewer"
            raise _refusal(_join(pointer, "properties"), reason)
        properties += len(names)
        if properties > MAX_PROPERTIES:
            raise _refusal(_join(pointer, "properties"), f"more than {MAX_PROPERTIES} properties in all; use fewer")
        enum: object = part.get("enum")
        values += len(cast(list[object], enum)) if isinstance(enum, list) else 0
        if values > MAX_ENUM_VALUES:
            raise _refusal(_join(pointer, "enum"), f"more than {MAX_ENUM_VALUES} values in all; use fewer")
        waiting += [(pointer + inner, inner_part) for inner, inner_part in _parts(part)]


def _locate(schema: Schema, complaint: str) -> tuple[str, Schema]:
    """The innermost part that alone gives the same complaint, and its pointer."""
    definitions = {key: schema[key] for key in _DEFINITIONS if key in schema}
    pointer = ""
    until = time.monotonic() + LOCATE_S
    found: tuple[str, Schema] | None = ("", schema)
    while found is not None:
        pointer, schema = pointer + found[0], found[1]
        found = None
        for inner, part in _parts(schema):
            if time.monotonic() > until:
                break
            if _complaint({**part, **definitions}) == complaint:
                found = inner, part
                break
    return pointer, schema


@dataclass(frozen=True, slots=True)
class _Markup:
    """How a style writes calls as JSON."""

    opener: str  # the tag before a call, or before a list of them; "" where there is none
    before: str
    after: str
    closer: str
    arguments: str = "arguments"
    between: str = "\n"  # calls
    is_list: bool = False


_TAGS = _Markup("<tool_call>", "\n", "\n", "</tool_call>")
_MARKUPS: dict[str, _Markup] = {
    GENERIC: _TAGS,
    "json_tools": _TAGS,
    "llama": _Markup("", "", "", "", arguments="parameters", between="; "),
    "nemotron": _Markup("<TOOLCALL>", "[", "]", "</TOOLCALL>", between=", ", is_list=True),
}


def written_style(style: str | None) -> str:
    """The style in which a forced call is written: the model's own where that is JSON, else the generic one."""
    return style if style in _MARKUPS or style == HARMONY else GENERIC


@dataclass(frozen=True, slots=True)
class Thoughts:
    """The tags between which the model may think before its answer."""

    start: str
    end: str
    is_open: bool = False  # the prompt has opened the thought: the answer begins behind its end


def tool_grammar(
    tools: Sequence[Mapping[str, Any]], choice: str, style: str | None = None, *, parallel: bool = False
) -> Grammar:
    """A forced call: of any tool (`choice` is "required") or of the one named so; of several in a row if `parallel`.

    Tools come in OpenAI's shape, its flat form, or Anthropic's. Raises InvalidRequest for a name that is not among
    them, and with the JSON pointer for the schema of a `strict` tool that cannot be kept to. Of other tools' schemas
    what cannot be kept to is left out.
    """
    grammar = answer_grammar(None, tools, choice, style, parallel=parallel)
    assert grammar is not None
    return grammar


def answer_grammar(
    schema: Schema | None,
    tools: Sequence[Mapping[str, Any]] = (),
    choice: str = "auto",
    style: str | None = None,
    *,
    parallel: bool = True,
    thoughts: Thoughts | None = None,
) -> Grammar | None:
    """What a whole answer may be; None when that is anything.

    With a `choice` other than "auto" a call, as `tool_grammar` says; else JSON for the `schema`, or a call of one of
    the tools; else, where a tool is `strict`, text in which each call is right. Thoughts may come before all of it.
    """
    style = written_style(style)
    functions = [_function(tool) for tool in tools]
    rules = _Rules()
    if choice != "auto":
        chosen = [function for function in functions if choice in ("required", function.name)]
        if not chosen:
            raise InvalidRequest(f"no tool is named {choice!r}; name one of the request's tools", option="tool_choice")
        body = rules.calls(chosen, style, parallel)
    elif schema is not None:
        body = rules.json(schema, style)
        if functions:
            body = f"({body} | {rules.calls(functions, style, parallel)})"
        elif thoughts is None and style != HARMONY:
            return Grammar("json_schema", json.dumps(schema))
    elif style != HARMONY and _MARKUPS[style].opener and any(function.is_strict for function in functions):
        # A style without an opener or of channels has no place where a call is seen to begin.
        body = f"(ANYTHING? | {rules.calls(functions, style, parallel, is_free=True)})"
    else:
        return None
    return rules.grammar(body, style, thoughts)


class _Rules:
    """A Lark grammar in the making."""

    def __init__(self) -> None:
        self._rules: list[str] = []
        self._tags: list[str] = []

    def grammar(self, body: str, style: str, thoughts: Thoughts | None) -> Grammar:
        start = body
        if style == HARMONY:
            end = self._until("<|end|>")
            thought = f'{self._tag("<|channel|>")} "analysis" {self._tag("<|message|>")} {end}'
            start = f'({thought} {self._tag("<|start|>")} "assistant")? {body}'
        elif thoughts is not None:
            end = f"{self._until(thoughts.end)} SPACE"
            start = f"{end} {body}" if thoughts.is_open else f"({self._tag(thoughts.start)} {end})? {body}"
            self._rules.append(r"SPACE: /\s{0,3}/")
        return Grammar("lark", "\n".join([f"start: {start}", *self._rules]) + "\n", tuple(self._tags))

    def json(self, schema: Schema, style: str) -> str:
        text = self._rule("json", f"%json {json.dumps({**schema, 'x-guidance': _STRICT})}")
        return f"{self._header('final')} {text}" if style == HARMONY else text

    def calls(self, functions: Sequence[_Function], style: str, parallel: bool, is_free: bool = False) -> str:
        """`is_free`: the first comes after any text."""
        if style == HARMONY:
            return f"({' | '.join(map(self._channelled, functions))})"
        markup = _MARKUPS[style]
        for index, function in enumerate(functions):
            head = f'{{"name": {_quoted(function.name)}, {_quoted(markup.arguments)}: '
            self._rule(f"call_{index}", f'{_quoted(head)} %json {json.dumps(function.arguments())} "}}"')
        call = self._rule("call", " | ".join(f"call_{index}" for index in range(len(functions))))
        opener, closer = (self._tag(tag) if tag else "" for tag in (markup.opener, markup.closer))
        before, after, between = (
            _quoted(text) if text else "" for text in (markup.before, markup.after, markup.between)
        )
        inside, more = f"{before} {call} {after} {closer}", ""
        if parallel and markup.is_list:
            inside = f"{before} {call} ({between} {call})* {after} {closer}"
        elif parallel:
            more = f"({between} {opener} {inside})*"
        return f"{self._until(markup.opener) if is_free else opener} {inside} {more}".strip()

    def _channelled(self, function: _Function) -> str:
        recipient = f" to=functions.{function.name} "
        header = self._header("commentary", recipient, f'{self._tag("<|constrain|>")} "json"')
        return f"{header} %json {json.dumps(function.arguments())}"

    def _header(self, channel: str, recipient: str = "", kind: str = "") -> str:
        return f"{self._tag('<|channel|>')} {_quoted(channel + recipient)} {kind} {self._tag('<|message|>')}"

    def _rule(self, name: str, definition: str) -> str:
        self._rules.append(f"{name}: {definition}")
        return name

    def _tag(self, text: str) -> str:
        return f"tag_{self._index(text)}"

    def _until(self, text: str) -> str:
        return f"until_{self._index(text)}"

    def _index(self, text: str) -> int:
        if text not in self._tags:
            self._tags.append(text)
        return self._tags.index(text)


@dataclass(frozen=True, slots=True)
class _Function:
    name: str
    parameters: Schema
    is_strict: bool

    def arguments(self) -> Schema:
        """The schema to embed, with the options it is compiled with."""
        schema: Schema = {"type": "object", **self.parameters}
        if not _OPEN_KEYWORDS & schema.keys():
            schema = {**schema, "additionalProperties": False}  # a forced call has no use for parameters nobody knows
        options = _STRICT
        try:
            check_schema(schema)
        except InvalidRequest as error:
            if self.is_strict:
                message = f"tool {self.name}: {error.message}"
                raise InvalidRequest(message, tool=self.name, **error.facts) from error
            options = _LENIENT
            if _is_too_large(schema) or _complaint(schema, options):
                schema = {"type": "object"}
        return {**schema, "x-guidance": options}


# With one of these a schema may have properties that are not in its own list.
_OPEN_KEYWORDS = frozenset(
    ("$ref", "additionalProperties", "allOf", "anyOf", "oneOf", "if", "patternProperties", "unevaluatedProperties")
)


def _is_too_large(schema: Schema) -> bool:
    try:
        _check_size(schema)
    except InvalidRequest:
        return True
    return False


def _function(tool: Mapping[str, Any]) -> _Function:
    inner: object = tool.get("function")
    function = cast(Mapping[str, Any], inner) if isinstance(inner, Mapping) else tool
    name: object = function.get("name")
    if not isinstance(name, str) or not name:
        raise InvalidRequest("a tool has no name; give it one", option="tools")
    parameters: object = function.get("parameters") or function.get("input_schema") or {}
    if not isinstance(parameters, Mapping):
        raise InvalidRequest(f"tool {name}: its parameters are no JSON schema", option="tools")
    is_strict = bool(function.get("strict") or tool.get("strict"))
    return _Function(name, cast(Schema, parameters), is_strict)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
