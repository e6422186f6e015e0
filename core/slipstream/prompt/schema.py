"""JSON schemas that answers are to keep to: checked, with a JSON pointer to what is at fault.

Knows no tokenizer and no MLX, so that an HTTP route can refuse a schema before the engine sees it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from llguidance import LLMatcher, LLParserLimits

from slipstream.errors import InvalidRequest

if TYPE_CHECKING:
    from llguidance._lib import JsonCompileOptions  # its stubs have it, the module does not

Schema = Mapping[str, Any]  # Any: a schema is any JSON

# At these bounds a schema compiles in half a second; beyond them in many, or the parser gives up while decoding.
MAX_SCHEMA_BYTES = 256 * 1024
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
STRICT: JsonCompileOptions = {
    "whitespace_flexible": False,
    "item_separator": ", ",
    "key_separator": ": ",
    "lenient": False,
    "coerce_one_of": False,
}
LENIENT: JsonCompileOptions = {**STRICT, "lenient": True, "coerce_one_of": True}


def check_schema(schema: Schema) -> None:
    """Raises InvalidRequest, with the JSON pointer, for what no answer can be held to or what is too large."""
    _check_size(schema)
    complaint = complaint_of(schema)
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


def is_too_large(schema: Schema) -> bool:
    try:
        _check_size(schema)
    except InvalidRequest:
        return True
    return False


def _refusal(pointer: str, reason: str) -> InvalidRequest:
    return InvalidRequest(f'schema at "{pointer}": {reason}', pointer=pointer)


def complaint_of(schema: Schema, options: JsonCompileOptions = STRICT) -> str | None:
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
            if complaint_of({**part, **definitions}) == complaint:
                found = inner, part
                break
    return pointer, schema
