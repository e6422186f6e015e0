"""The state of the server, for people and for tools that watch it; and what the host program lets others do."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

import slipstream
from slipstream.errors import InvalidRequest, ModelNotFound, SlipstreamError
from slipstream.events import Empty, Faulted, Loading, Ready, Status, Working
from slipstream.server import metrics as figures
from slipstream.server import sse
from slipstream.server.backend import Backend
from slipstream.server.errors import ModelUnknown
from slipstream.server.exchange import answer, answer_unless_left, backend_of, read, read_or_empty
from slipstream.server.model_host import MAX_KEEP_ALIVE_S, ModelHost
from slipstream.server.times import read_time
from slipstream.store.sizes import words


@dataclass(frozen=True, slots=True)
class Hooks:
    """What the host program can do. A route without a hook does not exist.

    Called on the server's loop, which they must not block. Each raises SlipstreamError when it cannot be done.
    """

    load: Callable[[str], Awaitable[None]] | None = None  # a model's name or folder
    unload: Callable[[], Awaitable[None]] | None = None
    restart: Callable[[], Awaitable[None]] | None = None  # an engine that hangs
    calibrate: Callable[[bool], Coroutine[Any, Any, Mapping[str, Any]]] | None = None  # True: on a busy machine too
    pin: Callable[[bool], None] | None = None
    keep_alive: Callable[[float | None], None] | None = None  # idle seconds until unloaded; None: for ever
    models: Callable[[], Mapping[str, Any]] | None = None  # what can be loaded; Any: a JSON document
    cache: Callable[[], Awaitable[Mapping[str, Any]]] | None = None  # the prefix cache's entries and sizes
    clear_cache: Callable[[], Awaitable[None]] | None = None


def hooks_of(models: ModelHost) -> Hooks:
    return Hooks(
        load=models.load,
        unload=models.unload,
        restart=models.restart,
        calibrate=models.calibrate,
        pin=models.pin,
        keep_alive=models.keep_alive,
        models=models.as_json,
    )


def routes(hooks: Hooks) -> list[Route]:
    table = [
        ("POST", "/admin/load", load, hooks.load),
        ("POST", "/admin/unload", unload, hooks.unload),
        ("POST", "/admin/restart", restart, hooks.restart),
        ("POST", "/admin/calibrate", calibrate, hooks.calibrate),
        ("POST", "/admin/pin", pin, hooks.pin),
        ("POST", "/admin/keep-alive", keep_alive, hooks.keep_alive),
        ("GET", "/admin/models", models, hooks.models),
        ("GET", "/admin/cache", cache, hooks.cache),
        ("POST", "/admin/cache/clear", clear_cache, hooks.clear_cache),
    ]
    return [Route(path, route, methods=[method]) for method, path, route, hook in table if hook is not None]


async def root(request: Request) -> Response:
    return answer({"name": "Slipstream", "version": slipstream.__version__})


async def health(request: Request) -> Response:
    """200 while it can answer or will soon; 503 when it cannot, or when a request has not moved for too long."""
    backend = backend_of(request)
    state, detail = _state(backend.status)
    if backend.is_stalled:
        state, detail = "stalled", "a request is under way and nothing has moved; restart the model"
    elif state == "empty" and request.app.state.models is not None:
        state, detail = "ready", "no model is loaded; the next request loads one"
    body: dict[str, Any] = {
        "status": "ok" if state in ("ready", "working") else state,
        "seconds_since_progress": round(backend.seconds_since_progress, 3),
        "active": len(backend.streams),
        "waiting": len(backend.inbox),
        "held": backend.inbox.held,  # of those: until what the window measures has ended
    }
    if detail:
        body["detail"] = detail
    return answer(body, 200 if body["status"] == "ok" else 503)


async def status(request: Request) -> Response:
    backend = backend_of(request)
    state, detail = _state(backend.status)
    match backend.status:
        case Ready(model) | Working(model):
            facts = dataclasses.asdict(model) | {"drafters": [mode.value for mode in model.drafters]}
            facts["modes"] = [*(["auto"] if model.drafters else []), *facts["drafters"], "lookup", "baseline"]
            del facts["path"]
        case _:
            facts = None
    return answer(
        {
            "status": "stalled" if backend.is_stalled else state,
            "detail": detail,
            "model": facts,
            "prompt_limit": backend.prompt_limit.value,
            **figures.as_json(backend),
        }
    )


async def metrics(request: Request) -> Response:
    return PlainTextResponse(
        figures.as_prometheus(backend_of(request)), media_type="text/plain; version=0.0.4; charset=utf-8"
    )


async def metrics_json(request: Request) -> Response:
    return answer(figures.as_json(backend_of(request)))


async def events(request: Request) -> Response:
    return sse.EventStream(_rounds(backend_of(request)))


async def _rounds(backend: Backend) -> AsyncGenerator[bytes, None]:
    yield sse.COMMENT
    async for line in backend.metrics.follow():
        yield sse.event(line, str(line["type"]))


async def load(request: Request) -> Response:
    fields = await read(request)
    name = fields.need("model", fields.text("model"))
    try:
        return await _do(request, lambda hooks: hooks.load and hooks.load(name))
    except ModelNotFound as error:
        raise ModelUnknown(error.message) from error


async def unload(request: Request) -> Response:
    """Answers once the model is gone, which is after the answers under way."""
    return await _do(request, lambda hooks: hooks.unload and hooks.unload())


async def restart(request: Request) -> Response:
    return await _do(request, lambda hooks: hooks.restart and hooks.restart())


async def calibrate(request: Request) -> Response:
    """What the loaded model's passes cost on this machine, measured now. Ends with the client that asked."""
    fields = await read_or_empty(request)
    hook = _hooks(request).calibrate
    assert hook is not None, "a route without a hook does not exist"
    return await answer_unless_left(request, hook(fields.flag("force") or False))


