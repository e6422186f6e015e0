"""What an Anthropic Messages request says, in the neutral form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from slipstream.errors import InvalidRequest
from slipstream.server.conversation import Conversation, Message, Named, ToolChoice
from slipstream.server.fields import Fields, wrong
from slipstream.server.formats import schema_grammar
from slipstream.server.openai_messages import read_effort
from slipstream.server.prompt_limit import read_limit
from slipstream.server.sampling import make_options, read_sampling
from slipstream.server.thoughts import unseal
from slipstream.types import Grammar, ModelInfo

# Claude Code's attribution, which differs between conversations and stands at the very start of the prompt.
BILLING_HEADER = "x-anthropic-billing-header"

# Known, and without a meaning for a model on this machine.
_WITHOUT_MEANING = [
    "metadata",
    "context_management",
    "safeguards",
    "service_tier",
    "cache_control",
    "betas",
    "anthropic_beta",
    "inference_geo",
    "speed",
]
# Where a request asks Anthropic's servers to do something.
_NOT_DONE = {
    "mcp_servers": "no server is called here; leave it out, and offer its tools as tools",
    "container": "nothing is run here; leave it out",
}
_TOOL_WITHOUT_MEANING = ["cache_control", "eager_input_streaming", "allowed_callers", "input_examples"]

# Marks of what Anthropic's own tools did on their servers. No answer of ours has them.
_HOSTED_BLOCKS = frozenset(
    [
        "server_tool_use",
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
        "mcp_tool_use",
        "mcp_tool_result",
        "container_upload",
        "compaction",
    ]
)

LEFT_OUT = "[{} left out: this model reads text only]"


def read_conversation(fields: Fields, info: ModelInfo, *, is_count: bool = False) -> Conversation:
    """Raises InvalidRequest naming what is wrong. A request to count need not say how long the answer may be."""
    fields.ignore(*_WITHOUT_MEANING)
    for name, instead in _NOT_DONE.items():
        if fields.raw(name):
            raise InvalidRequest(f"{name}: {instead}", path=name)
    fields.need("model", fields.text("model"))  # any name is the loaded model's
    messages = [*_read_system(fields), *_read_messages(fields)]
    tools = tuple(_read_tools(fields))
    output = fields.object("output_config")
    _, effort = read_effort(output.text("effort"), output.at("effort")) if output else (None, None)
    limit = fields.whole("max_tokens", 1)
    return Conversation(
        messages=tuple(messages),
        tools=tools,
        tool_choice=_read_choice(fields, tools),
        thinking=_read_thinking(fields),
        effort=effort,
        options=make_options(
            info,
            max_tokens=limit if is_count else fields.need("max_tokens", limit),
            stop=fields.texts("stop_sequences") or None,
            grammar=_read_format(fields, output),
            **read_sampling(fields),
        ),
        stream=fields.flag("stream") or False,
        parallel=_read_parallel(fields),
        limit=read_limit(fields),
    )


def _read_system(fields: Fields) -> Iterator[Message]:
    value = fields.raw("system")
    if isinstance(value, str):
        header, _, rest = value.partition("\n")
        blocks = [rest if header.startswith(BILLING_HEADER) else value]
    else:
        blocks = [block.need("text", block.text("text")) for block in fields.objects("system")]
    text = "\n\n".join(block for block in blocks if block and not block.startswith(BILLING_HEADER))
    if text:
        yield {"role": "system", "content": text}


def _read_messages(fields: Fields) -> list[Message]:
    made: list[Message] = []
    for message in fields.objects("messages"):
        role = message.need("role", message.one_of("role", "user", "assistant", "system"))
        blocks = _blocks(message, "content")
        if role == "assistant":
            made.append(_assistant(blocks))
        elif role == "system":
            made.append({"role": "system", "content": _joined(_text(block, refuses=True) for block in blocks)})
        else:
            made += _user(blocks)
    if not made:
        raise InvalidRequest("messages: at least one message is required", path="messages")
    last = made[-1]
    if last["role"] == "assistant" and last["content"] and "tool_calls" not in last:
        made[-1] = {**last, "prefix": True}
    return made


def _blocks(fields: Fields, name: str) -> list[Fields]:
    """A string means the same as a list with one text block of it."""
    value = fields.raw(name)
    if isinstance(value, str):
        return [Fields({"type": "text", "text": value}, fields.at(name))]
    fields.need(name, value)
    if not isinstance(value, list):
        raise wrong(fields.at(name), "a string or a list of blocks", value)
    return list(fields.objects(name))


def _joined(texts: Iterator[str]) -> str:
    return "\n".join(text for text in texts if text)


def _user(blocks: Sequence[Fields]) -> Iterator[Message]:
    texts: list[str] = []
    for block in blocks:
        if block.text("type") == "tool_result":
            if texts:
                yield {"role": "user", "content": _joined(iter(texts))}
                texts = []
            yield _result(block)
        else:
            texts.append(_text(block, refuses=True))
    if texts or not blocks:
        yield {"role": "user", "content": _joined(iter(texts))}


def _assistant(blocks: Sequence[Fields]) -> Message:
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[Message] = []
    for block in blocks:
        match block.need("type", block.text("type")):
            case "thinking":
                thoughts.append(block.text("thinking") or unseal(block.text("signature")))
            case "redacted_thinking":
                thoughts.append(unseal(block.text("data")))
            case "tool_use":
                calls.append(_call(block))
            case _:
                texts.append(_text(block, refuses=False))
    made: dict[str, Any] = {"role": "assistant", "content": _joined(iter(texts))}
    if thought := _joined(iter(thoughts)):
        made["reasoning_content"] = thought
    if calls:
        made["tool_calls"] = calls
    return made


def _call(block: Fields) -> Message:
    name = block.need("name", block.text("name"))
    given = block.raw("input")  # no object where a client gives back what a model broke
    arguments = given if isinstance(given, dict) else {} if given is None else str(given)
    function = {"name": name, "arguments": arguments}
    return {"id": block.need("id", block.text("id")), "type": "function", "function": function}


def _result(block: Fields) -> Message:
    """What a tool returned. Its images are left out with a note: an agent could not go on after an error here."""
    made: dict[str, Any] = {"role": "tool", "tool_call_id": block.need("tool_use_id", block.text("tool_use_id"))}
    parts = _blocks(block, "content") if block.has("content") else []
    references = [
        part.need("tool_name", part.text("tool_name")) for part in parts if part.text("type") == "tool_reference"
    ]
    made["content"] = _joined(_text(part, refuses=False) for part in parts if part.text("type") != "tool_reference")
    if not made["content"] and block.flag("is_error"):
        made["content"] = "error"
    if references:
        made["tool_references"] = references
    return made


def _text(block: Fields, *, refuses: bool) -> str:
    """The text of a block. What is no text is refused, or named in its place."""
    kind = block.need("type", block.text("type"))
    source = block.object("source") if kind == "document" else block
    if kind in _HOSTED_BLOCKS:
        return ""
    if kind == "text":
        return block.need("text", block.text("text"))
    if kind == "search_result":
        return _titled([block.text("title"), block.text("source")], block, refuses)
    if kind == "document" and source is not None and source.text("type") in ("text", "content"):
        return _titled([block.text("title")], source, refuses)
    if refuses and kind in ("image", "document"):
        raise InvalidRequest(f"{block.path}: this model reads text only, no {kind}s ({kind})", path=block.path)
    if refuses:
        raise InvalidRequest(f"{block.path}: blocks of type {kind[:40]!a} cannot be read", path=block.at("type"))
    return LEFT_OUT.format(kind if kind in ("image", "document") else ascii(kind[:40]))


def _titled(heads: Sequence[str | None], source: Fields, refuses: bool) -> str:
    """The text of a document, under its title."""
    data = source.text("data")
    texts = [data] if data is not None else [_text(part, refuses=refuses) for part in _blocks(source, "content")]
    return _joined(iter([*(head or "" for head in heads), *texts]))


def _read_tools(fields: Fields) -> Iterator[Message]:
    """Tools that the client runs. Those of Anthropic's servers, or known to its models alone, are left out."""
    for tool in fields.objects("tools"):
        if (tool.text("type") or "custom") != "custom":
            continue
        name = tool.need("name", tool.text("name"))
        if not name or len(name) > 256:
            raise InvalidRequest(f"{tool.at('name')} must have 1 to 256 characters", path=tool.at("name"))
        schema = tool.mapping("input_schema") or {"type": "object", "properties": {}}
        tool.ignore(*_TOOL_WITHOUT_MEANING)
        function = {"name": name, "description": tool.text("description") or "", "parameters": schema}
        made: dict[str, Any] = {"type": "function", "function": function}
        if tool.flag("strict"):
            made["strict"] = True
        if tool.flag("defer_loading"):
            made["defer_loading"] = True
        yield made


