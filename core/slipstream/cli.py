"""The `slipstream` command. Bad input is one sentence on stderr and exit code 2, never a traceback."""

from __future__ import annotations

import argparse
import io
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import cast

from slipstream import __version__, log
from slipstream.commands.output import can_say_everything
from slipstream.commands.parser import Parser
from slipstream.errors import SlipstreamError
from slipstream.models.backend import prepare

logger = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None, *, without_command: Callable[[], int] | None = None) -> int:
    """Run a command; with none given, `without_command` (the app opens its window there)."""
    _say_what_the_terminal_cannot()
    log.to_stderr()
    with _interruptible():
        try:
            return _run(arguments, without_command)
        except SlipstreamError as error:
            print(f"slipstream: {error.message}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            print("Stopped.", file=sys.stderr)
            _leave_at_once(130)
            return 130
        except BrokenPipeError:  # whoever read our output has gone
            _stop_printing()
            return 128 + signal.SIGPIPE
        except OSError as error:
            logger.debug("an error of the system", exc_info=True)
            if error.filename is None:
                _stop_printing()
            where = "the output" if error.filename is None else error.filename
            print(f"slipstream: {where}: {error.strerror or error}; make room, or make it writable", file=sys.stderr)
            return 2


def _stop_printing() -> None:
    """What cannot be written Python would try again when it flushes at exit, and complain."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(arguments: Sequence[str] | None, without_command: Callable[[], int] | None) -> int:
    # Before anything imports MLX.
    blas = prepare()
    parser = _parser()
    given = [*(sys.argv[1:] if arguments is None else arguments)]
    if given[:1] == ["help"]:
        given = [*given[1:], "--help"]
    args = parser.parse_args(given)
    if args.version:
        print(_versions(str(blas) if blas else "MLX's own"))
        return 0
    run: Callable[[argparse.Namespace], int] | None = args.run
    if run is not None:
        return run(args)
    if without_command is not None:
        return without_command()
    parser.print_help()
    return 0


def _leave_at_once(code: int) -> None:
    """A second Ctrl-C does not wait for the engine's thread, and Python would end in the middle of its work."""
    others = [each for each in threading.enumerate() if each is not threading.main_thread() and not each.daemon]
    if others and threading.current_thread() is threading.main_thread():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


@contextmanager
def _interruptible() -> Generator[None]:
    """Ctrl-C raises KeyboardInterrupt in here, also where the entry point had it end the process."""
    before = signal.getsignal(signal.SIGINT)
    is_ours = threading.current_thread() is threading.main_thread() and before is signal.SIG_DFL
    if is_ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, before)


def _say_what_the_terminal_cannot() -> None:
    """A terminal of few characters gets the others as escapes; an error in the middle of an answer helps nobody."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not can_say_everything(stream):
            stream.reconfigure(errors="backslashreplace")


def _parser() -> argparse.ArgumentParser:
    from slipstream.agents import commands as agents
    from slipstream.commands import benchmark, calibrate, doctor, generate, models, race, roofline, serve, train, verify

    description = "Local language models, faster by speculative decoding. Without a command the window opens."
    parser = cast(argparse.ArgumentParser, Parser(prog="slipstream", description=description))
    parser.add_argument("--version", action="store_true", help="print versions and exit")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for command in (generate, race, serve, models, train, calibrate, benchmark, roofline, verify, doctor):
        command.add_parser(commands)
    agents.add_parsers(commands)
    for listed in commands._choices_actions:
        if listed.help and not (command := commands.choices[listed.dest]).description:
            command.description = f"{listed.help[0].upper()}{listed.help[1:]}."
    return parser


def _versions(blas: str) -> str:
    from slipstream.measure.result import versions

    found = versions()
    lines = [f"slipstream {__version__}", *(f"{name} {value}" for name, value in found.items() if name != "slipstream")]
    if sys.platform == "linux":
        lines.append(f"BLAS {blas}")
    return "\n".join(lines)
