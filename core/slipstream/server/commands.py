"""`slipstream serve`: the server from the command line."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import secrets
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

from slipstream.errors import SlipstreamError
from slipstream.events import Report
from slipstream.jobs import DEFAULT_LIMIT, Inbox
from slipstream.server.admin import hooks_of
from slipstream.server.app import HttpServer
from slipstream.server.auth import check_origins, is_loopback
from slipstream.server.backend import Backend
from slipstream.server.errors import CannotListen
from slipstream.server.model_host import MAX_KEEP_ALIVE_S, Known, ModelHost
from slipstream.server.prompt_limit import PromptLimit
from slipstream.service import Engine
from slipstream.store import preferences
from slipstream.store.calls import KeptCalls
from slipstream.store.neighbour import is_slipstream, next_port
from slipstream.store.reuse import CacheDesk

FOR_EVER = "forever"
_UNITS = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True, slots=True)
class Models:
    """What there is to serve. Made by the program from its arguments."""

    default: str  # loaded at the start
    open: Callable[[str, Report], Engine]  # by a name in `listed`, or that `find` found; on the engine's thread
    find: Callable[[str], object] = lambda _: None  # raises ModelNotFound
    listed: Callable[[], list[Known]] = list  # what requests may ask for by name, beside the default


def add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", help="the model's name or folder (the built-in one if left out)")
    parser.add_argument("--drafter", action="append", default=[], help="a drafter's name or folder; may be repeated")


def add_parser(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser],
    add_model: Callable[[argparse.ArgumentParser], None] = add_model,
) -> argparse.ArgumentParser:
    """`add_model` adds the options by which the engine's factory finds the model; `--model` must be among them."""
    parser = subparsers.add_parser("serve", help="answer OpenAI, Anthropic and Ollama clients on one port")
    add_model(parser)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on; wider than this machine needs a key")
    parser.add_argument("--port", type=int, default=preferences.read().port, help="(default: %(default)s)")
    parser.add_argument(
        "--api-key", help="what clients must send; made and shown when --host is wide and none is given"
    )
    parser.add_argument(
        "--allow-origin", action="append", default=[], metavar="ORIGIN", help="a web page that may call the server"
    )
    parser.add_argument("--alias", action="append", default=[], help="another name to list the model under")
    parser.add_argument(
        "--keep-alive",
        type=_seconds,
        default=FOR_EVER,
        metavar="TIME",
        help="unload the model when idle for so long (300, 5m, 1h; default: %(default)s); the next request loads it",
    )
    parser.add_argument(
        "--pin", action="store_true", help="keep this model, whatever model a request names and however long it is idle"
    )
    parser.add_argument(
        "--prompt-limit",
        choices=[limit.value for limit in PromptLimit],
        default=PromptLimit.REFUSE.value,
        help="what to do with a conversation longer than the context: refuse it with its length, or drop its oldest "
        "turns and say so in the answer; a request may choose for itself (default: %(default)s)",
    )
    parser.add_argument(
        "--max-queue", type=int, default=DEFAULT_LIMIT, help="requests that may wait; more get a 503 (%(default)s)"
    )
    return parser


def _seconds(text: str) -> float | None:
    """A time as people write it; None is for ever."""
    if text in (FOR_EVER, "-1"):
        return None
    try:
        number = float(text.rstrip("smh")) * _UNITS.get(text[-1:], 1)
    except ValueError:
        number = -1.0
    if not 0 <= number <= MAX_KEEP_ALIVE_S:
        raise argparse.ArgumentTypeError(f"must be a time such as 300, 5m or 1h, or {FOR_EVER}, not {text!r}")
    return number


