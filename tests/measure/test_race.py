from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from fakes import INFO
from slipstream.commands.race import _watching, table
from slipstream.engine.engine import open_engine
from slipstream.engine.pair import Pair
from slipstream.errors import InvalidRequest
from slipstream.events import Delta, Done, Event, Failed, Finish, Margin, Prefill, Round, Timings
from slipstream.jobs import Inbox, Job
from slipstream.measure.prompts import Question
from slipstream.measure.race import Arm, Race, Run, Spread, as_json, race
from slipstream.measure.report import as_json_text, as_markdown, differences, rows, trials, verdict_sentence
from slipstream.measure.result import Answer
from slipstream.measure.verdict import Verdict
from slipstream.service import start
from slipstream.types import Chat, Mode, Options, Text
from tiny_runs import write_target

QUESTIONS = (Question("code", "one"), Question("maths", "two"))
SPEED = {Mode.BASELINE: 10.0, Mode.DSPARK: 25.0, Mode.LOOKUP: 5.0}

Says = Callable[[Job, int], list[int]]  # a job and how many came before it -> its tokens


class FakeEngine:
    """Answers jobs with tokens at a speed by mode. Notes who was asked."""

    def __init__(self, says: Says, gap: float = 5.0) -> None:
        self.says = says
        self.gap = gap
        self.asked: list[tuple[str, Mode]] = []

    def answer(self, job: Job) -> None:
        options, prompt = job.request.options, job.request.prompt
        text = prompt.text if isinstance(prompt, Text) else str(prompt.messages[0]["content"])  # pyright: ignore[reportAttributeAccessIssue]
        if not options.margins:
            self.asked.append((text, options.mode))
        tokens = self.says(job, len(self.asked))
        if not tokens:
            job.sink(Failed(InvalidRequest("no")))
            return
        job.sink(Prefill(1, 1, 0))
        for index, token in enumerate(tokens):
            margins = (Margin(20.0, self.gap, False),) if options.margins else ()
            made = Round(index, "plain", (), 0) if index else None
            job.sink(Delta(f"{token} ", (token,), made, margins=margins))
        seconds = (len(tokens) - 1) / SPEED[options.mode]
        job.sink(Done(Finish.LENGTH, Timings(0, 0, 1, 1 + seconds, 1, 0, len(tokens), len(tokens) - 1), (1,)))


@contextmanager
def answering(engine: FakeEngine) -> Generator[Inbox]:
    inbox = Inbox()

    def loop() -> None:
        while (job := inbox.get()) is not None:
            engine.answer(job)

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield inbox
    finally:
        inbox.close()
        thread.join(10)


MODES = (Mode.BASELINE, Mode.DSPARK, Mode.LOOKUP)


def same(job: Job, _: int) -> list[int]:
    return [1, 2, 3, 4, 5]


def wrong(mode: Mode, *, only: int | None = None) -> Says:
    def says(job: Job, number: int) -> list[int]:
        is_wrong = job.request.options.mode is mode and only in (None, number)
        return [1, 2, 9, 4, 5] if is_wrong else [1, 2, 3, 4, 5]

    return says


def test_identical_arms_have_their_speed() -> None:
    engine = FakeEngine(same)
    with answering(engine) as inbox:
        result = race(inbox, QUESTIONS, MODES, Options(), dtype="float32")
    assert result.verdict is Verdict.IDENTICAL
    plain, dspark, lookup = result.arms
    assert plain.speedup is None
    assert dspark.speedup is not None
    assert lookup.speedup is not None
    assert (dspark.speedup.median, dspark.speedup.low, dspark.speedup.high) == pytest.approx((2.5, 2.5, 2.5))
    assert lookup.speedup.median == pytest.approx(0.5)  # slower is said as plainly
    assert dspark.speedup_by_kind == pytest.approx({"code": 2.5, "maths": 2.5})
    assert dspark.tps.median == pytest.approx(25)
    assert len(result.runs) == 3 * 2 * 3


def test_the_order_of_arms_rotates() -> None:
    engine = FakeEngine(same)
    with answering(engine) as inbox:
        race(inbox, QUESTIONS, MODES, Options(), dtype="float32", trials=3)
    firsts = [mode for _, mode in engine.asked[::3]]
    assert firsts == [MODES[(trial + question) % 3] for trial in range(3) for question in range(2)]
    for at in range(0, len(engine.asked), 3):
        turn = engine.asked[at : at + 3]
        assert {mode for _, mode in turn} == set(MODES)
        assert len({text for text, _ in turn}) == 1


def test_where_one_arm_differs_no_speed_up_is_claimed_anywhere() -> None:
    engine = FakeEngine(wrong(Mode.DSPARK))
    with answering(engine) as inbox:
        result = race(inbox, QUESTIONS, MODES, Options(), dtype="float32")
    assert result.verdict is Verdict.DIFFERENT
    assert all(arm.speedup is None and arm.speedup_by_kind == {} for arm in result.arms)
    report = json.dumps(as_json(result))
    assert report.count('"speedup": null') == len(MODES)
    assert "this is a bug" in report


