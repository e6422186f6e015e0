"""An answer in Anthropic's form: content blocks, as events or all at once."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

from slipstream.events import Finish
from slipstream.prompt.output import Content, Part, Thinking, ToolArguments, ToolCut, ToolEnd, ToolStart
from slipstream.server import sse
from slipstream.server.openai_messages import as_object
from slipstream.server.reply import Finished
from slipstream.server.thoughts import seal

Json = dict[str, Any]  # Any: a JSON document

PING = sse.event({"type": "ping"}, "ping")


def event(kind: str, **data: Any) -> bytes:
    """Claude Code and pi drop streams whose events have no name."""
    return sse.event({"type": kind, **data}, kind)


def message(model: str, **more: Any) -> Json:
    return {
        "id": f"msg_{secrets.token_hex(12)}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "container": None,
        "stop_details": None,
        "stop_reason": None,
        "stop_sequence": None,
        **more,
    }


def usage(prompt: int, cached: int, completion: int, thought: int = 0) -> Json:
    """Anthropic counts the cached part of a prompt beside its other tokens, not among them."""
    return {
        "input_tokens": prompt - cached,
        "cache_creation": None,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": completion,
        "output_tokens_details": {"thinking_tokens": thought},
        "server_tool_use": None,
        "inference_geo": None,
        "service_tier": "standard",
    }


def usage_of(finished: Finished) -> Json:
    used = finished.usage
    return usage(used.prompt, used.cached, used.completion, used.reasoning)


def ending(finished: Finished, *, fills_context: bool) -> Json:
    """`fills_context`: the answer could not be as long as the client allowed."""
    reason = "end_turn"
    if finished.reason is Finish.LENGTH:
        reason = "model_context_window_exceeded" if fills_context else "max_tokens"
    elif finished.called:
        reason = "tool_use"
    elif finished.stop is not None:
        reason = "stop_sequence"
    stop = finished.stop if reason == "stop_sequence" else None
    return {"container": None, "stop_details": None, "stop_reason": reason, "stop_sequence": stop}


class Blocks:
    """Content blocks in the making: `add` gives the events of a part, `content` what has become of all of them."""

    def __init__(self) -> None:
        self.content: list[Json] = []
        self._pieces: list[str] = []  # of the open block
        self._is_open = False

    def add(self, part: Part) -> Iterator[bytes]:
        match part:
            case Thinking(text):
                yield from self._begin_unless("thinking", {"type": "thinking", "thinking": "", "signature": ""})
                yield self._delta("thinking_delta", "thinking", text)
            case Content(text):
                yield from self._begin_unless("text", {"type": "text", "text": "", "citations": None})
                yield self._delta("text_delta", "text", text)
            case ToolStart():
                called = {"id": part.id, "name": part.name, "input": {}, "caller": {"type": "direct"}}
                yield from self._begin({"type": "tool_use", **called})
            case ToolArguments(_, fragment):
                yield self._delta("input_json_delta", "partial_json", fragment)
            case ToolEnd(_, call) | ToolCut(_, call):
                # An object is asked for, so a call that was cut off is closed here. In pieces it stays cut short.
                arguments = as_object(call.arguments_json)
                self.content[-1]["input"] = arguments if isinstance(arguments, dict) else {"input": arguments}
                yield from self.close()

    def close(self) -> Iterator[bytes]:
        if not self._is_open:
            return
        self._is_open = False
        block, text = self.content[-1], "".join(self._pieces)
        if block["type"] == "thinking":
            block |= {"thinking": text, "signature": seal(text)}
            delta = {"type": "signature_delta", "signature": block["signature"]}
            yield event("content_block_delta", index=len(self.content) - 1, delta=delta)
        elif block["type"] == "text":
            block["text"] = text
        yield event("content_block_stop", index=len(self.content) - 1)

    def _begin_unless(self, kind: str, block: Json) -> Iterator[bytes]:
        if not self._is_open or self.content[-1]["type"] != kind:
            yield from self._begin(block)

    def _begin(self, block: Json) -> Iterator[bytes]:
        yield from self.close()
        self._is_open = True
        self._pieces = []
        self.content.append(dict(block))
        yield event("content_block_start", index=len(self.content) - 1, content_block=block)

    def _delta(self, kind: str, field: str, text: str) -> bytes:
        self._pieces.append(text)
        return event("content_block_delta", index=len(self.content) - 1, delta={"type": kind, field: text})
