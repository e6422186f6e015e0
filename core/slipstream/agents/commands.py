"""`slipstream agents CLIENT show|write|test|undo`, `slipstream claude` and `slipstream pi`.

`add_parsers` sets `run` on each parser: a function of the parsed arguments that returns the exit status.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from slipstream.agents import client, plan, write
from slipstream.agents.config import Note, Place, ServerAddress, choose_model
from slipstream.agents.plan import Plan
from slipstream.agents.registry import AGENTS, LAUNCHERS, Agent
from slipstream.errors import InvalidRequest, SlipstreamError
from slipstream.store import preferences

OK, FAILED, WRONG_USE = 0, 1, 2
KEY_VARIABLE = "SLIPSTREAM_API_KEY"
ACTIONS = {
    "show": "print the exact change, change nothing",
    "write": "print the change, ask, back up and write",
    "test": "let the installed client read a file with a tool",
    "undo": "give the files back what was there before",
}


def add_parsers(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    agents = subparsers.add_parser("agents", help="set up a coding agent for this server")
    names = agents.add_subparsers(dest="agent", metavar="AGENT", required=True)
    for name, agent in AGENTS.items():
        actions = names.add_parser(name, help=f"set up {agent.TITLE}").add_subparsers(
            dest="action", metavar="ACTION", required=True
        )
        for action, text in ACTIONS.items():
            parser = actions.add_parser(action, help=text, description=f"{agent.TITLE}: {text}.")
            _add_options(parser, action)
            parser.set_defaults(run=_run_agents)
    for name, launcher in LAUNCHERS.items():
        # No prefix characters: everything behind the name is a plain argument here, also -p and --help.
        parser = subparsers.add_parser(
            name,
            help=f"start {launcher.TITLE} with this server, changing no file",
            prefix_chars="\0",
            add_help=False,
        )
        parser.add_argument("args", nargs=argparse.REMAINDER)
        parser.set_defaults(run=_run_launcher, program=name)


def _add_options(parser: argparse.ArgumentParser, action: str) -> None:
    if action != "undo":
        _add_server_options(parser)
    if action == "test":
        parser.add_argument(
            "--timeout", type=float, default=client.TEST_TIMEOUT_S, metavar="S", help="seconds (default: %(default)g)"
        )
    else:
        parser.add_argument("--home", type=Path, metavar="DIR", help="another home folder than yours")
    if action in ("write", "undo"):
        parser.add_argument("--yes", action="store_true", help="do not ask")


def _add_server_options(parser: argparse.ArgumentParser) -> None:
    url = f"http://127.0.0.1:{preferences.read().port}"
    parser.add_argument("--url", default=url, help="where the server listens (default: %(default)s)")
    parser.add_argument("--key", help=f"the server's key, if it has one (default: ${KEY_VARIABLE})")
    parser.add_argument("--model", metavar="NAME", help="as the server calls it (default: the first it lists)")
    parser.add_argument("--context", type=int, metavar="N", help="its window in tokens (default: ask the server)")


def _run_agents(args: argparse.Namespace) -> int:
    agent = AGENTS[args.agent]
    actions: dict[str, Callable[[Agent, argparse.Namespace], int]] = {
        "show": _show,
        "write": _write,
        "test": _test,
        "undo": _undo,
    }
    try:
        return actions[args.action](agent, args)
    except SlipstreamError as error:
        return _fail(error)


def _show(agent: Agent, args: argparse.Namespace) -> int:
    _print_plan(_plan(agent, args), f"{agent.TITLE} is set up already; nothing would change.")
    return OK


def _write(agent: Agent, args: argparse.Namespace) -> int:
    change = _plan(agent, args)
    _print_plan(change, f"{agent.TITLE} is set up already; nothing to change.")
    if change.is_empty:
        return OK
    if (refused := _refusal(args, "Write this?")) is not None:
        return refused
    applied = write.apply(change)
    _print_applied(applied)
    where = f" --home {args.home}" if args.home else ""
    print(f"Try it: slipstream agents {agent.NAME} test    Go back: slipstream agents {agent.NAME} undo{where}")
    return OK


def _test(agent: Agent, args: argparse.Namespace) -> int:
    server = _server(args)
    model, notes = choose_model(server, args.model, args.context)
    _print_notes(notes)
    report = agent.test(server, model, args.timeout)
    name = f"{agent.TITLE} {report.version}".strip()
    if report.passed:
        print(f"PASS {name}: {report.reason} ({report.seconds:.1f} s)")
        return OK
    print(f"FAIL {name}: {report.reason}")
    return FAILED


def _undo(agent: Agent, args: argparse.Namespace) -> int:
    change = plan.undo(agent.NAME, _place(args))
    if not change.records:
        print(f"Slipstream has changed nothing for {agent.TITLE}.")
        return OK
    _print_plan(change, "Nothing of what Slipstream wrote is left.")
    if not change.is_empty and (refused := _refusal(args, "Go back?")) is not None:
        return refused
    _print_applied(write.apply(change))
    return OK


def _run_launcher(args: argparse.Namespace) -> int:
    launcher = LAUNCHERS[args.program]
    parser = argparse.ArgumentParser(
        prog=f"slipstream {args.program}",
        usage="%(prog)s [--url URL] [--key K] [--model NAME] [--context N]\n       [--] [arguments of the client ...]",
        description=f"Starts {launcher.TITLE} with this server and changes no file. Everything else goes to it.",
        allow_abbrev=False,
        add_help=False,
    )
    _add_server_options(parser)
    given, rest = _split(args.args)
    if given in (["--help"], ["-h"]):
        parser.print_help()
        return OK
    own, unknown = parser.parse_known_args(given)
    try:
        server = _server(own)
        model, notes = choose_model(server, own.model, own.context)
        _print_notes(notes)
        place = Place.here()
        program = client.locate(args.program, place)
        if program is None:
            print(f"{launcher.TITLE} is not installed; install it with: {launcher.INSTALL}", file=sys.stderr)
            return FAILED
        with tempfile.TemporaryDirectory(prefix="slipstream-") as folder:
            rest = (*unknown, *rest)
            launch = launcher.launcher(server, model, place, program, rest, Path(folder))
            return client.run(launch, server.host)
    except SlipstreamError as error:
        return _fail(error)


def _split(args: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Before and behind the first `--`."""
    at = args.index("--") if "--" in args else len(args)
    return list(args[:at]), tuple(args[at + 1 :])


