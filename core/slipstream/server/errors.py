"""What an error looks like over HTTP: one table of statuses, and the body each dialect expects."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from starlette.responses import JSONResponse

from slipstream import errors
from slipstream.errors import SlipstreamError

Body = dict[str, Any]  # Any: a JSON document


class NotReady(SlipstreamError):
    """No model can answer now: none is loaded, one is loading, or loading failed."""

    code: ClassVar[str] = "not_ready"


class ModelUnknown(SlipstreamError):
    """A name that is not the loaded model's, where a name is looked up and not merely sent along."""

    code: ClassVar[str] = "model_not_found"


class CannotListen(SlipstreamError):
    """The address cannot be had: taken, not ours, or too open without a key."""

    code: ClassVar[str] = "cannot_listen"


class Refused(SlipstreamError):
    """What the edge turns away before a route sees it: a status and a code of its own."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.problem = Problem(status, code, message, dict(headers or {}))


@dataclass(frozen=True, slots=True)
class Problem:
    """An error as HTTP sees it, before a dialect gives it a body."""

    status: int
    code: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    param: str | None = None  # the field that was wrong, where one was

    @property
    def is_ours(self) -> bool:
        return self.status >= 500


# The first class that fits decides; subclasses stand before their parents.
_STATUS: tuple[tuple[type[SlipstreamError], int], ...] = (
    (errors.ContextFull, 400),
    (errors.InvalidRequest, 400),
    (ModelUnknown, 404),
    (errors.Busy, 503),
    (errors.Unsteady, 409),
    (errors.Closed, 503),
    (NotReady, 503),
    # The host failed to load what it was told to: nothing the client can change.
    (errors.ModelNotFound, 503),
    (errors.ModelIncomplete, 503),
    (errors.UnsupportedModel, 503),
    (errors.WontFit, 503),
    (errors.PairMismatch, 503),
    (errors.EngineFaulted, 503),
)
RETRY_AFTER_S = 5  # where the error itself does not say


def describe(error: SlipstreamError) -> Problem:
    if isinstance(error, Refused):
        return error.problem
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    headers: dict[str, str] = {}
    if status == 503:
        wait = error.facts.get("retry_after_s", RETRY_AFTER_S)
        headers["Retry-After"] = str(max(1, math.ceil(wait)) if isinstance(wait, int | float) else RETRY_AFTER_S)
    message = error.message
    if isinstance(error, errors.Unsteady):  # its sentence names the command's option
        message = message.replace("with --force", 'with "force": true')
    param = error.facts.get("path") or error.facts.get("option")
    return Problem(status, error.code, message, headers, param if isinstance(param, str) else None)


_OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 503: "overloaded_error"}
_OPENAI_CODES = {"context_full": "context_length_exceeded"}


def openai_body(problem: Problem) -> Body:
    kind = _OPENAI_TYPES.get(problem.status, "server_error" if problem.is_ours else "invalid_request_error")
    code = _OPENAI_CODES.get(problem.code, problem.code)
    return {"error": {"message": problem.message, "type": kind, "param": problem.param, "code": code}}


_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "invalid_request_error",
    413: "request_too_large",
    503: "overloaded_error",
}


def anthropic_body(problem: Problem) -> Body:
    kind = _ANTHROPIC_TYPES.get(problem.status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": problem.message}}


def ollama_body(problem: Problem) -> Body:
    return {"error": problem.message}


_BODIES: tuple[tuple[str, Callable[[Problem], Body]], ...] = (
    ("/v1/messages", anthropic_body),
    ("/v1/v1/messages", anthropic_body),
    ("/api/", ollama_body),
)


def respond(problem: Problem, path: str) -> JSONResponse:
    """The answer of the dialect that lives at `path`."""
    body = next((body for prefix, body in _BODIES if path.startswith(prefix)), openai_body)
    return JSONResponse(body(problem), problem.status, dict(problem.headers))
