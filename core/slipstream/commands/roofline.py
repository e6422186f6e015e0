"""`slipstream roofline`: what memory allows plain decoding on this machine, and where each mode stands."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from slipstream.commands.options import add_pair, as_typed, serving
from slipstream.commands.output import print_json, progress
from slipstream.commands.race import every_arm
from slipstream.curves import Curves
from slipstream.errors import SlipstreamError, Unsteady
from slipstream.events import Done, Event, Failed, Measured
from slipstream.jobs import events_of
from slipstream.measure import bench
from slipstream.measure import race as races
from slipstream.measure.prompts import DEFAULT, Question
from slipstream.measure.report import NAMES
from slipstream.measure.roofline import Standing, sentences
from slipstream.store import machine
from slipstream.types import Calibrate, Mode, Options


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "roofline", help="how fast plain decoding can be here at most, and how fast each mode is"
    )
    parser.add_argument("--max-tokens", type=int, default=64, help="of each answer (%(default)s)")
    parser.add_argument("--force", action="store_true", help="measure also on a machine that is hot or busy")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    add_pair(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    state = machine.disturbance()
    if not args.force and state is not None:
        raise Unsteady(state)
    with as_typed():
        options = Options(max_tokens=args.max_tokens, ignore_eos=True)
    with serving(args, (Mode.DSPARK, Mode.DFLASH, Mode.MTP)) as engine:
        from slipstream.engine.calibrate import CONTEXTS
        from slipstream.models.tokeniser import Tokeniser

        bench.asked(engine.info, Tokeniser(Path(engine.info.path)).encode, DEFAULT, (0,), (1,), args.max_tokens)
        modes = (Mode.BASELINE, *every_arm(engine.info))
        with progress() as told:
            curves = Curves()
            for event in events_of(engine.inbox, Calibrate(force=True)):
                match event:
                    case Measured(done, total, curves):
                        told("what a pass costs", done, total)
                    case Failed(error):
                        raise error
                    case _:
                        pass
            if not curves.bandwidth:
                raise SlipstreamError("nothing was measured: the model was unloaded meanwhile")
            answers, ended = len(modes) * (1 + len(DEFAULT)), 0

            def watch(_question: Question, _mode: Mode, _trial: int, event: Event) -> None:
                nonlocal ended
                ended += isinstance(event, Done)
                told("how fast each mode answers", ended, answers)

            race = races.race(
                engine.inbox,
                DEFAULT,
                modes,
                options,
                dtype=engine.info.dtype,
                trials=1,
                warm_up=True,
                watch=watch,
            )
    timings = [run.answer.timings for run in race.runs if run.answer.timings]
    lengths = [each.prompt_tokens + each.output_tokens // 2 for each in timings]
    ceiling = curves.ceiling_tps(sum(lengths) // len(lengths))
    runs = [Standing(NAMES[arm.mode], arm.tps.median, ceiling) for arm in race.arms]
    if args.json:
        print_json(
            {
                **machine.facts(),
                "disturbed_by": state,
                **asdict(curves),
                "runs": [{**asdict(run), "share": run.share} for run in runs],
            }
        )
        return 0
    print(f"{engine.info.name} · {engine.info.dtype} · {engine.info.quantisation} · {machine.chip()}")
    for sentence in sentences(curves, runs, CONTEXTS, engine.info.context):
        print(sentence)
    if state is not None:
        print(f"Unsure: this machine was {state} while it was measured, so all of these may be too low.")
    return 0