def test_a_single_wrong_run_of_many_is_enough() -> None:
    turn = next(at for at in range(9, 18) if _rotated()[at] is Mode.LOOKUP)
    with answering(FakeEngine(wrong(Mode.LOOKUP, only=turn + 1))) as inbox:
        result = race(inbox, QUESTIONS, MODES, Options(), dtype="float32")
    lookup = result.arms[2]
    assert sum(comparison.verdict is Verdict.DIFFERENT for _, comparison in lookup.comparisons) == 1
    assert result.verdict is Verdict.DIFFERENT
    assert all(arm.speedup is None for arm in result.arms)


def _rotated() -> list[Mode]:
    """Which mode runs when, for two questions and three trials."""
    engine = FakeEngine(same)
    with answering(engine) as inbox:
        race(inbox, QUESTIONS, MODES, Options(), dtype="float32")
    return [mode for _, mode in engine.asked]


def test_a_tie_keeps_its_speed_and_is_told() -> None:
    engine = FakeEngine(wrong(Mode.LOOKUP), gap=1e-5)
    with answering(engine) as inbox:
        result = race(inbox, QUESTIONS, MODES, Options(), dtype="float32")
    assert result.verdict is Verdict.TIE
    plain, dspark, lookup = result.arms
    assert (plain.verdict, dspark.verdict, lookup.verdict) == (Verdict.IDENTICAL, Verdict.IDENTICAL, Verdict.TIE)
    assert lookup.speedup is not None
    differences = as_json(result)["arms"][2]["differences"]
    assert {difference["position"] for difference in differences} == {2}
    assert "Numeric tie" in differences[0]["what"]


def test_an_answer_that_only_ends_earlier_is_different() -> None:
    def shorter(job: Job, _: int) -> list[int]:
        return [1, 2, 3] if job.request.options.mode is Mode.DSPARK else [1, 2, 3, 4]

    with answering(FakeEngine(shorter, gap=0.0)) as inbox:
        result = race(inbox, QUESTIONS, MODES, Options(), dtype="float32")
    assert result.verdict is Verdict.DIFFERENT


def test_a_job_that_fails_ends_the_race_with_its_error() -> None:
    with answering(FakeEngine(lambda *_: [])) as inbox, pytest.raises(InvalidRequest, match="no"):
        race(inbox, QUESTIONS, MODES, Options(), dtype="float32")


def test_those_who_watch_see_every_event_of_every_run() -> None:
    seen: list[tuple[str, Mode, int, type[Event]]] = []
    with answering(FakeEngine(same)) as inbox:
        race(
            inbox,
            QUESTIONS[:1],
            MODES[:2],
            Options(),
            dtype="float32",
            trials=2,
            watch=lambda question, mode, trial, event: seen.append((question.kind, mode, trial, type(event))),
        )
    assert sum(kind is Done for *_, kind in seen) == 4
    assert {(mode, trial) for _, mode, trial, _ in seen} == {(m, t) for m in MODES[:2] for t in range(2)}


def test_questions_go_through_the_chat_template_unless_raw() -> None:
    kinds: set[type] = set()

    def says(job: Job, _: int) -> list[int]:
        kinds.add(type(job.request.prompt))
        return [1, 2]

    with answering(FakeEngine(says)) as inbox:
        race(inbox, QUESTIONS, MODES[:1], Options(), dtype="float32", trials=1)
        race(inbox, QUESTIONS, MODES[:1], Options(), dtype="float32", trials=1, raw=True)
    assert kinds == {Chat, Text}


def test_a_real_race_on_a_tiny_model(tmp_path: Path) -> None:
    folder = write_target(tmp_path / "model")
    inbox = Inbox()
    thread = start(inbox, lambda _: open_engine(Pair(folder)))
    try:
        options = Options(temperature=0.8, seed=3, max_tokens=12, ignore_eos=True)
        result = race(inbox, QUESTIONS[:1], (Mode.BASELINE, Mode.LOOKUP), options, dtype="float32", trials=2)
        # Another seed is another text: the runs were not all the same by accident.
        other = race(inbox, QUESTIONS[:1], (Mode.BASELINE,), replace(options, seed=4), dtype="float32", trials=1)
    finally:
        inbox.close()
        thread.join(30)
    assert result.verdict is Verdict.IDENTICAL
    assert other.runs[0].answer.tokens != result.runs[0].answer.tokens


