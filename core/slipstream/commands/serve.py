"""`slipstream serve`: the loaded pair behind an API on one port."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from slipstream.commands.options import DEMO_NAME, add_pair, open_pair
from slipstream.commands.scripted import open_scripted, read_script
from slipstream.errors import InvalidRequest
from slipstream.server import commands as server
from slipstream.service import Engine
from slipstream.types import Mode


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = server.add_parser(commands, add_pair)
    parser.add_argument(
        "--scripted",
        type=Path,
        metavar="FILE",
        help="for tests: answers come from a script, through the model's own tokeniser, template and decode path",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    return server.run(args, engine_factory)


def engine_factory(args: argparse.Namespace) -> Callable[[], Engine]:
    """Raises InvalidRequest for a script that cannot be read."""
    if args.scripted is None:
        return lambda: open_pair(args, (Mode.AUTO,))
    if args.drafter or args.kv_bits:
        raise InvalidRequest("--scripted takes no --drafter and no --kv-bits: there are no weights")
    script = read_script(args.scripted)

    def open_engine() -> Engine:
        from slipstream.store import demo, local

        if args.model is None:
            return open_scripted(script, demo.target(), DEMO_NAME)
        return open_scripted(script, local.resolve(args.model), Path(args.model).name)

    return open_engine
