"""Race: the same questions by several modes, interleaved, with the verdict whether they said the same."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from slipstream.errors import SlipstreamError
from slipstream.events import Delta, Event, Margin, decode_tps
from slipstream.jobs import Inbox, Waiting, events_of
from slipstream.measure.prompts import Question
from slipstream.measure.result import Answer, collect
from slipstream.measure.verdict import Comparison, Verdict, compare, first_difference
from slipstream.types import Chat, Mode, Options, Prompt, Request, Text

Template = Mapping[str, Any]  # variables of the chat template
NO_TEMPLATE: Template = MappingProxyType({})

Watch = Callable[[Question, Mode, int, Event], None]  # question, arm, trial, what it said


@dataclass(frozen=True, slots=True)
class Step:
    """What one round added, and when: enough to play a run again."""

    at_s: float  # since the run's first token
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Run:
    question: Question
    mode: Mode
    trial: int
    answer: Answer
    steps: tuple[Step, ...] = ()

    @property
    def tps(self) -> float:
        assert self.answer.timings is not None
        return self.answer.timings.decode_tps


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, smallest and largest of several measurements."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))


@dataclass(frozen=True, slots=True)
class Arm:
    """One mode's results over every question and trial."""

    mode: Mode
    tps: Spread  # of each trial's total over the questions
    speedup: Spread | None  # over plain in the same trial; None for plain itself, and when anything differs
    speedup_by_kind: dict[str, float]
    tokens_per_round: float
    comparisons: tuple[tuple[Question, Comparison], ...]  # with plain; plain's own, with its first trial

    @property
    def verdict(self) -> Verdict:
        verdicts = {comparison.verdict for _, comparison in self.comparisons}
        for worst in (Verdict.DIFFERENT, Verdict.TIE):
            if worst in verdicts:
                return worst
        return Verdict.IDENTICAL


@dataclass(frozen=True, slots=True)
class Race:
    arms: tuple[Arm, ...]
    runs: tuple[Run, ...]
    trials: int
    warm_ups: tuple[Run, ...] = ()  # counted nowhere
    disturbed: tuple[Run, ...] = ()  # repeated once, and counted nowhere: the machine was another one at their end

    @property
    def repeats(self) -> Verdict:
        """How plain decoding compares with itself: where it does not repeat, no arm can be held to it."""
        return self.arms[0].verdict

    @property
    def verdict(self) -> Verdict:
        order = [Verdict.DIFFERENT, Verdict.TIE, Verdict.IDENTICAL]
        return min((arm.verdict for arm in self.arms), key=order.index)


def as_prompt(question: Question, *, raw: bool, template: Template = NO_TEMPLATE) -> Prompt:
    return Text(question.text) if raw else Chat(({"role": "user", "content": question.text},), template=template)


