"""`slipstream serve`: the server from the command line."""

from __future__ import annotations

import argparse
import asyncio
import secrets
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

from slipstream import service
from slipstream.errors import SlipstreamError
from slipstream.events import Faulted
from slipstream.jobs import DEFAULT_LIMIT, Inbox
from slipstream.prompt.reuse import CacheDesk
from slipstream.server.admin import Hooks
from slipstream.server.app import DEFAULT_PORT, HttpServer
from slipstream.server.auth import check_origins, is_loopback
from slipstream.server.backend import Backend
from slipstream.service import Engine
from slipstream.store.calls import KeptCalls

# For the engine's thread to end, once the inbox is closed: a round or a prefill chunk, then freeing the device.
ENGINE_END_S = 10.0


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
    parser.add_argument("--port", type=int, default=DEFAULT_PORT)
    parser.add_argument(
        "--api-key", help="what clients must send; made and shown when --host is wide and none is given"
    )
    parser.add_argument(
        "--allow-origin", action="append", default=[], metavar="ORIGIN", help="a web page that may call the server"
    )
    parser.add_argument("--alias", action="append", default=[], help="another name to list the model under")
    parser.add_argument("--max-queue", type=int, default=DEFAULT_LIMIT, help="requests that may wait; more get a 503")
    return parser


def run(
    args: argparse.Namespace,
    open_engine_factory: Callable[[argparse.Namespace], Callable[[], Engine]],
    *,
    desk: CacheDesk | None = None,
    calls: KeptCalls | None = None,
) -> int:
    """Serves until Ctrl-C or SIGTERM. The factory turns the arguments into what `service.serve` opens.

    `desk`: of the engine's prefix cache. `calls`: where the exact text of tool calls is kept.
    """
    try:
        origins = check_origins(args.allow_origin)
    except ValueError as error:
        return _complain(str(error))
    if args.max_queue < 1 or not 0 <= args.port < 65536:
        return _complain("--max-queue must be at least 1, --port from 0 to 65535")
    key: str | None = args.api_key
    if key is None and not is_loopback(args.host):
        key = f"slip-{secrets.token_urlsafe(24)}"
        print(f"Other machines can reach this address, so a key was made: {key}")
    inbox = Inbox(args.max_queue)
    backend = Backend(inbox, aliases=args.alias, calls=calls)
    hooks = Hooks() if desk is None else Hooks(clear_cache=lambda: asyncio.to_thread(desk.clear))
    try:
        open_engine = open_engine_factory(args)
        server = HttpServer(backend, args.host, args.port, key, origins=origins, hooks=hooks)
    except SlipstreamError as error:
        backend.close()
        return _complain(error.message)
    server.start()
    engine = service.start(inbox, open_engine, backend.note, name=args.model or "the built-in model")
    stop = _on_signal()
    try:
        code = _serve(backend, server, key, stop)
    finally:
        inbox.close()
        server.stop()
        engine.join(ENGINE_END_S)
        backend.close()
    return code


def _serve(backend: Backend, server: HttpServer, key: str | None, stop: threading.Event) -> int:
    print("Loading the model…", flush=True)
    is_told = False
    while not stop.wait(0.1):
        status = backend.status
        if isinstance(status, Faulted):
            return _complain(status.error.message)
        if not is_told and backend.is_loaded:
            is_told = True
            _tell(backend, server, key)
    print("Stopped.")
    return 0


def _tell(backend: Backend, server: HttpServer, key: str | None) -> None:
    info = backend.info()
    shown = "any text" if key is None else "the key"
    print(f"{info.name} is ready at {server.url}  (Ctrl-C stops)")
    print(f'  OpenAI:    base_url="{server.url}/v1"  (api_key: {shown})')
    print(f"  Anthropic: ANTHROPIC_BASE_URL={server.url}", flush=True)


def _complain(message: str) -> int:
    print(f"slipstream serve: {message}", file=sys.stderr)
    return 1


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
