"""What a chat asks of the model: kept with each chat, and as defaults of a model."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, cast

from slipstream.errors import InvalidRequest
from slipstream.types import Grammar, Mode, Options
from slipstream_app.messages import Json

SEED_BITS = 32  # of a seed that is drawn: short enough to be typed


@dataclass(frozen=True, slots=True)
class Parameters:
    """The defaults are what a chat has that changed nothing."""

    system: str = ""
    temperature: float = 0.7
    top_p: float = 0.95
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None  # None: another one for each reply
    max_tokens: int = 0  # 0: as much as fits the context
    thinking: bool | None = None  # None: as the model has it
    schema: str = ""  # a JSON schema that answers keep to
    tools: str = ""  # a JSON list of tools that the model is told of; nothing runs them
    mode: Mode = Mode.AUTO
    max_draft: int | None = None  # None: as the planner finds best

    def changed(self, base: Parameters) -> dict[str, Any]:
        """What differs from `base`, as JSON."""
        return {
            field.name: value
            for field in fields(self)
            if (value := getattr(self, field.name)) != getattr(base, field.name)
        }

    def with_json(self, values: Json) -> Parameters:
        """These, changed by what `changed` gave. What a newer or damaged file says beyond that is left out."""
        known = {field.name: field.default for field in fields(self)}
        good: dict[str, Any] = {}
        for name, value in values.items():
            if name not in known or not _fits(name, value, known[name]):
                continue
            good[name] = Mode(value) if name == "mode" else value
        return replace(self, **good)

    def options(self, room: int) -> Options:
        """For an answer of at most `room` tokens; a seed is drawn when none is given. Raises InvalidRequest."""
        return Options(
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            min_p=self.min_p,
            seed=secrets.randbits(SEED_BITS) if self.seed is None else self.seed,
            max_tokens=max(1, min(room, self.max_tokens or room)),
            mode=self.mode,
            max_draft=self.max_draft,
            grammar=Grammar("json_schema", self.schema) if self.schema.strip() else None,
        )

    def tool_list(self) -> tuple[Json, ...]:
        """Raises InvalidRequest when they are no list of tools."""
        return tuple(parse_tools(self.tools))


def _fits(name: str, value: object, default: object) -> bool:
    if name == "mode":
        return value in set(Mode)
    if name in ("seed", "max_draft"):
        return value is None or type(value) is int
    if name == "thinking":
        return value is None or type(value) is bool
    if isinstance(default, float):
        return type(value) in (int, float)
    return type(value) is type(default)


PRESETS: Mapping[str, Mapping[str, float]] = {
    "exact": {"temperature": 0.0, "top_p": 1.0},
    "balanced": {"temperature": 0.7, "top_p": 0.95},
    "lively": {"temperature": 1.0, "top_p": 1.0},
}


def parse_schema(text: str) -> Json | None:
    """A JSON schema; None when there is none. Raises InvalidRequest with the reason, also for what cannot be kept."""
    if not text.strip():
        return None
    value = _json(text)
    if not isinstance(value, Mapping):
        raise InvalidRequest("a schema is a JSON object; begin with {")
    from slipstream.prompt.schema import check_schema

    check_schema(cast(Json, value))
    return cast(Json, value)


def parse_tools(text: str) -> list[Json]:
    """Tools in OpenAI's form. Raises InvalidRequest with the reason."""
    if not text.strip():
        return []
    value = _json(text)
    if not isinstance(value, list):
        raise InvalidRequest("tools are a JSON list; begin with [")
    tools: list[Json] = []
    for entry in cast(list[object], value):
        tool = cast(Json, entry) if isinstance(entry, Mapping) else {}
        inner: object = tool.get("function", tool)
        function = cast(Json, inner) if isinstance(inner, Mapping) else {}
        if not isinstance(function.get("name"), str):
            raise InvalidRequest('each tool needs a name: {"type": "function", "function": {"name": …}}')
        tools.append(
            {"type": "function", "function": {"description": "", "parameters": {"type": "object"}, **function}}
        )
    return tools


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidRequest(f"this is no JSON yet: {error}") from error
