"""The response object: all that a request said, echoed, and what has become of it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from slipstream.errors import SlipstreamError
from slipstream.server.errors import describe, openai_body
from slipstream.server.fields import Fields
from slipstream.server.prompt_limit import PromptLimit
from slipstream.server.reply import Usage
from slipstream.types import Options

Json = dict[str, Any]  # Any: a JSON document


def new_id(prefix: str) -> str:
    return f"{prefix}_{secrets.token_hex(16)}"


@dataclass(frozen=True, slots=True)
class Head:
    """What every state of one response repeats."""

    id: str
    model: str
    created_at: int
    echo: Json

    def body(
        self,
        status: str,
        output: Sequence[Json] = (),
        *,
        usage: Usage | None = None,
        incomplete: str | None = None,
        error: SlipstreamError | None = None,
        **more: Any,
    ) -> Json:
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created_at,
            "completed_at": int(time.time()) if status == "completed" else None,
            "status": status,
            "background": False,
            "error": None if error is None else error_of(error),
            "incomplete_details": None if incomplete is None else {"reason": incomplete},
            "model": self.model,
            "output": list(output),
            "usage": None if usage is None else usage_of(usage),
            **self.echo,
            **more,
        }


def make_head(
    fields: Fields, model: str, options: Options, limit: int | None, prompt_limit: PromptLimit = PromptLimit.REFUSE
) -> Head:
    reasoning = fields.object("reasoning") or Fields({})
    text: Json = dict(fields.mapping("text") or {})
    echo: Json = {
        "instructions": fields.raw("instructions"),
        "max_output_tokens": limit,
        "max_tool_calls": fields.whole("max_tool_calls", 0),
        "parallel_tool_calls": fields.flag("parallel_tool_calls") is not False,
        "previous_response_id": fields.text("previous_response_id"),
        "prompt_cache_key": fields.text("prompt_cache_key"),
        "reasoning": {"effort": reasoning.text("effort"), "summary": reasoning.text("summary")},
        "safety_identifier": fields.text("safety_identifier"),
        "service_tier": "default",
        "store": fields.flag("store") is not False,
        "temperature": options.temperature,
        "top_p": options.top_p,
        "presence_penalty": options.presence_penalty,
        "frequency_penalty": options.frequency_penalty,
        "top_logprobs": fields.whole("top_logprobs", 0, 20) or 0,
        "text": {"verbosity": "medium", **text, "format": text.get("format") or {"type": "text"}},
        "tool_choice": fields.raw("tool_choice") or "auto",
        "tools": [_tool(tool) for tool in fields.items("tools") or ()],
        "truncation": "disabled" if prompt_limit is PromptLimit.REFUSE else "auto",
        "user": fields.text("user"),
        "metadata": dict(fields.mapping("metadata") or {}),
    }
    return Head(new_id("resp"), model, int(time.time()), echo)


def _tool(tool: Any) -> Any:
    """Functions with every field of the specification; others as they came."""
    if tool.get("type") != "function" or "function" in tool:
        return tool
    return {"description": None, "parameters": None, "strict": None, **tool}


def usage_of(usage: Usage) -> Json:
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.completion,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total,
    }


def error_of(error: SlipstreamError) -> Json:
    body = openai_body(describe(error))["error"]
    return {"code": body["code"], "message": body["message"]}