async def clear_cache(request: Request) -> Response:
    return await _do(request, lambda hooks: hooks.clear_cache and hooks.clear_cache())


async def pin(request: Request) -> Response:
    """Without a body: pin it."""
    fields = await read_or_empty(request)
    hook = _hooks(request).pin
    assert hook is not None, "a route without a hook does not exist"
    hook(fields.need("pinned", fields.flag("pinned")) if fields.names else True)
    return answer({"ok": True})


async def keep_alive(request: Request) -> Response:
    fields = await read(request)
    hook = _hooks(request).keep_alive
    assert hook is not None, "a route without a hook does not exist"
    if "keep_alive" in fields.names:  # as Ollama's clients write it
        seconds = read_time(fields, "keep_alive")
        hook(None if seconds is None or seconds < 0 else seconds)
    elif "seconds" in fields.names:
        hook(fields.number("seconds", 0, MAX_KEEP_ALIVE_S))
    else:
        message = 'seconds is required: a number, or null for ever; or keep_alive: a time such as "5m"'
        raise InvalidRequest(message, path="seconds")
    return answer({"ok": True})


async def models(request: Request) -> Response:
    hook = _hooks(request).models
    assert hook is not None, "a route without a hook does not exist"
    return answer(hook())


async def cache(request: Request) -> Response:
    hook = _hooks(request).cache
    assert hook is not None, "a route without a hook does not exist"
    return answer(await hook())


def _hooks(request: Request) -> Hooks:
    return request.app.state.hooks


async def _do(request: Request, choose: Callable[[Hooks], Awaitable[None] | None]) -> Response:
    work = choose(_hooks(request))
    assert work is not None, "a route without a hook does not exist"
    await work
    return answer({"ok": True})


def _state(status: Status) -> tuple[str, str | None]:
    match status:
        case Empty():
            return "empty", "no model is loaded"
        case Loading(model, done, total):
            return "loading", f"{model} is loading" + (f", {words(done)} of {words(total)} are read" if total else "")
        case Ready():
            return "ready", None
        case Working():
            return "working", None
        case Faulted(error):
            return "faulted", _sentence(error)


def _sentence(error: SlipstreamError) -> str:
    return error.message
