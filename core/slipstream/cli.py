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
    parser = _parser()
    args = parser.parse_args(arguments)
    if args.version:
        print(_versions(str(blas) if blas else "MLX's own"))
        return 0
    if args.run is None:
        if without_command is not None:
            return without_command()
        parser.print_help()
        return 0
    try:
        return args.run(args)
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
    from slipstream.commands import generate, race, verify

    parser = argparse.ArgumentParser(
        prog="slipstream",
        description="Local language models, faster by speculative decoding. Without a command the window opens.",
    )
    parser.add_argument("--version", action="store_true", help="print versions and exit")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(title="commands", metavar="")
    for command in (generate, race, verify):
        command.add_parser(commands)
    return parser


def _versions(blas: str) -> str:
    from slipstream.measure.result import versions

    found = versions()
    lines = [f"slipstream {__version__}", *(f"{name} {value}" for name, value in found.items() if name != "slipstream")]
    if sys.platform == "linux":
        lines.append(f"BLAS {blas}")
    return "\n".join(lines)