def _read_choice(fields: Fields, tools: Sequence[Message]) -> ToolChoice:
    given = fields.object("tool_choice")
    if given is None:
        return "auto"
    names = {tool["function"]["name"] for tool in tools}
    match given.need("type", given.one_of("type", "auto", "none", "any", "tool")):
        case "any" if names:
            return "required"
        case "tool" if (name := given.need("name", given.text("name"))) in names:
            return Named(name)
        case "any" | "tool":
            raise InvalidRequest("tool_choice asks for a tool that is not among the tools", path="tool_choice")
        case "none":
            return "none"
        case _:
            return "auto"


def _read_parallel(fields: Fields) -> bool | None:
    given = fields.object("tool_choice")
    is_off = given.flag("disable_parallel_tool_use") if given else None
    return None if is_off is None else not is_off


def _read_thinking(fields: Fields) -> bool:
    """Anthropic's models think when they are told to. How much is shown is not ours to cut: it is a sign of life."""
    given = fields.object("thinking")
    if given is None:
        return False
    given.whole("budget_tokens", 0)
    return given.need("type", given.text("type")) != "disabled"


def _read_format(fields: Fields, output: Fields | None) -> Grammar | None:
    given = (output.object("format") if output else None) or fields.object("output_format")
    if given is None:
        return None
    given.need("type", given.one_of("type", "json_schema"))
    return schema_grammar(given.need("schema", given.mapping("schema")), given.at("schema"))
