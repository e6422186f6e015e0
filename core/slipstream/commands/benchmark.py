"""`slipstream benchmark`: every mode at several lengths of context, with medians, spreads and the verdict."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from slipstream.commands import output
from slipstream.commands.options import add_pair, add_sampling, comparing, serving
from slipstream.commands.race import arms_of, check_arms, every_arm, own_questions
from slipstream.events import Done, Event
from slipstream.measure import bench, report
from slipstream.measure.prompts import DEFAULT, MORE, Question
from slipstream.measure.report import NAMES
from slipstream.measure.verdict import Verdict
from slipstream.store.paths import cache_dir
from slipstream.types import CacheLimits, Mode


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("benchmark", help="how fast each mode is on this machine, at short and long contexts")
    parser.add_argument("--modes", help="modes beside plain, such as dspark,auto (default: every one)")
    parser.add_argument("--trials", type=int, default=3, help="runs of each mode on each question (%(default)s)")
    parser.add_argument(
        "--contexts", default="0", metavar="TOKENS", help="tokens before the question, such as 0,4k,16k (%(default)s)"
    )
    parser.add_argument(
        "--streams", default="1", metavar="N", help="answers at the same time, such as 1,4,8 (%(default)s)"
    )
    parser.add_argument("--prompt", action="append", help="a question of your own; repeatable")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table there as well")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything there as well, token ids included")
    add_pair(parser)
    add_sampling(parser, max_tokens=96)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit code 0: identical, or ties only; 1: different. What was measured before an error is told beside it."""
    chosen = comparing(args, "a benchmark")
    contexts = bench.lengths(args.contexts)
    output.check_file("--markdown", args.markdown)
    output.check_file("--json", args.json)
    arms = arms_of(args.modes, "--modes")
    questions = own_questions(args.prompt) or (*DEFAULT, *MORE)
    streams = bench.counts(args.streams, len(questions))
    args.max_batch = max(streams)
    console = output.console()
    # What was read of a prompt is kept for the next run of it, in memory alone.
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    kept = CacheLimits(memory // 8, 0, str(cache_dir() / "prompts"))
    with serving(args, arms or (Mode.DSPARK, Mode.DFLASH, Mode.MTP), kept) as engine:
        info = engine.info
        check_arms(arms, info, "--modes")
        from slipstream.models.tokeniser import Tokeniser

        encode = Tokeniser(Path(info.path)).encode
        prompts = bench.asked(info, encode, questions, contexts, streams, chosen.max_tokens)
        modes = (Mode.BASELINE, *(arms or every_arm(info)))
        stamp = bench.stamp_of(info, chosen, args.trials)
        console.print(f"[bold]{info.name}[/] · {info.dtype} · {info.quantisation} · {stamp['chip']} · {stamp['power']}")
        for mark in stamp["marks"]:
            console.print(f"[yellow]{mark}[/]")

        runs, ended = bench.runs_of(prompts, modes, streams, args.trials), 0

        def watch(question: Question, mode: Mode, trial: int, event: Event) -> None:
            nonlocal ended
            if isinstance(event, Done):
                ended += 1
                timings = event.timings
                which = f"trial {trial + 1}" if trial >= 0 else "warm-up"
                console.print(
                    f"{ended:>3}/{runs} {timings.prompt_tokens:>7,} tokens, {question.kind}, {which}, {NAMES[mode]}: "
                    f"{timings.decode_tps:.2f} tok/s, {timings.tokens_per_round:.2f} per round",
                    style="dim",
                )

        cells: list[bench.Cell] = []
        missing = [(count, context) for context in contexts for count in streams]
        measuring = bench.benchmark(
            engine.inbox,
            prompts,
            modes,
            chosen,
            dtype=info.dtype,
            streams=streams,
            trials=args.trials,
            watch=watch,
        )
        try:
            for cell in measuring:
                cells.append(cell)
                missing.remove((cell.streams, cell.context))
        finally:  # memory may be too small for the last length, after an hour's figures
            if missing:
                left = ", ".join(f"{count} × {context:,}" for count, context in missing)
                stamp["marks"].append(f"it ended early: not measured are {left}")
            if cells:
                _tell(console, cells, stamp, args)
    return 1 if any(cell.race.verdict is Verdict.DIFFERENT for cell in cells) else 0


def _tell(console: Console, cells: list[bench.Cell], stamp: dict[str, Any], args: argparse.Namespace) -> None:
    console.print(_table(cells, args.trials))
    for cell in cells:
        if cell.prefill_tps:
            behind = f"Behind {cell.context:,} tokens" if cell.context else "At the beginning"
            console.print(f"{behind}: prompts are read at {cell.prefill_tps:,.0f} tokens a second")
    for cell, same, both in bench.alone(cells):
        console.print(f"{cell.streams} at once, {cell.context:,} tokens: {same} of {both} say what they say alone")
    for mark in stamp["marks"]:
        console.print(f"[yellow]Marked[/]: {mark}.")
    if args.markdown is not None:
        output.write_file(args.markdown, bench.as_markdown(cells, stamp))
    if args.json is not None:
        output.write_file(args.json, json.dumps(bench.as_json(cells, stamp), indent=1, ensure_ascii=False) + "\n")


SHOWN = ("streams", "context", "arm", "tok/s", "against plain", "verdict")  # what a terminal has room for


def _table(cells: list[bench.Cell], trials: int) -> Table:
    heads, rows = bench.as_table(cells)
    out = Table(title=report.trials(trials))
    for head in SHOWN:
        out.add_column(head, justify="left" if head in ("arm", "verdict") else "right")
    for row in rows:
        out.add_row(*(row[heads.index(head)] for head in SHOWN))
    return out