def run(
    args: argparse.Namespace,
    models_of: Callable[[argparse.Namespace], Models],
    *,
    desk: CacheDesk | None = None,
    calls: KeptCalls | None = None,
) -> int:
    """Serves until Ctrl-C or SIGTERM.

    `desk`: of the engine's prefix cache. `calls`: where the exact text of tool calls is kept.
    """
    try:
        origins = check_origins(args.allow_origin)
    except ValueError as error:
        return _complain(str(error))
    if args.max_queue < 1:
        return _complain(f"--max-queue must be at least 1, not {args.max_queue}")
    if not 0 <= args.port < 65536:
        return _complain(f"--port must be from 0 to 65535, not {args.port}")
    key: str | None = args.api_key
    if key is None and not is_loopback(args.host):
        key = f"slip-{secrets.token_urlsafe(24)}"
        print(f"Other machines can reach this address, so a key was made: {key}")
    backend = Backend(
        Inbox(args.max_queue), aliases=args.alias, calls=calls, prompt_limit=PromptLimit(args.prompt_limit)
    )
    try:
        models = models_of(args)
        host = ModelHost(
            backend,
            models.open,
            models.default,
            find=models.find,
            models=models.listed,
            queue_limit=args.max_queue,
            keep_alive_s=args.keep_alive,
            pinned=args.pin,
        )
        hooks = hooks_of(host) if desk is None else replace(hooks_of(host), **_cache_hooks(desk, calls))
        server = HttpServer(backend, args.host, args.port, key, origins=origins, hooks=hooks, models=host)
    except SlipstreamError as error:
        backend.close()
        return _complain(_taken(error, args.host, args.port))
    stop = _on_signal()
    server.start()
    has_ended = False
    try:
        code = _serve(backend, server, host, key, stop)
    finally:
        server.stop()
        has_ended = host.close()
        if has_ended:
            backend.close()
    if code == 0:
        print("Stopped.", flush=True)
    if not has_ended:  # Python would wait for the engine's thread; what it computes nobody wants any more
        logging.shutdown()
        os._exit(code)
    gc.freeze()  # the process ends: walking through all that was imported would take another second
    return code


def _serve(backend: Backend, server: HttpServer, host: ModelHost, key: str | None, stop: threading.Event) -> int:
    print("Loading the model…", flush=True)
    loading = server.call(host.load_default())
    while not stop.wait(0.1):
        if loading.done():
            try:
                loading.result()
            except SlipstreamError as error:
                return _complain(error.message)
            _tell(backend, server, key)
            stop.wait()
    return 0


def _tell(backend: Backend, server: HttpServer, key: str | None) -> None:
    info = backend.info()
    shown = "any" if key is None else "KEY"
    how = "" if key is None else "; KEY is what clients must send"
    print(f"{info.name} is ready at {server.url}  (Ctrl-C stops{how})")
    print(f"  OpenAI:    OPENAI_BASE_URL={server.url}/v1 OPENAI_API_KEY={shown}")
    print(f"  Anthropic: ANTHROPIC_BASE_URL={server.url} ANTHROPIC_API_KEY={shown}", flush=True)


def _cache_hooks(desk: CacheDesk, calls: KeptCalls | None) -> dict[str, Any]:
    """Of the admin routes. Both look at what the engine's thread holds, so they wait on threads of their own."""

    async def show() -> Mapping[str, Any]:
        return await asyncio.to_thread(desk.as_json)

    async def clear() -> None:
        await asyncio.to_thread(desk.clear)
        if calls is not None:
            await asyncio.to_thread(calls.clear)

    return {"cache": show, "clear_cache": clear}


def _taken(error: SlipstreamError, host: str, port: int) -> str:
    """What is wrong, and who has the port where that is one of us."""
    if not (isinstance(error, CannotListen) and error.facts.get("reason") == "port"):
        return error.message
    here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    if not is_slipstream(port, here):
        return f"{error.message.partition('; ')[0]}; stop what uses it, or choose another: --port {next_port(port)}"
    return f"Slipstream already serves there; use that one, or start another with --port {next_port(port)}"


def _complain(message: str) -> int:
    print(f"slipstream serve: {message}", file=sys.stderr)
    return 2


def _on_signal() -> threading.Event:
    """Set by Ctrl-C or SIGTERM; a second Ctrl-C ends at once."""
    stop = threading.Event()

    def handle(number: int, _: FrameType | None) -> None:
        stop.set()
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, handle)
        signal.signal(signal.SIGTERM, handle)
    return stop