def _server(args: argparse.Namespace) -> ServerAddress:
    return ServerAddress(args.url, args.key or os.environ.get(KEY_VARIABLE) or None)


def _place(args: argparse.Namespace) -> Place:
    return Place.at(args.home) if args.home else Place.here()


def _plan(agent: Agent, args: argparse.Namespace) -> Plan:
    server = _server(args)
    model, notes = choose_model(server, args.model, args.context)
    _print_notes(notes)
    return agent.plan(server, model, _place(args))


def _print_plan(change: Plan, if_empty: str) -> None:
    _print_notes(change.notes)
    print(if_empty if change.is_empty else change.diff.rstrip("\n"))


def _print_notes(notes: Sequence[Note]) -> None:
    for note in notes:
        print(f"Note: {note.text}", file=sys.stderr)


def _print_applied(applied: write.Applied) -> None:
    for path in applied.files:
        print(f"{'Wrote' if path.exists() else 'Removed'} {path}")
    for path in applied.backups:
        print(f"Backup: {path}")


def _refusal(args: argparse.Namespace, question: str) -> int | None:
    """The exit code of nobody having agreed, which is said too; None to go on."""
    if args.yes:
        return None
    if not sys.stdin.isatty():
        print("Nothing was changed: there is no terminal to ask at. Add --yes to do it.", file=sys.stderr)
        return WRONG_USE
    try:
        is_agreed = input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except (EOFError, KeyboardInterrupt):
        print()
        is_agreed = False
    if is_agreed:
        return None
    print("Nothing was changed.")
    return FAILED


def _fail(error: SlipstreamError) -> int:
    print(error.message, file=sys.stderr)
    return WRONG_USE if isinstance(error, InvalidRequest) else FAILED
