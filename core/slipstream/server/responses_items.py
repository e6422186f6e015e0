"""The input items of a Responses request as messages: several items of one answer are one message again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from slipstream.errors import InvalidRequest
from slipstream.server.anthropic_messages import LEFT_OUT
from slipstream.server.conversation import Message
from slipstream.server.fields import Fields, wrong
from slipstream.server.openai_messages import as_object, read_content
from slipstream.server.responses_tools import INPUT, Offer
from slipstream.server.thoughts import unseal

Item = Mapping[str, Any]  # Any: a JSON object

# What OpenAI's own tools did on their servers. No answer of ours has them.
_HOSTED = frozenset(
    [
        "web_search_call",
        "file_search_call",
        "computer_call",
        "computer_call_output",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_list_tools",
        "mcp_call",
        "mcp_approval_request",
        "mcp_approval_response",
        "tool_search_call",
        "tool_search_output",
        "local_shell_call",
        "local_shell_call_output",
        "compaction",
        "compaction_summary",
    ]
)
_NOT_TEXT = {"input_image": "image", "input_file": "file", "input_audio": "audio"}


def read_input(fields: Fields, offer: Offer, find: Callable[[str], Item | None]) -> tuple[Message, ...]:
    """`find` gives the item of an earlier answer, for items that are only referred to. Raises InvalidRequest."""
    value = fields.raw("input")
    if value is None:
        return ()
    if isinstance(value, str):
        return ({"role": "user", "content": value},)
    if not isinstance(value, list):
        raise wrong("input", "a string or a list of items", value)
    turns = _Turns()
    for item in fields.objects("input"):
        _read(item, offer, find, turns)
    return turns.finish()


def answer_messages(output: list[dict[str, Any]], offer: Offer) -> tuple[Message, ...]:
    """An answer of ours as the next request would bring it back."""
    return read_input(Fields({"input": output}), offer, lambda _: None)


class _Turns:
    def __init__(self) -> None:
        self._made: list[Message] = []
        self._answer: dict[str, Any] = {}  # the assistant message in the making; empty: none

    def other(self, message: Message) -> None:
        self._close()
        self._made.append(message)

    def add(self, field: str, text: str) -> None:
        before = self._open().get(field)
        self._answer[field] = f"{before}\n{text}" if before else text

    def call(self, call_id: str, name: str, arguments: Any) -> None:
        function = {"name": name, "arguments": arguments}
        self._open().setdefault("tool_calls", []).append({"id": call_id, "type": "function", "function": function})

    def finish(self) -> tuple[Message, ...]:
        self._close()
        return tuple(self._made)

    def _open(self) -> dict[str, Any]:
        if not self._answer:
            self._answer = {"role": "assistant", "content": ""}
        return self._answer

    def _close(self) -> None:
        if self._answer:
            self._made.append(self._answer)
            self._answer = {}


def _read(item: Fields, offer: Offer, find: Callable[[str], Item | None], turns: _Turns) -> None:
    kind = item.text("type") or "message"
    match kind:
        case "message":
            role = item.need("role", item.one_of("role", "user", "assistant", "system", "developer"))
            text = read_content(item)
            if role == "assistant":
                turns.add("content", text)
            else:
                turns.other({"role": "user" if role == "user" else "system", "content": text})
        case "reasoning":
            if thought := _thought(item):
                turns.add("reasoning_content", thought)
        case "function_call":
            name = offer.offered(item.need("name", item.text("name")), item.text("namespace"))
            turns.call(_call_id(item), name, as_object(item.text("arguments") or ""))
        case "custom_tool_call":
            name = offer.offered(item.need("name", item.text("name")), item.text("namespace"))
            turns.call(_call_id(item), name, {INPUT: item.text("input") or ""})
        case "function_call_output" | "custom_tool_call_output":
            turns.other({"role": "tool", "tool_call_id": _call_id(item), "content": _output(item)})
        case "item_reference":
            found = find(item.need("id", item.text("id")))
            if found is None:
                raise InvalidRequest(f"{item.path}: no answer kept here has this item; send it whole", path=item.path)
            _read(Fields(dict(found), item.path), offer, lambda _: None, turns)
        case _ if kind not in _HOSTED:
            raise InvalidRequest(f"{item.path}: items of type {kind[:40]!a} cannot be read", path=item.at("type"))
        case _:
            pass


def _call_id(item: Fields) -> str:
    return item.need("call_id", item.text("call_id"))


def _thought(item: Fields) -> str:
    """`@ai-sdk/openai` returns the sealed form alone, Codex and pi the text, and either may be all there is."""
    if sealed := unseal(item.text("encrypted_content")):
        return sealed
    texts = [part.text("text") or "" for name in ("content", "summary") for part in item.objects(name)]
    return "\n".join(text for text in texts if text)


def _output(item: Fields) -> str:
    value = item.raw("output")
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if not isinstance(value, list):
        raise wrong(item.at("output"), "a string or a list of parts", value)
    return "\n".join(_parts(item))


def _parts(item: Fields) -> Iterator[str]:
    """What is no text is named in its place: an agent could not go on after an error here."""
    for part in item.objects("output"):
        kind = part.need("type", part.text("type"))
        text = part.text("text")
        yield text if text is not None else LEFT_OUT.format(_NOT_TEXT.get(kind, ascii(kind[:40])))
