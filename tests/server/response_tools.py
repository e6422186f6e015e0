"""Tools as Responses has them: a function, one that takes plain text, and one in a namespace."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

FIND_TEXT: Json = {
    "type": "function",
    "name": "find_text",
    "parameters": {"type": "object", "properties": {"pattern": {"type": "string"}, "max": {"type": "integer"}}},
}
PATCH: Json = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Changes files.",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: LINE+"},
}
AGENTS: Json = {
    "type": "namespace",
    "name": "agents",
    "tools": [{"type": "function", "name": "spawn", "parameters": {"type": "object", "properties": {}}}],
}
