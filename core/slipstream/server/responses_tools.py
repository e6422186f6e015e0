"""The tools of a Responses request: what the model is offered, and as what its calls go back to the client."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from slipstream.errors import InvalidRequest
from slipstream.server.conversation import Message, Named, ToolChoice
from slipstream.server.fields import Fields, not_among
from slipstream.server.openai_messages import as_object

logger = logging.getLogger(__name__)

INPUT = "input"  # the one parameter under which a custom tool gets its text


@dataclass(frozen=True, slots=True)
class Origin:
    """A tool as the client knows it."""

    name: str
    namespace: str | None = None
    is_custom: bool = False


@dataclass(frozen=True, slots=True)
class Offer:
    """Tools under the names that the model sees: their own, with the namespace before it where two are the same."""

    tools: tuple[Message, ...] = ()
    origins: Mapping[str, Origin] = field(default_factory=dict[str, Origin])

    def origin(self, offered: str) -> Origin:
        return self.origins.get(offered, Origin(offered))

    def offered(self, name: str, namespace: str | None) -> str:
        long = f"{namespace}__{name}"
        return long if namespace and long in self.origins else name


def read_tools(fields: Fields) -> Offer:
    """Functions, custom tools and those in namespaces. Tools that run on OpenAI's servers are left out."""
    found = list(_tools(fields, None))
    names = Counter(origin.name for origin, _, _ in found)
    tools: list[Message] = []
    origins: dict[str, Origin] = {}
    for origin, function, is_strict in found:
        is_long = origin.namespace is not None and names[origin.name] > 1
        offered = f"{origin.namespace}__{origin.name}" if is_long else origin.name
        origins[offered] = origin
        strict = {"strict": True} if is_strict else {}
        tools.append({"type": "function", "function": {"name": offered, **function}, **strict})
    return Offer(tuple(tools), origins)


def _tools(fields: Fields, namespace: str | None) -> Iterator[tuple[Origin, dict[str, Any], bool]]:
    """Each tool's name to the client, what it does and takes, and whether calls must keep to that."""
    for tool in fields.objects("tools"):
        match kind := tool.need("type", tool.text("type")):
            case "function":
                tool.ignore("defer_loading")
                function = tool.object("function") or tool  # Chat Completions' form, which some clients send here
                is_strict = function.flag("strict") or tool.flag("strict")
                described = {
                    "description": function.text("description") or "",
                    "parameters": function.mapping("parameters") or {"type": "object", "properties": {}},
                }
                yield Origin(_name(function), namespace), described, bool(is_strict)
            case "custom":
                yield Origin(_name(tool), namespace, is_custom=True), _custom(tool), False
            case "namespace" if namespace is None:
                yield from _tools(tool, _name(tool))
            case _:
                logger.info("tools of type %s are left out", ascii(kind[:40]))


def _name(tool: Fields) -> str:
    name = tool.need("name", tool.text("name"))
    if not name or len(name) > 256:
        raise InvalidRequest(f"{tool.at('name')} must have 1 to 256 characters", path=tool.at("name"))
    return name


def _custom(tool: Fields) -> dict[str, Any]:
    """A tool that takes plain text, as a function with one parameter. A grammar can only be described here."""
    description = tool.text("description") or ""
    form = tool.object("format")
    if form is not None and (grammar := form.text("definition")):
        description += f"\n\nThe input keeps to this grammar ({form.text('syntax') or 'lark'}):\n{grammar}"
    text = {"type": "string", "description": "The whole input, as plain text."}
    return {
        "description": description.strip(),
        "parameters": {"type": "object", "properties": {INPUT: text}, "required": [INPUT]},
    }


def custom_input(arguments_json: str) -> str:
    """The text in the arguments of a custom tool's call; the arguments themselves when there is none in them."""
    arguments = as_object(arguments_json)
    if isinstance(arguments, dict):
        if isinstance(arguments.get(INPUT), str):
            return arguments[INPUT]
        texts = [value for value in arguments.values() if isinstance(value, str)]
        if len(arguments) == 1 and texts:
            return texts[0]
    return arguments_json


def read_choice(fields: Fields, offer: Offer) -> ToolChoice:
    """A choice of a tool that is left out says nothing here."""
    value = fields.raw("tool_choice")
    match value:
        case None | "auto":
            return "auto"
        case "none":
            return "none"
        case "required":
            return _require(offer)
        case dict():
            given = fields.need("tool_choice", fields.object("tool_choice"))
        case _:
            raise not_among("tool_choice", "none, auto, required or a tool", value)
    match given.need("type", given.text("type")):
        case "function" | "custom":
            name = offer.offered(given.need("name", given.text("name")), given.text("namespace"))
            if name not in offer.origins:
                raise InvalidRequest("tool_choice names a tool that is not among the tools", path="tool_choice")
            return Named(name)
        case "allowed_tools":
            given.ignore("tools")
            return _require(offer) if given.text("mode") == "required" else "auto"
        case _:
            return "auto"


def _require(offer: Offer) -> ToolChoice:
    if not offer.tools:
        raise InvalidRequest("tool_choice asks for a call, but there are no tools", path="tool_choice")
    return "required"
