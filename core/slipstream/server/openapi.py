"""The API's own description, for tools that read such: each route, and what its body may be."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

import slipstream
from slipstream.server.exchange import answer
from slipstream.server.model_host import MAX_KEEP_ALIVE_S

Json = dict[str, Any]  # Any: a JSON schema


def _object(required: str = "", **properties: Json) -> Json:
    schema: Json = {"type": "object", "properties": properties}
    return schema | ({"required": required.split()} if required else {})


def _list(items: Json, **more: Any) -> Json:
    return {"type": "array", "items": items, **more}


def _number(low: float, high: float) -> Json:
    return {"type": "number", "minimum": low, "maximum": high}


def _some(schema: Json) -> Json:
    """The same, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


_TEXT: Json = {"type": "string"}
_NAME: Json = {"type": "string", "minLength": 1, "maxLength": 256}
_FLAG: Json = {"type": "boolean"}
_COUNT: Json = {"type": "integer", "minimum": 1}
_ANY_OBJECT: Json = {"type": "object"}
_STOP: Json = {"anyOf": [_TEXT, _list({"type": "string", "minLength": 1}, maxItems=16)]}

_CONTENT = {"anyOf": [_TEXT, _list(_object("type text", type={"const": "text"}, text=_TEXT))]}
_MESSAGE = _object(
    "role content",
    role={"enum": ["system", "developer", "user", "assistant", "tool"]},
    content=_CONTENT,
    reasoning_content=_TEXT,
    tool_call_id=_TEXT,
    name=_TEXT,
)
_SCHEMA: Json = {
    "type": "object",
    "properties": {"type": {"enum": ["object", "array", "string", "integer", "boolean"]}},
}
_FUNCTION = _object("name", name=_NAME, description=_TEXT, parameters=_ANY_OBJECT, strict=_FLAG)
_FORCED: Json = {
    "anyOf": [{"enum": ["auto", "none", "required"]}, _object("type", type=_TEXT, function=_object("name", name=_NAME))]
}
_FORMS: Json = {"enum": ["text", "json_object", "json_schema"]}
_CHAT_FORM = _object("type", type=_FORMS, json_schema=_object("name schema", name=_NAME, schema=_SCHEMA, strict=_FLAG))
_TEXT_FORM = _object("type", type=_FORMS, name=_NAME, schema=_SCHEMA, strict=_FLAG)
_TOOL = _object("type function", type={"const": "function"}, function=_FUNCTION)

# What `sampling.read_sampling` reads, in every dialect but Ollama's.
_SAMPLED: dict[str, Json] = {
    "temperature": _some(_number(0, 2)),
    "top_p": _some(_number(0, 1)),
    "top_k": {"type": "integer", "minimum": 0, "maximum": 2**31},
    "min_p": _number(0, 1),
    "repetition_penalty": _number(1e-3, 1e3),
    "presence_penalty": _number(-2, 2),
    "frequency_penalty": _number(-2, 2),
    "seed": {"type": "integer"},
    "slipstream": _object(
        mode={"enum": ["auto", "dspark", "dflash", "mtp", "lookup", "baseline"]},
        max_draft={"type": "integer", "minimum": 0, "maximum": 64},
        acceptance={"enum": ["match", "rejection"]},
        prompt_limit={"enum": ["refuse", "drop_oldest"]},
    ),
}
_SAMPLING: dict[str, Json] = {
    **_SAMPLED,
    "stop": _some(_STOP),
    "n": {"type": "integer", "minimum": 1, "maximum": 8},
    "stream": _FLAG,
    "stream_options": _some(_object(include_usage=_FLAG)),
}
_CHAT = _object(
    "model messages",
    model=_TEXT,
    messages=_list(_MESSAGE, minItems=1),
    tools=_list(_TOOL),
    tool_choice=_FORCED,
    parallel_tool_calls=_FLAG,
    max_tokens=_some(_COUNT),
    max_completion_tokens=_some(_COUNT),
    reasoning_effort={"enum": ["none", "minimal", "low", "medium", "high"]},
    response_format=_CHAT_FORM,
    logprobs=_FLAG,
    logit_bias={"type": "object", "additionalProperties": _number(-100, 100)},
    **_SAMPLING,
)
_COMPLETION = _object(
    "model prompt",
    model=_TEXT,
    prompt={"anyOf": [{"type": "string", "minLength": 1}, _list({"type": "string", "minLength": 1}, minItems=1)]},
    max_tokens=_some(_COUNT),
    logprobs={"type": "integer", "minimum": 0, "maximum": 20},
    **_SAMPLING,
)
_OLLAMA_OPTIONS = _object(
    temperature=_number(0, 100),
    top_p=_number(0, 1),
    num_predict={"type": "integer"},
    seed={"type": "integer"},
    stop=_STOP,
)
_OLLAMA: dict[str, Json] = {
    "model": _TEXT,
    "stream": _FLAG,
    "options": _OLLAMA_OPTIONS,
    "format": {"anyOf": [{"const": "json"}, _ANY_OBJECT]},
    "think": _FLAG,
}
_BLOCK = _object("type text", type={"const": "text"}, text=_TEXT)
_ANTHROPIC_MESSAGE = _object(
    "role content", role={"enum": ["user", "assistant"]}, content={"anyOf": [_TEXT, _list(_BLOCK)]}
)
_ANTHROPIC_PROMPT: dict[str, Json] = {
    "model": _TEXT,
    "messages": _list(_ANTHROPIC_MESSAGE, minItems=1),
    "system": {"anyOf": [_TEXT, _list(_BLOCK)]},
    "tools": _list(_object("name input_schema", name=_NAME, description=_TEXT, input_schema=_ANY_OBJECT)),
}
_MESSAGES = _object(
    "model messages max_tokens",
    **_ANTHROPIC_PROMPT,
    max_tokens=_COUNT,
    stop_sequences=_list({"type": "string", "minLength": 1}),
    tool_choice=_object(
        "type", type={"enum": ["auto", "none", "any", "tool"]}, name=_NAME, disable_parallel_tool_use=_FLAG
    ),
    output_config=_object(
        effort={"enum": ["low", "medium", "high"]},
        format=_object("type schema", type={"const": "json_schema"}, schema=_SCHEMA),
    ),
    stream=_FLAG,
    **_SAMPLED,
)
_RESPONSE = _object(
    "model input",
    model=_TEXT,
    input={"anyOf": [_TEXT, _list(_object("role content", role=_MESSAGE["properties"]["role"], content=_TEXT))]},
    instructions=_some(_TEXT),
    max_output_tokens=_some(_COUNT),
    stream=_FLAG,
    store=_FLAG,
    tools=_list(
        _object("type name", type={"const": "function"}, name=_NAME, parameters=_ANY_OBJECT, strict=_some(_FLAG))
    ),
    tool_choice=_FORCED,
    parallel_tool_calls=_FLAG,
    text=_object(format=_TEXT_FORM),
    previous_response_id=_some(_TEXT),
    **_SAMPLED,
)