def race(
    inbox: Inbox,
    questions: Sequence[Question],
    modes: Sequence[Mode],
    options: Options,
    *,
    dtype: str,
    trials: int = 3,
    raw: bool = False,
    template: Template = NO_TEMPLATE,
    warm_up: bool = False,
    prompts: Mapping[Question, Prompt] | None = None,
    reuse: bool = False,
    together: bool = False,
    watch: Watch = lambda *_: None,
    conditions: Callable[[], object] = lambda: None,
) -> Race:
    """Run every mode on every question `trials` times. The first mode is the plain one that others are compared with.

    The order of modes rotates with each question and trial, so that no arm always runs on a warmer machine; with
    `warm_up`, each first runs once more on the first question, as trial -1, which counts for nothing. Plain is
    compared with its own first trial. `prompts`: to send in place of the questions. `reuse`: prompts may begin from
    what was kept of earlier runs. `together`: an arm answers all questions at the same time, and its speed is that of
    all together. `conditions` says what makes speeds comparable, such as heat and power, and may wait until they are
    good; a single run during which they changed is made once more. Raises the error of a job that fails, and what
    `watch` raises, after cancelling the job.
    """

    def prompt(question: Question) -> Prompt:
        return as_prompt(question, raw=raw, template=template) if prompts is None else prompts[question]

    def request(question: Question, mode: Mode) -> Request:
        return Request(prompt(question), replace(options, mode=mode), reuse=reuse)

    disturbed: list[Run] = []

    def run(question: Question, mode: Mode, trial: int) -> Run:
        before = conditions()
        made = _run(inbox, request(question, mode), question, trial, watch)
        if conditions() == before:
            return made
        disturbed.append(made)
        return _run(inbox, request(question, mode), question, trial, watch)

    def margin(run: Run, position: int) -> Margin:
        """The arm once more up to `position`, this time noting how clear each choice is."""
        again = replace(options, mode=run.mode, margins=True)
        return margin_at(inbox, Request(prompt(run.question), again), position)

    def rotated(shift: int) -> tuple[Mode, ...]:
        shift %= len(modes)
        return (*modes[shift:], *modes[:shift])

    def all_at_once(mode: Mode, trial: int) -> list[Run]:
        return _run_together(inbox, {question: request(question, mode) for question in questions}, trial, watch)

    warm_ups: list[Run] = []
    runs: list[Run] = []
    if together:
        warm_ups += [run for mode in modes if warm_up for run in all_at_once(mode, -1)]
        runs += [run for trial in range(trials) for mode in rotated(trial) for run in all_at_once(mode, trial)]
    else:
        warm_ups += [run(questions[0], mode, -1) for mode in modes if warm_up]
        for trial in range(trials):
            for number, question in enumerate(questions):
                runs.extend(run(question, mode, trial) for mode in rotated(trial + number))
    speed = together_tps if together else total_tps
    arms = [_arm(mode, runs, questions, trials, margin, modes[0], dtype, speed) for mode in modes]
    if any(arm.verdict is Verdict.DIFFERENT for arm in arms):
        arms = [replace(arm, speedup=None, speedup_by_kind={}) for arm in arms]
    return Race(tuple(arms), tuple(runs), trials, tuple(warm_ups), tuple(disturbed))


def _run(inbox: Inbox, request: Request, question: Question, trial: int, watch: Watch) -> Run:
    mode = request.options.mode
    steps: list[Step] = []
    began: float | None = None

    def note(event: Event) -> None:
        nonlocal began
        if isinstance(event, Delta):
            now = time.monotonic()
            began = now if began is None else began
            steps.append(Step(now - began, event.text, len(event.tokens)))
        watch(question, mode, trial, event)

    answer = collect(events_of(inbox, request), note)
    return Run(question, mode, trial, answer, tuple(steps))


def _run_together(inbox: Inbox, requests: Mapping[Question, Request], trial: int, watch: Watch) -> list[Run]:
    """All at once. When each piece came is not noted: only the last of them is waited for."""
    waiting = {question: Waiting(inbox, request) for question, request in requests.items()}
    try:
        return [
            Run(question, mode, trial, collect(events, partial(watch, question, mode, trial)))
            for question, events in waiting.items()
            for mode in (requests[question].options.mode,)
        ]
    finally:
        for each in waiting.values():
            each.job.cancel()


def _arm(
    mode: Mode,
    runs: Sequence[Run],
    questions: Sequence[Question],
    trials: int,
    margin: Callable[[Run, int], Margin],
    plain: Mode,
    dtype: str,
    speed: Callable[[Sequence[Run]], float],
) -> Arm:
    def of(which: Mode, trial: int, question: Question | None = None) -> list[Run]:
        return [
            run
            for run in runs
            if run.mode is which and run.trial == trial and (question is None or run.question is question)
        ]

    mine = [run for run in runs if run.mode is mode]
    rounds = sum(len(run.answer.rounds) for run in mine)
    tokens = sum(len(run.answer.tokens) - 1 for run in mine)
    totals = [speed(of(mode, trial)) for trial in range(trials)]
    comparisons: list[tuple[Question, Comparison]] = []
    speedup, by_kind = None, {}
    for question in questions:
        for trial in range(1 if mode is plain else 0, trials):
            held_to = of(plain, 0 if mode is plain else trial, question)[0]
            comparisons.append((question, judge(held_to, of(mode, trial, question)[0], margin, dtype)))
    if mode is not plain:
        speedup = Spread.of([speed(of(mode, trial)) / max(speed(of(plain, trial)), 1e-9) for trial in range(trials)])
        for kind in dict.fromkeys(question.kind for question in questions):
            ratios = [
                total_tps([run for run in of(mode, trial) if run.question.kind == kind])
                / max(total_tps([run for run in of(plain, trial) if run.question.kind == kind]), 1e-9)
                for trial in range(trials)
            ]
            by_kind[kind] = statistics.median(ratios)
    return Arm(mode, Spread.of(totals), speedup, by_kind, tokens / rounds if rounds else 0.0, tuple(comparisons))


