"""JSON schemas of requests. Answers cannot be kept to one yet, so asking for it is refused, not forgotten."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from slipstream.errors import InvalidRequest


def schema_grammar(schema: Mapping[str, Any], path: str) -> NoReturn:  # Any: a JSON schema
    """Raises InvalidRequest naming `path`."""
    del schema
    raise InvalidRequest(f"{path}: answers cannot be kept to a JSON schema yet; ask in the prompt instead", path=path)


def any_object_grammar(path: str = "format") -> NoReturn:
    schema_grammar({"type": "object"}, path)
