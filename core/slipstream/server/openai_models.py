"""OpenAI's and Anthropic's list of models: the loaded one, and the other names it goes by."""

from __future__ import annotations

from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import Response

from slipstream.errors import SlipstreamError
from slipstream.prompt.abilities import abilities_of
from slipstream.server.backend import Backend
from slipstream.server.errors import ModelUnknown
from slipstream.server.exchange import answer, backend_of
from slipstream.server.model_host import ModelHost
from slipstream.server.openai_shapes import Json


async def listing(request: Request) -> Response:
    """One body that both dialects can read: what is loaded, its aliases, then what a request could have loaded."""
    models = await _models(request)
    return answer(
        {
            "object": "list",
            "data": models,
            "has_more": False,
            "first_id": models[0]["id"] if models else None,
            "last_id": models[-1]["id"] if models else None,
        }
    )


async def one(request: Request) -> Response:
    name = request.path_params["id"]
    found = next((model for model in await _models(request) if model["id"] == name), None)
    if found is None:
        raise ModelUnknown(f"{name[:100]!r} is not here; GET /v1/models lists what is")
    return answer(found)


async def _models(request: Request) -> list[Json]:
    backend = backend_of(request)
    listed: dict[str, Json] = {}
    if backend.is_loaded:
        info = backend.info()
        capabilities = await _capabilities(backend)
        for name in (info.name, *backend.aliases):
            listed[name] = _model(backend, name, info.context, capabilities)
    host: ModelHost | None = request.app.state.models
    for known in host.known() if host is not None else ():
        listed.setdefault(known.name, _model(backend, known.name, known.context, None))
    return list(listed.values())


def _model(backend: Backend, name: str, context: int, capabilities: Json | None) -> Json:
    """`context`: 0 when it is not known before the model is loaded."""
    made = datetime.fromtimestamp(backend.started_s, UTC)
    window = context or None
    return {
        "id": name,
        "object": "model",
        "created": int(backend.started_s),
        "owned_by": "slipstream",
        "loaded": capabilities is not None,
        "context_window": window,
        "context_length": window,
        # Anthropic's names.
        "type": "model",
        "display_name": name,
        "created_at": made.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "max_input_tokens": window,
        "max_tokens": window,
        "capabilities": capabilities,
    }


async def _capabilities(backend: Backend) -> Json:
    """What the loaded model can do, in Anthropic's form with all of its keys; and tools, which that takes for granted.

    Thoughts and efforts are those that its chat template knows. Empty when its tokeniser cannot be read.
    """
    try:
        style, abilities = await backend.tokenise(lambda tokeniser: (tokeniser.style, abilities_of(tokeniser)))
    except SlipstreamError:
        return {}
    thinks = _supported(style.think is not None)
    efforts = {level: _supported(level in abilities.efforts) for level in ("low", "medium", "high", "xhigh", "max")}
    no = _supported(False)
    return {
        "tool_use": _supported(True),
        "structured_outputs": _supported(True),
        "image_input": no,
        "pdf_input": no,
        "thinking": thinks
        | {"types": {"adaptive": thinks, "enabled": thinks, "disabled": thinks, "between_tools": thinks}},
        "effort": _supported(bool(abilities.efforts)) | efforts,
        "batch": no,
        "citations": no,
        "code_execution": no,
        "context_management": dict(no),
        "server_tools": no | {"web_search": no, "code_execution": no},
    }


def _supported(is_so: bool) -> Json:
    return {"supported": is_so}
