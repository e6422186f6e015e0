"""JSON schemas that answers must keep to, checked before the engine sees them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from slipstream.errors import InvalidRequest
from slipstream.prompt.schema import check_schema
from slipstream.server.fields import Fields
from slipstream.types import Grammar


def schema_grammar(schema: Mapping[str, Any], path: str) -> Grammar:  # Any: a JSON schema
    """Raises InvalidRequest naming `path`, and with the JSON pointer of what an answer cannot be kept to."""
    text = json.dumps(schema)
    try:
        _check(text)
    except InvalidRequest as error:
        raise InvalidRequest(f"{path}: {error.message}", **{**error.facts, "path": path}) from error
    return Grammar("json_schema", text)


def read_form(given: Fields | None, inside: str | None = None) -> Grammar | None:
    """OpenAI's form of an answer: text, json_object or json_schema, whose schema stands in the object `inside`."""
    if given is None:
        return None
    match given.need("type", given.one_of("type", "text", "json_object", "json_schema")):
        case "json_object":
            return any_object_grammar()
        case "json_schema":
            holder = given if inside is None else given.need(inside, given.object(inside))
            return schema_grammar(holder.need("schema", holder.mapping("schema")), holder.at("schema"))
        case _:
            return None


def any_object_grammar() -> Grammar:
    return Grammar("json_schema", '{"type": "object"}')


@lru_cache(maxsize=64)  # clients send the same few with every request
def _check(text: str) -> None:
    check_schema(json.loads(text))