_BODIES: dict[str, Json] = {
    "/v1/chat/completions": _CHAT,
    "/v1/completions": _COMPLETION,
    "/v1/responses": _RESPONSE,
    "/v1/messages": _MESSAGES,
    "/v1/messages/count_tokens": _object("model messages", **_ANTHROPIC_PROMPT),
    "/api/chat": _object("model messages", messages=_list(_MESSAGE), tools=_list(_TOOL), **_OLLAMA),
    "/api/generate": _object("model", prompt=_TEXT, system=_TEXT, raw=_FLAG, **_OLLAMA),
    "/api/show": _object("model", model=_TEXT),
    "/v1/v1/messages": _MESSAGES,
    "/v1/v1/messages/count_tokens": _object("model messages", **_ANTHROPIC_PROMPT),
    "/admin/load": _object("model", model=_NAME),
    "/admin/calibrate": _object(force=_FLAG),
    "/admin/pin": _object("pinned", pinned=_FLAG),
    "/admin/keep-alive": _object("seconds", seconds=_some(_number(0, MAX_KEEP_ALIVE_S))),
}
_EVENT_STREAMS = frozenset({"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/events"})
_STATUSES = {
    "400": "The request is wrong; the message names the field.",
    "401": "The key is missing or wrong.",
    "403": "This Host or Origin is not allowed.",
    "404": "There is no such thing.",
    "408": "The body did not arrive in time.",
    "413": "The body is too large.",
    "503": "No model can answer now, or too many requests are waiting; see Retry-After.",
}


async def document(request: Request) -> Response:
    return answer(describe_routes(request.app.routes))


def describe_routes(routes: list[Any]) -> Json:  # Any: starlette's routes
    """Made from the route table itself, so that nothing in it goes undescribed."""
    paths: dict[str, Json] = {}
    for route in routes:
        path = route.path.replace(":path}", "}")
        for method in sorted(route.methods - {"HEAD"}):
            paths.setdefault(path, {})[method.lower()] = _operation(path, method, route.name)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Slipstream", "version": slipstream.__version__},
        "paths": paths,
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"key": []}],
    }


def _operation(path: str, method: str, name: str) -> Json:
    kinds: Json = {"application/json": {}}
    if path in _EVENT_STREAMS:
        kinds["text/event-stream"] = {}
    if path in ("/api/chat", "/api/generate"):
        kinds["application/x-ndjson"] = {}
    if path == "/metrics":
        kinds = {"text/plain": {}}
    responses: Json = {"200": {"description": "The answer.", "content": kinds}}
    error = {"application/json": {"schema": _ANY_OBJECT}}
    responses |= {code: {"description": words, "content": error} for code, words in _STATUSES.items()}
    operation: Json = {"operationId": f"{method.lower()}_{name}_{_slug(path)}", "responses": responses}
    if method == "POST" and (body := _BODIES.get(path)):
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    names = [piece[1:-1] for piece in path.split("/") if piece.startswith("{")]
    if names:
        operation["parameters"] = [{"name": name, "in": "path", "required": True, "schema": _NAME} for name in names]
    return operation


def _slug(path: str) -> str:
    return "_".join(piece.strip("{}") for piece in path.split("/") if piece)
