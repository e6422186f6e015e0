"""An answer in the form of Responses: output items in the making, and the events that tell of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from slipstream.errors import SlipstreamError
from slipstream.events import Finish
from slipstream.prompt.output import Content, Part, Thinking, ToolArguments, ToolCall, ToolCut, ToolEnd, ToolStart
from slipstream.server import sse
from slipstream.server.metrics import extras
from slipstream.server.reply import Finished
from slipstream.server.responses_object import Head, Json, new_id
from slipstream.server.responses_tools import Offer, custom_input
from slipstream.server.thoughts import seal


class Writer:
    """`add` gives the events of a part; `response` is what there is of the answer, and at last all of it."""

    def __init__(self, head: Head, offer: Offer, *, seals: bool = False) -> None:
        """`seals`: thoughts are also there in a form to be returned."""
        self.response = head.body("in_progress")
        self._head = head
        self._offer = offer
        self._seals = seals
        self._output: list[Json] = []
        self._open: Json | None = None
        self._pieces: list[str] = []  # of the open item
        self._logprobs: list[Json] = []
        self._number = 0

    def event(self, kind: str, **data: Any) -> bytes:
        number, self._number = self._number, self._number + 1
        return sse.event({"type": kind, "sequence_number": number, **data}, kind)

    def state(self, kind: str) -> bytes:
        """The response as it stands: created, in_progress (also as a sign of life), completed…"""
        return self.event(f"response.{kind}", response=self.response)

    def add(self, part: Part, logprobs: list[Json] | None = None) -> Iterator[bytes]:
        match part:
            case Thinking(text):
                yield from self._begin_unless("reasoning")
                yield self.event("response.reasoning_summary_text.delta", **self._where(summary_index=0), delta=text)
                self._pieces.append(text)
            case Content(text):
                yield from self._begin_unless("message")
                self._logprobs += logprobs or []
                where = self._where(content_index=0)
                yield self.event("response.output_text.delta", **where, delta=text, logprobs=logprobs or [])
                self._pieces.append(text)
            case ToolStart():
                yield from self.close()
                yield from self._begin(self._call(part.id, part.name))
            case ToolArguments(_, fragment):
                self._pieces.append(fragment)
                if self._kind == "function_call":
                    yield self.event("response.function_call_arguments.delta", **self._where(), delta=fragment)
            case ToolEnd(_, call):
                yield from self._end_call(call)
            case ToolCut():
                yield from self.close("incomplete")

    def close(self, status: str = "completed") -> Iterator[bytes]:
        """End the open item, if there is one."""
        item = self._open
        if item is None:
            return
        text = "".join(self._pieces)
        item["status"] = status
        match item["type"]:
            case "reasoning":
                where, part = self._where(summary_index=0), _summary_part(text)
                yield self.event("response.reasoning_summary_text.done", **where, text=text)
                yield self.event("response.reasoning_summary_part.done", **where, part=part)
                item["summary"] = [part]
                if self._seals:
                    item["encrypted_content"] = seal(text)
            case "message":
                where = self._where(content_index=0)
                yield self.event("response.output_text.done", **where, text=text, logprobs=self._logprobs)
                part = _text_part(text, self._logprobs)
                yield self.event("response.content_part.done", **where, part=part)
                item["content"] = [part]
            case "function_call":
                item["arguments"] = text
            case _:
                item["input"] = custom_input(text)
        yield self.event("response.output_item.done", output_index=len(self._output), item=item)
        self._output.append(item)
        self._open = None

    def finish(self, finished: Finished) -> Iterator[bytes]:
        """The last events, and the state that the response ends in."""
        was_cut = finished.reason is not Finish.STOP
        yield from self.close("incomplete" if was_cut else "completed")
        if not self._output:  # nothing was said: clients look for the text of a message
            yield from self._begin_unless("message")
            yield from self.close()
        status, incomplete = "completed", None
        if finished.reason is Finish.LENGTH:
            status, incomplete = "incomplete", "max_output_tokens"
        elif finished.reason is Finish.CANCELLED:
            status = "cancelled"
        own = extras(finished.timings)
        self.response = self._head.body(
            status, self._output, usage=finished.usage, incomplete=incomplete, slipstream=own
        )
        yield self.state("completed" if status == "completed" else "incomplete")

    def fail(self, error: SlipstreamError) -> bytes:
        self.response = self._head.body("failed", self._output, error=error)
        return self.state("failed")

    @property
    def _kind(self) -> str | None:
        return None if self._open is None else self._open["type"]

    def _where(self, **more: int) -> Json:
        assert self._open is not None
        return {"item_id": self._open["id"], "output_index": len(self._output), **more}

    def _begin_unless(self, kind: str) -> Iterator[bytes]:
        if self._kind == kind:
            return
        yield from self.close()
        if kind == "message":
            item: Json = {"type": "message", "id": new_id("msg"), "role": "assistant", "content": []}
            yield from self._begin(item)
            part = _text_part("", [])
            yield self.event("response.content_part.added", **self._where(content_index=0), part=part)
            return
        # As a summary, of which it is the longest: Codex shows no other kind, nor do all specifications know another.
        yield from self._begin({"type": "reasoning", "id": new_id("rs"), "summary": []})
        where = self._where(summary_index=0)
        yield self.event("response.reasoning_summary_part.added", **where, part=_summary_part(""))

    def _begin(self, item: Json) -> Iterator[bytes]:
        item["status"] = "in_progress"
        self._open = item
        self._pieces = []
        self._logprobs = []
        yield self.event("response.output_item.added", output_index=len(self._output), item=dict(item))

    def _call(self, call_id: str, offered: str) -> Json:
        origin = self._offer.origin(offered)
        common: Json = {"call_id": call_id, "name": origin.name}
        if origin.namespace is not None:
            common["namespace"] = origin.namespace
        if origin.is_custom:
            return {"type": "custom_tool_call", "id": new_id("ctc"), **common, "input": ""}
        return {"type": "function_call", "id": new_id("fc"), **common, "arguments": ""}

    def _end_call(self, call: ToolCall) -> Iterator[bytes]:
        if self._kind == "function_call":
            kind, field, value = "function_call_arguments", "arguments", call.arguments_json
        else:
            # The text stands inside JSON as it comes; a client wants it without.
            kind, field, value = "custom_tool_call_input", "input", custom_input(call.arguments_json)
            yield self.event(f"response.{kind}.delta", **self._where(), delta=value)
        assert self._open is not None
        named = {"name": self._open["name"]} if field == "arguments" else {}
        yield self.event(f"response.{kind}.done", **self._where(), **named, **{field: value})
        yield from self.close()


def _summary_part(text: str) -> Json:
    return {"type": "summary_text", "text": text}


def _text_part(text: str, logprobs: list[Json]) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs}
