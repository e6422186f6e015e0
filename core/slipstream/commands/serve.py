"""`slipstream serve`: the loaded pair behind an API on one port."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from slipstream.commands.options import add_pair, add_prompt_cache, cache_limits, open_pair
from slipstream.server import commands as server
from slipstream.service import Engine
from slipstream.types import Mode


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = server.add_parser(commands, add_pair)
    add_prompt_cache(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    return server.run(args, engine_factory)


def engine_factory(args: argparse.Namespace) -> Callable[[], Engine]:
    limits = cache_limits(args)
    return lambda: open_pair(args, (Mode.AUTO,), limits)
