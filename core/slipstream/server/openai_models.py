"""OpenAI's and Anthropic's list of models: the loaded one, and the other names it goes by."""

from __future__ import annotations

from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import Response

from slipstream.errors import SlipstreamError
from slipstream.server.backend import Backend
from slipstream.server.errors import ModelUnknown
from slipstream.server.exchange import answer, backend_of
from slipstream.server.openai_shapes import Json


async def listing(request: Request) -> Response:
    """One body that both dialects can read. Empty while nothing is loaded."""
    backend = backend_of(request)
    names = _names(backend)
    return answer(
        {
            "object": "list",
            "data": [_model(backend, name) for name in names],
            "has_more": False,
            "first_id": names[0] if names else None,
            "last_id": names[-1] if names else None,
        }
    )


async def one(request: Request) -> Response:
    backend = backend_of(request)
    name = request.path_params["id"]
    if name not in _names(backend):
        raise ModelUnknown(f"{name[:100]!r} is not loaded here; GET /v1/models lists what is")
    return answer(_model(backend, name))


def _names(backend: Backend) -> list[str]:
    try:
        return [backend.info().name, *backend.aliases]
    except SlipstreamError:
        return []


def _model(backend: Backend, name: str) -> Json:
    made = datetime.fromtimestamp(backend.started_s, UTC)
    context = backend.info().context
    return {
        "id": name,
        "object": "model",
        "created": int(backend.started_s),
        "owned_by": "slipstream",
        "context_length": context,
        # Anthropic's names.
        "type": "model",
        "display_name": name,
        "created_at": made.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "max_input_tokens": context,
        "max_tokens": context,
    }
