"""`slipstream calibrate`: what this machine's forwards cost with a model, measured once and kept for `auto`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from rich.console import Console
from rich.table import Table

from slipstream.commands import output
from slipstream.commands.options import add_pair, serving
from slipstream.curves import Curves
from slipstream.errors import SlipstreamError, Unsteady
from slipstream.events import Done, Failed, Measured
from slipstream.jobs import events_of
from slipstream.measure.report import NAMES
from slipstream.store import machine
from slipstream.store.curves import any_kept, curves_of
from slipstream.types import Calibrate, Mode, ModelInfo


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("calibrate", help="measure a model on this machine, for auto; a few seconds, once")
    parser.add_argument("--force", action="store_true", help="measure also on a machine that is hot or busy")
    parser.add_argument("--show", action="store_true", help="show what was measured before; measure nothing")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    add_pair(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit code 0: measured, or shown; 1: there is nothing to show."""
    state = None if args.show else machine.disturbance()
    if not args.force and state is not None:
        raise Unsteady(state)  # the engine would say so too, after the load
    console = output.console()
    if args.show and not any_kept():  # before the load, which takes a while
        print("nothing was measured on this machine; run: slipstream calibrate", file=sys.stderr)
        return 1
    with serving(args, (Mode.DSPARK, Mode.DFLASH, Mode.MTP)) as engine:
        info = engine.info
        if args.show:
            found = curves_of(info)
            if found is None:
                print(f"{info.name} was not measured on this machine; run: slipstream calibrate", file=sys.stderr)
                return 1
            _say(console, info, found.curves, found.at_s, as_json=args.json)
            return 0
        curves = None
        seconds = 0.0
        with output.progress() as told:
            for event in events_of(engine.inbox, Calibrate(force=args.force)):
                match event:
                    case Measured(done, total, curves):
                        told("what a pass costs", done, total)
                    case Done(timings=timings):
                        seconds = timings.last_token_s - timings.started_s
                    case Failed(error):
                        raise error
                    case _:
                        pass
    if curves is None:
        raise SlipstreamError("nothing was measured: the model was unloaded meanwhile")
    about = {"measured_in_s": round(seconds, 2), "disturbed_by": state}
    _say(console, info, curves, time.time(), as_json=args.json, about=about)
    if state is not None and not args.json:
        console.print(
            f"[yellow]Unsure[/]: this machine was {state}, so these figures replace none that were kept before; "
            "when it rests, run: slipstream calibrate"
        )
    return 0


def _say(
    console: Console,
    info: ModelInfo,
    curves: Curves,
    at_s: float,
    *,
    as_json: bool,
    about: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """`about`: how they were measured, without the load; empty where that is not known any more."""
    power = machine.power()
    if as_json:
        pair = {"model": info.name, "dtype": info.dtype, "quantisation": info.quantisation}
        output.print_json({**pair, **about, **machine.facts(), "power": power, "at_s": at_s, **asdict(curves)})
        return
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(at_s))
    took = f" · measured in {about['measured_in_s']:.1f} s" if about else ""
    console.print(f"[bold]{info.name}[/] · {info.dtype} · {info.quantisation} · {power} · {when}{took}")
    console.print("Milliseconds of one pass over so many tokens, behind a context of so many:")
    console.print(_verification(curves))
    for mode, table in curves.drafters.items():
        for context, row in sorted(table.items()):
            each = ", ".join(
                f"{drafts} token{'s' * (drafts != 1)} in {ms:.1f} ms" for drafts, ms in sorted(row.items())
            )
            console.print(f"{NAMES[Mode(mode)]} drafts {each} behind {context:,} tokens")
    for context, row in sorted(curves.prefill.items()):
        speeds = [f"{1000 * tokens / ms:.0f} tokens a second" for tokens, ms in row.items() if ms]
        console.print(f"Prompts are read at {', '.join(speeds)} behind {context:,} tokens")


def _verification(curves: Curves) -> Table:
    out = Table()
    out.add_column("tokens", justify="right")
    for context in curves.contexts:
        out.add_column(f"behind {context:,}", justify="right")
    for rows in sorted({rows for row in curves.target.values() for rows in row}):
        cells = [f"{row[rows]:.1f}" if rows in row else "" for _, row in sorted(curves.target.items())]
        out.add_row(str(rows), *cells)
    return out
