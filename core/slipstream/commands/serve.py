"""`slipstream serve`: the loaded pair behind an API on one port."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from slipstream.commands.options import DEMO_NAME, add_batch, add_pair, add_prompt_cache, cache_limits, open_pair
from slipstream.commands.scripted import open_scripted, read_script
from slipstream.errors import InvalidRequest, ModelNotFound
from slipstream.events import Report
from slipstream.server import commands as server
from slipstream.server.commands import Models
from slipstream.server.model_host import Known
from slipstream.service import Engine
from slipstream.store.calls import KeptCalls
from slipstream.store.reuse import CacheDesk
from slipstream.types import CacheLimits, Mode


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = server.add_parser(commands, add_pair)
    add_batch(parser)
    add_prompt_cache(parser)
    parser.add_argument(
        "--scripted",
        type=Path,
        metavar="FILE",
        help="for tests: answers come from a script, through the model's own tokeniser, template and decode path",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    limits = cache_limits(args)
    desk = CacheDesk()
    calls = KeptCalls(Path(limits.folder) / "calls.jsonl" if limits.disk_bytes else None)

    def found(args: argparse.Namespace) -> Models:
        return models_of(args, limits, desk)

    return server.run(args, found, desk=desk, calls=calls)


def models_of(args: argparse.Namespace, limits: CacheLimits | None = None, desk: CacheDesk | None = None) -> Models:
    """The pair that the arguments name, and every other model on this machine. Raises InvalidRequest, ModelNotFound."""
    from slipstream.store import local
    from slipstream.store.local import Place, Role

    default = DEMO_NAME if args.model is None else args.model
    if args.scripted is not None:
        return Models(default, _scripted(args, limits, desk), _only(default))
    if args.model is not None:
        local.look_up(args.model)

    def open_engine(name: str, report: Report) -> Engine:
        if name == default:
            return open_pair(args, (Mode.AUTO,), limits, desk, report)
        # Its drafters were made for the other model.
        other = {**vars(args), "model": None if name == DEMO_NAME else name, "drafter": None}
        return open_pair(argparse.Namespace(**other), (Mode.AUTO,), limits, desk, report)

    def find(name: str) -> None:
        if name not in (default, DEMO_NAME):
            local.look_up(name)

    def listed() -> list[Known]:
        others = (m for m in local.models() if m.role is Role.TARGET and m.place is not Place.BUILT_IN)
        return [Known(DEMO_NAME), *(Known(model.name, model.bytes, model.context or 0) for model in others)]

    return Models(default, open_engine, find, listed)


def _scripted(
    args: argparse.Namespace, limits: CacheLimits | None, desk: CacheDesk | None
) -> Callable[[str, Report], Engine]:
    if args.drafter or args.kv_bits:
        raise InvalidRequest("--scripted takes no --drafter and no --kv-bits: there are no weights")
    script = read_script(args.scripted)

    def open_engine(name: str, report: Report) -> Engine:
        from slipstream.store import demo, local

        folder = demo.target() if args.model is None else local.resolve(args.model)
        called = Path(name).name
        return open_scripted(script, folder, called, max_batch=args.max_batch, limits=limits, desk=desk)

    return open_engine


def _only(default: str) -> Callable[[str], None]:
    def find(name: str) -> None:
        if name != default:
            raise ModelNotFound(f"with --scripted there is no model but {default}")

    return find
