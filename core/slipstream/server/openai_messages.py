"""What a Chat Completions request says, in the neutral form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from slipstream.errors import InvalidRequest
from slipstream.server.conversation import Conversation, Message, Named, ToolChoice
from slipstream.server.fields import Fields, not_among, wrong
from slipstream.server.formats import read_form
from slipstream.server.prompt_limit import read_limit
from slipstream.server.sampling import make_options, read_bias, read_sampling
from slipstream.types import ModelInfo

MAX_STOPS = 16

# Known, and without a meaning for a model on this machine: in both of OpenAI's dialects, and in this one.
WITHOUT_MEANING = (
    "user",
    "store",
    "metadata",
    "service_tier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "stream_options",
)
_CHAT_WITHOUT_MEANING = ("prediction", "verbosity")

# Template variables that would change how the prompt is made and not what it says.
_RESERVED_VARIABLES = frozenset(
    {
        "conversation",
        "messages",
        "tools",
        "documents",
        "chat_template",
        "add_generation_prompt",
        "continue_final_message",
        "tokenize",
        "padding",
        "truncation",
        "max_length",
        "return_tensors",
        "return_dict",
        "return_assistant_tokens_mask",
        "tokenizer_kwargs",
    }
)

_NOT_TEXT = {
    "image_url": "images",
    "input_image": "images",
    "image": "images",
    "input_audio": "audio",
    "audio": "audio",
    "video_url": "video",
    "file": "files",
    "input_file": "files",
}


def read_conversation(fields: Fields, info: ModelInfo) -> Conversation:
    """Raises InvalidRequest naming what is wrong."""
    fields.ignore(*WITHOUT_MEANING, *_CHAT_WITHOUT_MEANING)
    fields.need("model", fields.text("model"))  # any name is the loaded model's
    _refuse_what_is_not_made(fields)
    messages = tuple(read_message(message) for message in fields.objects("messages"))
    if not messages:
        raise InvalidRequest("messages must be a list with at least one message", path="messages")
    tools = tuple(read_tools(fields))
    thinking, effort = read_effort(fields.text("reasoning_effort"), fields.at("reasoning_effort"))
    variables = dict(fields.mapping("chat_template_kwargs") or {})
    if reserved := sorted(_RESERVED_VARIABLES & set(variables)):
        raise InvalidRequest(f"chat_template_kwargs.{reserved[0]} cannot be set", path="chat_template_kwargs")
    return Conversation(
        messages=messages,
        tools=tools,
        tool_choice=_read_choice(fields, tools),
        thinking=thinking,
        effort=effort,
        options=make_options(
            info,
            **read_common(fields, info),
            max_tokens=fields.whole("max_completion_tokens", 1) or fields.whole("max_tokens", 1),
            logprobs=_read_logprobs(fields),
            grammar=read_form(fields.object("response_format"), "json_schema"),
        ),
        template=variables,
        parallel=fields.flag("parallel_tool_calls"),
        stream=fields.flag("stream") or False,
        limit=read_limit(fields),
    )


def read_common(fields: Fields, info: ModelInfo) -> dict[str, Any]:  # Any: values for Options
    """What chat and plain completions share."""
    stops = fields.texts("stop")
    if len(stops) > MAX_STOPS:
        raise InvalidRequest(f"stop must have at most {MAX_STOPS} strings", path="stop")
    return {
        **read_sampling(fields),
        "logit_bias": read_bias(fields, "logit_bias", info),
        "stop": stops or None,
        "ignore_eos": fields.flag("ignore_eos"),
    }


def read_effort(effort: str | None, path: str) -> tuple[bool | None, str | None]:
    """Whether to think, and how hard. Names of efforts to come are taken as they are."""
    if effort is None:
        return None, None
    if not effort or len(effort) > 32:
        raise wrong(path, "none, minimal, low, medium or high", effort)
    return effort not in ("none", "minimal"), effort


def _refuse_what_is_not_made(fields: Fields) -> None:
    for name in fields.texts("modalities"):
        if name != "text":
            raise InvalidRequest(f"modalities: only text can be made here, not {name[:20]}", path="modalities")
    if fields.has("audio"):
        raise InvalidRequest("audio: only text can be made here", path="audio")
    if fields.has("web_search_options"):
        raise InvalidRequest("web_search_options: nothing is searched here; leave it out", path="web_search_options")


def read_message(fields: Fields) -> Message:
    role = fields.need("role", fields.text("role"))
    if fields.raw("images"):  # Ollama's place for them
        raise InvalidRequest(f"{fields.at('images')}: this model reads text only, no images", path=fields.at("images"))
    content = read_content(fields)
    message: dict[str, Any]
    match role:
        case "system" | "developer" | "user":
            message = {"role": "user" if role == "user" else "system", "content": content}
        case "assistant":
            message = {"role": "assistant", "content": content}
            if thought := _thought_of(fields):
                message["reasoning_content"] = thought
            if calls := list(_read_calls(fields)):
                message["tool_calls"] = calls
        case "tool" | "function":
            message = {"role": "tool", "content": content}
            if call_id := fields.text("tool_call_id"):
                message["tool_call_id"] = call_id
        case _:
            raise not_among(fields.at("role"), "system, developer, user, assistant or tool", role)
    if name := fields.text("name"):
        message["name"] = name
    return message


def _thought_of(fields: Fields) -> str | None:
    return next((text for name in ("reasoning_content", "reasoning", "thinking") if (text := fields.text(name))), None)


def read_content(fields: Fields, name: str = "content") -> str:
    """Text, or a list of text parts. A list with one part means the same as its text."""
    value = fields.raw(name)
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise wrong(fields.at(name), "a string or a list of parts", value)
    return "\n".join(_read_part(part) for part in fields.objects(name))


def _read_part(part: Fields) -> str:
    kind = part.need("type", part.text("type"))
    if kind in ("text", "input_text", "output_text"):
        return part.need("text", part.text("text"))
    if kind == "refusal":
        return part.need("refusal", part.text("refusal"))
    if what := _NOT_TEXT.get(kind):
        raise InvalidRequest(f"{part.path}: this model reads text only, no {what} ({kind})", path=part.path)
    raise not_among(part.at("type"), "text", kind)


def _read_calls(fields: Fields) -> Iterator[Message]:
    for call in fields.objects("tool_calls"):
        function = call.need("function", call.object("function"))
        yield _call(function, call.text("id"))
    if (function := fields.object("function_call")) is not None:
        yield _call(function, None)


def _call(function: Fields, call_id: str | None) -> Message:
    arguments = function.raw("arguments")
    if isinstance(arguments, str):
        arguments = as_object(arguments)
    elif arguments is not None and not isinstance(arguments, dict):
        raise wrong(function.at("arguments"), "JSON text", arguments)
    name = function.need("name", function.text("name"))
    call = {"type": "function", "function": {"name": name, "arguments": {} if arguments is None else arguments}}
    return call if call_id is None else {"id": call_id, **call}


def as_object(text: str) -> Any:  # Any: a JSON object
    """Arguments as templates want them. What a model broke goes back to it as the text that it was."""
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict) else text


def read_tools(fields: Fields) -> Iterator[Message]:
    for tool in fields.objects("tools"):
        kind = tool.need("type", tool.text("type"))
        if kind != "function":
            raise InvalidRequest(f"{tool.at('type')}: only function tools can be called here", path=tool.at("type"))
        yield _tool(tool.need("function", tool.object("function")))
    for function in fields.objects("functions"):
        yield _tool(function)


def _tool(function: Fields) -> Message:
    """`strict` stands beside the function: the prompt need not say it."""
    strict = {"strict": True} if function.flag("strict") else {}
    return {"type": "function", "function": _read_function(function), **strict}


def _read_function(function: Fields) -> Message:
    name = function.need("name", function.text("name"))
    if not name or len(name) > 256:
        raise InvalidRequest(f"{function.at('name')} must have 1 to 256 characters", path=function.at("name"))
    parameters = function.mapping("parameters") or {"type": "object", "properties": {}}
    return {"name": name, "description": function.text("description") or "", "parameters": parameters}


def _read_choice(fields: Fields, tools: tuple[Message, ...]) -> ToolChoice:
    field = "tool_choice" if fields.has("tool_choice") else "function_call"
    value = fields.raw(field)
    choice: ToolChoice
    match value:
        case None:
            return "auto"
        case "auto" | "none":
            return value
        case "required":
            choice = "required"
        case dict():
            given = fields.need(field, fields.object(field))
            function = given.object("function") or given
            choice = Named(function.need("name", function.text("name")))
        case _:
            raise not_among(fields.at(field), "none, auto, required or a function", value)
    names = {tool["function"]["name"] for tool in tools}
    if not names:
        raise InvalidRequest(f"{field} asks for a call, but there are no tools", path=field)
    if isinstance(choice, Named) and choice.name not in names:
        raise InvalidRequest(f"{field} names a function that is not among the tools", path=field)
    return choice


def _read_logprobs(fields: Fields) -> int | None:
    best = fields.whole("top_logprobs", 0, 20)
    if fields.flag("logprobs"):
        return best or 0
    if best:
        raise InvalidRequest("top_logprobs needs logprobs to be true", path="top_logprobs")
    return None
