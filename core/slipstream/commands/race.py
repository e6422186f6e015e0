"""`slipstream race`: plain against speculative decoding, side by side, with the verdict."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from statistics import fmean

from rich.columns import Columns
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text as Styled

from slipstream.commands import output
from slipstream.commands.options import add_pair, add_sampling, comparing, serving
from slipstream.errors import InvalidRequest
from slipstream.events import Delta, Done, Event, Prefill, decode_tps
from slipstream.measure import race as races
from slipstream.measure import report
from slipstream.measure.left import TimeLeft, words
from slipstream.measure.prompts import DEFAULT, Question
from slipstream.measure.report import NAMES
from slipstream.measure.verdict import Verdict
from slipstream.store import machine
from slipstream.types import Mode, ModelInfo, Options


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("race", help="plain against speculative decoding, side by side")
    parser.add_argument("--prompt", action="append", help="a question of your own; repeatable")
    parser.add_argument("--raw-prompt", action="store_true", help="the prompts as they are, without the chat template")
    parser.add_argument(
        "--arms",
        help="modes to race against plain, such as dspark,lookup (default: each drafter that is loaded, and auto; "
        "lookup where there is no drafter)",
    )
    parser.add_argument("--trials", type=int, default=3, help="runs of each arm on each question (%(default)s)")
    parser.add_argument("--report", type=Path, help="write the result to a .json or .md file")
    add_pair(parser)
    add_sampling(parser, max_tokens=64)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit code 0: identical, or ties only; 1: different."""
    chosen = comparing(args, "a race")
    if args.report is not None and args.report.suffix not in (".json", ".md"):
        raise InvalidRequest(f"--report must end in .json or .md, not {args.report.name}")
    output.check_file("--report", args.report)
    arms = arms_of(args.arms)
    questions = own_questions(args.prompt) or DEFAULT
    console = output.console()
    with serving(args, arms or (Mode.DSPARK, Mode.DFLASH, Mode.MTP)) as engine:
        check_arms(arms, engine.info)
        modes = (Mode.BASELINE, *(arms or every_arm(engine.info)))
        console.print(
            f"[bold]{engine.info.name}[/] · {engine.info.dtype} · {engine.info.quantisation} · "
            f"{chosen_words(chosen, args.trials)}"
        )
        state = machine.disturbance()
        marks = [] if state is None else [f"this machine was {state} when the race began, so its speeds are unsure"]
        with _watching(console, modes, len(questions) * args.trials) as watch:
            race = races.race(
                engine.inbox,
                questions,
                modes,
                chosen,
                dtype=engine.info.dtype,
                trials=args.trials,
                raw=args.raw_prompt,
                watch=watch,
            )
    console.print(table(race))
    console.print(verdict_line(race))
    for mark in marks:
        console.print(f"[yellow]Marked[/]: {mark}.")
    if args.report is not None:
        write = report.as_json_text if args.report.suffix == ".json" else report.as_markdown
        output.write_file(args.report, write(race, engine.info, chosen, marks))
        console.print(f"Report: {args.report}")
    return 1 if race.verdict is Verdict.DIFFERENT else 0


def chosen_words(chosen: Options, trials: int) -> str:
    sampling = f"temperature {chosen.temperature:g}, seed {chosen.seed}" if chosen.temperature else "greedy"
    return f"{sampling}, {chosen.max_tokens} tokens, {trials} trial{'s' * (trials != 1)}"


def every_arm(info: ModelInfo) -> tuple[Mode, ...]:
    """What can draft for a loaded model."""
    return (*info.drafters, Mode.AUTO) if info.drafters else (Mode.LOOKUP,)


def arms_of(value: str | None, option: str = "--arms") -> tuple[Mode, ...]:
    if value is None:
        return ()
    names = (name.strip().lower() for name in value.split(","))
    try:
        modes = tuple(Mode.BASELINE if name == NAMES[Mode.BASELINE] else Mode(name) for name in names)
    except ValueError as error:
        have = ", ".join(mode.value for mode in Mode if mode is not Mode.BASELINE)
        raise InvalidRequest(f"{option} must be of {have}, not {value!r}") from error
    return tuple(mode for mode in dict.fromkeys(modes) if mode is not Mode.BASELINE)


def own_questions(prompts: list[str] | None) -> tuple[Question, ...]:
    """Raises InvalidRequest for an empty one."""
    if not all(text.strip() for text in prompts or ()):
        raise InvalidRequest("the prompt is empty; write something to answer")
    return tuple(Question("own", text) for text in prompts or ())


