"""What the tools of a request accept: names, and the JSON types of each parameter."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from slipstream.prompt.lenient import number, repair
from slipstream.prompt.strings import quote

Kinds = frozenset[str]  # JSON schema types; empty: not said
Schema = Mapping[str, Any]  # Any: a schema is any JSON

ANY: Kinds = frozenset()
STRING: Kinds = frozenset({"string"})
BOOLEAN: Kinds = frozenset({"boolean"})
NUMBERS: Kinds = frozenset({"number", "integer"})
CONTAINERS: Kinds = frozenset({"object", "array"})

_BOOLEANS = {"1": "true", "yes": "true", "on": "true", "0": "false", "no": "false", "off": "false"}

# Names that tools use in place of JSON schema's.
_ALIASES = {
    "str": "string",
    "text": "string",
    "int": "integer",
    "float": "number",
    "double": "number",
    "bool": "boolean",
    "dict": "object",
    "list": "array",
    "tuple": "array",
    "any": "",
}


class Signature:
    """One tool."""

    def __init__(self, name: str, parameters: Schema) -> None:
        self.name = name
        self._root = parameters
        self._properties = _mapping(parameters.get("properties"))
        self._known: dict[str, Kinds] = {}

    def kinds(self, key: str) -> Kinds | None:
        """The types a parameter may have; None when the tool has no such parameter."""
        if key not in self._properties:
            return None
        if key not in self._known:
            self._known[key] = _kinds(self._properties[key], self._root)
        return self._known[key]


class Tools:
    """All tools of a request, in OpenAI's shape, its flat form, or Anthropic's."""

    def __init__(self, tools: Sequence[Mapping[str, Any]] = ()) -> None:
        self._signatures: dict[str, Signature] = {}
        self.as_openai: list[dict[str, Any]] = []  # for mlx-lm's parsers
        for tool in tools:
            function = _mapping(tool.get("function")) or tool
            name = function.get("name")
            if isinstance(name, str) and name:
                schema = _mapping(function.get("parameters")) or _mapping(function.get("input_schema"))
                self._signatures[name] = Signature(name, schema)
                described = {"name": name, "parameters": dict(schema)}
                self.as_openai.append({"type": "function", "function": described})

    def __bool__(self) -> bool:
        return bool(self._signatures)

    def find(self, name: str) -> Signature | None:
        name = name.strip()
        return self._signatures.get(name) or self._signatures.get(name.removeprefix("functions."))


def fit(value_json: str, kinds: Kinds) -> str:
    """A JSON value as the schema wants it: "3" becomes 3 for a number, 3 becomes "3" for a string."""
    if not kinds or value_json[:1] in "{[":
        return value_json
    value = json.loads(value_json)
    if isinstance(value, str):
        return value_json if "string" in kinds else coerce(value, kinds)
    if kinds == STRING and value is not None:
        return quote(value_json)
    return (_number(value_json, kinds) if isinstance(value, float) else None) or value_json


def coerce(text: str, kinds: Kinds) -> str:
    """Text as a JSON value of one of these types; a string when it is none of them."""
    return (None if kinds == STRING else _typed(text.strip(), kinds)) or quote(text)


def _typed(text: str, kinds: Kinds) -> str | None:
    is_exact = "string" in kinds  # text is a value too, so no guessing
    word = text.lower()
    value = None
    if text[:1] in ("{", "["):
        if not kinds or kinds & CONTAINERS:
            value = text if _is_json(text) else None
            if value is None and kinds and not is_exact:
                value = repair(text)
    elif not kinds:
        pass  # nothing said: a word is text
    elif text in ("null", "None"):
        value = "null" if "null" in kinds or not is_exact else None
    elif "boolean" in kinds and word in ("true", "false"):
        value = word
    elif kinds == BOOLEAN:
        value = _BOOLEANS.get(word)
    elif kinds & NUMBERS:
        value = _number(text, kinds)
        if is_exact and value != text:
            value = None
    return value


def _number(text: str, kinds: Kinds) -> str | None:
    value = number(text)
    if value and "number" not in kinds and float(value).is_integer() and not value.lstrip("-").isdigit():
        return str(int(float(value)))  # 3.0 where an integer is wanted
    return value


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _mapping(value: object) -> Schema:
    return cast(Schema, value) if isinstance(value, Mapping) else {}


def _kinds(schema: object, root: Schema, depth: int = 0) -> Kinds:
    found: set[str] = set()
    if depth > 8 or not isinstance(schema, Mapping):
        return ANY
    schema = cast(Schema, schema)
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        target: object = root
        for step in reference[2:].split("/"):
            target = _mapping(target).get(step)
        return _kinds(target, root, depth + 1)
    named = schema.get("type")
    for name in cast(list[object], named) if isinstance(named, list) else [named]:
        if isinstance(name, str):
            found.add(_ALIASES.get(name.lower(), name.lower()))
    if not found:
        values = cast(list[object], schema["enum"]) if isinstance(schema.get("enum"), list) else []
        for value in [*values, *([schema["const"]] if "const" in schema else [])]:
            found.add(_kind(value))
        for group in ("anyOf", "oneOf", "allOf"):
            branches = schema.get(group)
            for branch in cast(list[object], branches) if isinstance(branches, list) else []:
                kinds = _kinds(branch, root, depth + 1)
                if not kinds and group != "allOf":
                    return ANY
                found |= kinds
    return frozenset(found - {""})


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case _:
            return "array" if isinstance(value, list) else "object"
