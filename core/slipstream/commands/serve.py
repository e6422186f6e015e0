"""`slipstream serve`: the loaded pair behind an API on one port."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from slipstream.commands.options import add_pair, add_prompt_cache, cache_limits, open_pair
from slipstream.prompt.reuse import CacheDesk
from slipstream.server import commands as server
from slipstream.service import Engine
from slipstream.store.calls import KeptCalls
from slipstream.types import Mode


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = server.add_parser(commands, add_pair)
    add_prompt_cache(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    limits = cache_limits(args)
    desk = CacheDesk()
    calls = KeptCalls(Path(limits.folder) / "calls.jsonl" if limits.disk_bytes else None)

    def factory(args: argparse.Namespace) -> Callable[[], Engine]:
        return lambda: open_pair(args, (Mode.AUTO,), limits, desk)

    return server.run(args, factory, desk=desk, calls=calls)
