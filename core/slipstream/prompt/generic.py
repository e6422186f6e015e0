"""Tools for models whose template knows none: what their prompt says instead, and how calls and results look in it.

The form is the one that most models were shown, Hermes' JSON in tags, which the generic reader of `tools` reads:

    <tool_call>
    {"name": "weather", "arguments": {"place": "Oslo"}}
    </tool_call>
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Message = Mapping[str, Any]  # Any: a JSON object

_INSTRUCTIONS = """# Tools

You can call functions. Each line between the tags describes one:
{tools}

To call a function, write its name and arguments as a JSON object between these tags, and then stop:
<tool_call>
{{"name": "the function's name", "arguments": {{"the parameter's name": "its value"}}}}
</tool_call>
What it returned then comes to you between <tool_response> and </tool_response>."""


def dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def describe(tools: Iterable[Message]) -> str:
    """Definitions, for a system prompt or for the place where a tool becomes known."""
    lines = [dump({"type": "function", "function": tool["function"]}) for tool in tools]
    return "\n".join(["<tools>", *lines, "</tools>"])


def instructions(tools: Sequence[Message]) -> str:
    return _INSTRUCTIONS.format(tools=describe(tools))


def call_text(function: Message) -> str:
    inner = {"name": function["name"], "arguments": function["arguments"]}
    return f"<tool_call>\n{dump(inner)}\n</tool_call>"


def result_text(text: str) -> str:
    return f"<tool_response>\n{text}\n</tool_response>"


def reminder_text(text: str) -> str:
    """A system message for a template that takes none at its place. Clients' own reminders have this form already."""
    stripped = text.strip()
    is_one = stripped.startswith("<system-reminder>") and stripped.endswith("</system-reminder>")
    return text if is_one else f"<system-reminder>\n{text}\n</system-reminder>"