def total_tps(runs: Sequence[Run]) -> float:
    """Tokens after the first of all runs, over the time they took: each run weighs by its length."""
    timings = [run.answer.timings for run in runs if run.answer.timings is not None]
    seconds = sum(timing.last_token_s - timing.first_token_s for timing in timings)
    return decode_tps(1 + sum(timing.output_tokens - 1 for timing in timings), 0.0, seconds)


def together_tps(runs: Sequence[Run]) -> float:
    """The same of runs side by side: over the time from the first one's first token to the last one's last."""
    timings = [run.answer.timings for run in runs if run.answer.timings is not None]
    tokens = 1 + sum(timing.output_tokens - 1 for timing in timings)
    first, last = min(timing.first_token_s for timing in timings), max(timing.last_token_s for timing in timings)
    return decode_tps(tokens, first, last)


def judge(plain: Run, other: Run, margin: Callable[[Run, int], Margin], dtype: str) -> Comparison:
    """Compare two runs; where they part, `margin(run, position)` says how clear the choice was there."""
    one, two = plain.answer.tokens, other.answer.tokens
    position = first_difference(one, two)
    margins = None
    if position is not None and position < min(len(one), len(two)):
        margins = (margin(plain, position), margin(other, position))
    return compare(one, two, margins, dtype)


def margin_at(inbox: Inbox, request: Request, position: int) -> Margin:
    """How clear the choice of the answer's token `position` was. Needs `request.options.margins`."""
    answer = Answer()
    for event in events_of(inbox, request):
        answer.add(event)
        if isinstance(event, Delta) and len(answer.margins) > position:
            return answer.margins[position]
    raise SlipstreamError("the run ended before the token that differed: it does not repeat itself, which is a bug")


def as_json(race_: Race) -> dict[str, Any]:
    return {
        "verdict": race_.verdict.value,
        "plain_repeats": race_.repeats.value,
        "trials": race_.trials,
        "warm_ups": [
            {"mode": run.mode.value, "question": run.question.text, "decode_tps": round(run.tps, 3)}
            for run in race_.warm_ups
        ],
        "arms": [
            {
                "mode": arm.mode.value,
                "verdict": arm.verdict.value,
                "decode_tps": _spread_json(arm.tps),
                "speedup": None if arm.speedup is None else _spread_json(arm.speedup),
                "speedup_by_kind": {kind: round(value, 3) for kind, value in arm.speedup_by_kind.items()},
                "tokens_per_round": round(arm.tokens_per_round, 3),
                "differences": [
                    {"question": question.text, "what": comparison.sentence, "position": comparison.position}
                    for question, comparison in arm.comparisons
                    if comparison.verdict is not Verdict.IDENTICAL
                ],
            }
            for arm in race_.arms
        ],
        "runs": [
            {
                "kind": run.question.kind,
                "question": run.question.text,
                "mode": run.mode.value,
                "trial": run.trial,
                "decode_tps": round(run.tps, 3),
                "token_ids": run.answer.tokens,
                "text": run.answer.text,
                "rounds": len(run.answer.rounds),
                "steps": [[round(step.at_s, 4), step.tokens] for step in run.steps],
            }
            for run in race_.runs
        ],
    }


def _spread_json(spread: Spread) -> dict[str, float]:
    return {"median": round(spread.median, 3), "low": round(spread.low, 3), "high": round(spread.high, 3)}