def test_plain_that_does_not_repeat_itself_is_said_and_no_speed_is_claimed() -> None:
    def unsteady(job: Job, number: int) -> list[int]:
        is_later_plain = job.request.options.mode is Mode.BASELINE and number > 3
        return [1, 2, 9, 4, 5] if is_later_plain else [1, 2, 3, 4, 5]

    with answering(FakeEngine(unsteady)) as inbox:
        result = race(inbox, QUESTIONS[:1], MODES, Options(), dtype="float32")
    assert result.repeats is Verdict.DIFFERENT
    assert result.verdict is Verdict.DIFFERENT
    assert all(arm.speedup is None for arm in result.arms)
    assert "plain decoding does not repeat itself" in verdict_sentence(result)
    assert rows(result)[0][-1] == "Does not repeat itself"


def test_a_plain_run_that_repeats_itself_is_not_named() -> None:
    with answering(FakeEngine(wrong(Mode.LOOKUP), gap=5.0)) as inbox:
        result = race(inbox, QUESTIONS[:1], MODES, Options(), dtype="float32")
    assert result.repeats is Verdict.IDENTICAL
    assert [line.split(",")[0] for line in differences(result)] == ["lookup"]


def test_warm_up_runs_are_listed_and_not_counted() -> None:
    with answering(FakeEngine(same)) as inbox:
        result = race(inbox, QUESTIONS, MODES, Options(), dtype="float32", trials=1, warm_up=True)
    assert [run.mode for run in result.warm_ups] == list(MODES)
    assert len(result.runs) == len(MODES) * len(QUESTIONS)
    assert "| warm-up | DSpark | code | 5 | 25.00 |" in as_markdown(result, INFO, Options())


def test_each_run_can_be_played_again() -> None:
    with answering(FakeEngine(same)) as inbox:
        result = race(inbox, QUESTIONS[:1], MODES, Options(), dtype="float32", trials=1)
    for run in result.runs:
        assert "".join(step.text for step in run.steps) == run.answer.text
        assert sum(step.tokens for step in run.steps) == len(run.answer.tokens)
        times = [step.at_s for step in run.steps]
        assert times[0] == 0
        assert times == sorted(times)


def test_the_report_names_what_disturbed_it() -> None:
    with answering(FakeEngine(same)) as inbox:
        result = race(inbox, QUESTIONS, MODES, Options(seed=7, temperature=0.5), dtype="float32", trials=2)
    text = as_markdown(result, INFO, Options(seed=7, temperature=0.5), marks=("2 clients were connected",))
    assert "Marked: 2 clients were connected" in text
    assert "temperature 0.5, seed 7" in text
    report = json.loads(as_json_text(result, INFO, Options(seed=7), marks=("on battery",)))
    assert report["marks"] == ["on battery"]
    assert report["options"]["seed"] == 7
    assert len(report["runs"]) == 12
    assert report["machine"]["chip"]


def test_whoever_watches_can_end_the_race() -> None:
    def stop(question: Question, mode: Mode, trial: int, event: Event) -> None:
        if isinstance(event, Delta) and mode is Mode.DSPARK:
            raise KeyboardInterrupt

    engine = FakeEngine(same)
    with answering(engine) as inbox, pytest.raises(KeyboardInterrupt):
        race(inbox, QUESTIONS, MODES, Options(), dtype="float32", watch=stop)
    assert [mode for _, mode in engine.asked] == [Mode.BASELINE, Mode.DSPARK]


def test_the_table_fits_a_terminal_of_80_columns_and_one_trial_has_no_range() -> None:
    spread = Spread(112.34, 110.11, 113.4)
    ratio = Spread(11.86, 11.5, 12.01)
    kinds = {"code": 1.8, "maths": 12.02, "chat": 1.21}
    arms = (Arm(Mode.BASELINE, spread, None, {}, 1.0, ()), Arm(Mode.DSPARK, spread, ratio, kinds, 3.21, ()))
    questions = [Question(kind, kind) for kind in kinds]
    runs = tuple(Run(each, Mode.DSPARK, 0, Answer()) for each in questions)
    out = StringIO()
    Console(file=out, width=80).print(table(Race(arms, runs, 3)))
    assert "…" not in out.getvalue() and "(110.11–113.40)" in out.getvalue() and "Identical" in out.getvalue()
    assert max(map(len, out.getvalue().splitlines())) <= 80
    assert rows(Race(arms, runs, 1))[1][1:3] == ["112.34", "11.86×"]
    assert trials(1) == "1 trial" and trials(3) == "median of 3 trials (lowest–highest)"


def test_a_race_that_is_stopped_says_what_came_so_far() -> None:
    out = StringIO()
    timings = Timings(0, 0, 1, 3, 1, 0, 9, 8)
    with pytest.raises(KeyboardInterrupt), _watching(Console(file=out, width=80), (Mode.BASELINE,), 3) as watch:
        watch(QUESTIONS[0], Mode.BASELINE, 0, Done(Finish.LENGTH, timings, (1,)))
        raise KeyboardInterrupt
    assert "  1/3 " in out.getvalue()
    assert "So far, tokens a second (runs): plain 4.00 (1). Nothing was compared." in out.getvalue()