def check_arms(arms: tuple[Mode, ...], info: ModelInfo, option: str = "--arms") -> None:
    """Before plain decoding runs for them. Raises InvalidRequest for a drafter that is not loaded."""
    loaded = (*info.drafters, Mode.LOOKUP, Mode.AUTO)
    if missing := [arm for arm in arms if arm not in loaded]:
        have = ", ".join(info.drafters) or "none"
        raise InvalidRequest(
            f"no {missing[0]} drafter is loaded (loaded: {have}); give one with --drafter, or other {option}"
        )


class _watching:  # noqa: N801 - used as a context manager, like a function
    """Two columns that fill while the arms run; a line for each run where there is no terminal."""

    def __init__(self, console: Console, modes: tuple[Mode, ...], runs: int) -> None:
        """`runs`: of each arm."""
        self._console = console
        self._modes = modes
        self._runs = runs * len(modes)
        self._left = TimeLeft(dict.fromkeys(modes, runs))
        self._live = Live(console=console, refresh_per_second=8) if console.is_terminal else None
        self._key: tuple[Question, int] | None = None
        self._panes: dict[Mode, _Pane] = {}
        self._speeds: dict[Mode, list[float]] = {}

    def __enter__(self) -> races.Watch:
        if self._live is not None:
            self._live.start()
        return self._watch

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
        if kind is KeyboardInterrupt and self._speeds:
            means = [f"{NAMES[mode]} {fmean(each):.2f} ({len(each)})" for mode, each in self._speeds.items()]
            self._console.print(f"So far, tokens a second (runs): {', '.join(means)}. Nothing was compared.")

    def _watch(self, question: Question, mode: Mode, trial: int, event: Event) -> None:
        if self._key != (question, trial):
            self._key, self._panes = (question, trial), {arm: _Pane() for arm in self._modes}
        pane = self._panes[mode]
        pane.note(event)
        if isinstance(event, Done):
            self._speeds.setdefault(mode, []).append(event.timings.decode_tps)
            self._left.note(mode, event.timings)
        left_s = self._left.seconds(time.monotonic())
        left = "" if left_s is None else f", about {words(left_s)} left"
        if self._live is not None:
            width = max(30, self._console.width // min(len(self._modes), 2) - 2)
            height = max(4, (self._console.height - 3) // -(-len(self._modes) // 2))
            panels = [pane.panel(NAMES[arm], width, height) for arm, pane in self._panes.items()]
            ended = sum(len(each) for each in self._speeds.values())
            at = f"run {min(ended + 1, self._runs)} of {self._runs}{left}"
            line = " ".join(f"{at}, {question.kind}, trial {trial + 1}: {question.text}".split())
            title = Styled(line, style="dim", overflow="ellipsis", no_wrap=True)
            self._live.update(Group(title, Columns(panels, width=width)))
        elif isinstance(event, Done):
            ended = sum(len(each) for each in self._speeds.values())
            self._console.print(
                f"{ended:>3}/{self._runs} {question.kind:>6} trial {trial + 1} {NAMES[mode]:>7}: "
                f"{event.timings.decode_tps:.2f} tok/s, "
                f"{event.timings.tokens_per_round:.2f} per round{left if ended < self._runs else ''}"
            )


class _Pane:
    """What one arm has said so far."""

    def __init__(self) -> None:
        self.text = ""
        self.tokens = 0
        self.state = "waiting"
        self._began = self._last = 0.0

    def note(self, event: Event) -> None:
        match event:
            case Prefill():
                self.state = f"reading {event.done}/{event.total}"
            case Delta():
                self._last = time.monotonic()
                self._began = self._began or self._last
                self.text += event.text
                self.tokens += len(event.tokens)
                self.state = f"{decode_tps(self.tokens, self._began, self._last):.1f} tok/s"
            case Done():
                self.state = f"{event.timings.decode_tps:.1f} tok/s · {event.timings.tokens_per_round:.2f} per round"
            case _:
                pass

    def panel(self, name: str, width: int, height: int) -> Panel:
        lines = Styled(self.text).wrap(Console(width=width), width - 4)[-(height - 2) :]
        return Panel(Styled("\n").join(lines), title=name, subtitle=self.state, width=width, height=height)


def table(race: races.Race) -> Table:
    """Fits 80 columns: a range stands under its median."""
    out = Table(title=report.trials(race.trials), box=None, padding=(0, 1, 0, 0))
    for name in report.heads(race):
        head = "tokens\nper round" if name == "tokens per round" else name
        out.add_column(head, justify="left" if name in ("arm", "verdict") else "right")
    for row in report.rows(race):
        out.add_row(*(cell.replace(" (", "\n(") for cell in row))
    return out


def verdict_line(race: races.Race) -> Styled:
    word, _, rest = report.verdict_sentence(race).partition(":")
    colour = {Verdict.IDENTICAL: "green", Verdict.TIE: "yellow", Verdict.DIFFERENT: "red"}[race.verdict]
    return Styled.assemble((word, colour), ":", rest)
