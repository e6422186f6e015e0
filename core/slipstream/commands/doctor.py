"""`slipstream doctor`: what is wrong with this machine, if anything, and what to do about it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from slipstream.commands.output import check_file, print_json, write_file
from slipstream.measure.doctor import Check, Finding, State, examine, report

# Agents whose program is not called as they are here.
PROGRAMS = {"claude-code": "claude"}
MARKS = {State.GOOD: "ok", State.NOTE: "note", State.WARNING: "WARNING", State.PROBLEM: "PROBLEM"}


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("doctor", help="check this machine, and say what to do about what is wrong")
    parser.add_argument("--json", action="store_true", help="print JSON, with the names of your files and models")
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="write a report to share, without names of people, files or models"
    )
    parser.add_argument(
        "--canary",
        action="store_true",
        help="run the built-in pair too, half a minute, and compare text and speed with this machine's earlier runs",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit code 0: nothing is wrong; 1: there is a problem."""
    check_file("--report", args.report)
    more: dict[str, Check] = {"agents": _check_agents}
    if args.canary:
        more["canary"] = _check_canary
    found = examine(more)
    if args.report is not None:
        write_file(args.report, report(found))
    if args.json:
        print_json([asdict(finding) for finding in found])
    else:
        _print(found)
        if args.report is not None:
            print(f"\nthe report is in {args.report}")
    return 1 if any(finding.state is State.PROBLEM for finding in found) else 0


def _print(found: list[Finding]) -> None:
    for finding in found:
        print(f"{MARKS[finding.state]:8} {finding.check:10} {finding.said}")
        if finding.state is State.GOOD:
            continue
        for line in finding.private:
            print(f"{'':20}- {line}")
        if finding.remedy:
            print(f"{'':19} > {finding.remedy}")


def _check_agents() -> Iterator[Finding]:
    """Which coding agents are here, and which were set up; none is started."""
    from slipstream.agents import client, journal
    from slipstream.agents.config import Place
    from slipstream.agents.registry import AGENTS

    place = Place.here()
    found = False
    for name, agent in AGENTS.items():
        is_set_up = journal.journal_path(name, place).exists()
        if client.locate(PROGRAMS.get(name, name), place) is not None:
            said = f"{agent.TITLE} is installed" + (" and set up for Slipstream" if is_set_up else "")
            found = True
            yield Finding("agents", State.GOOD, said)
        elif is_set_up:
            remedy = f"install it ({agent.INSTALL}), or undo: slipstream agents {name} undo"
            yield Finding("agents", State.WARNING, f"{agent.TITLE} is set up for Slipstream but not installed", remedy)
    if not found:
        said = f"no coding agent is installed ({', '.join(agent.TITLE for agent in AGENTS.values())})"
        remedy = "if you want one: " + ", or ".join(agent.INSTALL for agent in AGENTS.values())
        yield Finding("agents", State.NOTE, said, f"{remedy}; then: slipstream agents NAME write")


def _check_canary() -> Iterator[Finding]:
    from slipstream.commands.options import add_pair, serving
    from slipstream.measure import canary

    parser = argparse.ArgumentParser()
    add_pair(parser)
    with serving(parser.parse_args([]), canary.MODES) as engine:
        record = canary.sing(engine.inbox)
    yield from canary.judge(record, canary.history())
    canary.remember(record)
