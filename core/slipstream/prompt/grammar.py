"""What an answer may look like, as text for llguidance: JSON schemas, and forced tool calls spelled out.

Knows no tokenizer and no MLX, so that an HTTP route can refuse a schema before the engine sees it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from llguidance import LLMatcher

from slipstream.errors import InvalidRequest
from slipstream.prompt.schema import LENIENT, STRICT, Schema, check_schema, complaint_of, is_too_large
from slipstream.prompt.tools import GENERIC, HARMONY
from slipstream.types import Grammar

MAX_GRAMMAR_BYTES = 1024 * 1024  # the tools of a request together


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
                return LLMatcher.grammar_from_json_schema(grammar.text, overrides=STRICT)
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
        text = self._rule("json", f"%json {json.dumps({**schema, 'x-guidance': STRICT})}")
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
        options = STRICT
        try:
            check_schema(schema)
        except InvalidRequest as error:
            if self.is_strict:
                message = f"tool {self.name}: {error.message}"
                raise InvalidRequest(message, tool=self.name, **error.facts) from error
            options = LENIENT
            if is_too_large(schema) or complaint_of(schema, options):
                schema = {"type": "object"}
        return {**schema, "x-guidance": options}


# With one of these a schema may have properties that are not in its own list.
_OPEN_KEYWORDS = frozenset(
    ("$ref", "additionalProperties", "allOf", "anyOf", "oneOf", "if", "patternProperties", "unevaluatedProperties")
)


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
