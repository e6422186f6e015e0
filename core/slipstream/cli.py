"""The `slipstream` command. Bad input is one sentence on stderr and exit code 2, never a traceback."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from slipstream import __version__
from slipstream.errors import SlipstreamError
from slipstream.models.backend import prepare


def main(arguments: Sequence[str] | None = None, *, without_command: Callable[[], int] | None = None) -> int:
    """Run a command; with none given, `without_command` (the app opens its window there)."""
    # Before anything imports MLX.
    blas = prepare()
    try:
        parser = _parser()
        args = parser.parse_args(arguments)
        run: Callable[[argparse.Namespace], int] | None = args.run
        if args.version:
            run = lambda _: _print(_versions(str(blas) if blas else "MLX's own"))  # noqa: E731 - one of three
        elif run is None:
            run = lambda _: without_command() if without_command else _print(parser.format_help())  # noqa: E731
        return run(args)
    except SlipstreamError as error:
        print(f"slipstream: {error.message}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone; Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _parser() -> argparse.ArgumentParser:
    from slipstream.agents import commands as agents
    from slipstream.commands import generate, models, race, serve, verify

    parser = argparse.ArgumentParser(
        prog="slipstream",
        description="Local language models, faster by speculative decoding. Without a command the window opens.",
    )
    parser.add_argument("--version", action="store_true", help="print versions and exit")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(title="commands", metavar="")
    for command in (generate, race, serve, verify, models):
        command.add_parser(commands)
    agents.add_parsers(commands)
    return parser


def _print(text: str) -> int:
    print(text)
    return 0


def _versions(blas: str) -> str:
    from slipstream.measure.result import versions

    found = versions()
    lines = [f"slipstream {__version__}", *(f"{name} {value}" for name, value in found.items() if name != "slipstream")]
    if sys.platform == "linux":
        lines.append(f"BLAS {blas}")
    return "\n".join(lines)
