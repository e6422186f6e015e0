"""A race on its own thread, seen from the main one; and its runs played again side by side."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from PySide6.QtCore import QObject, Signal, Slot

from slipstream.errors import Closed, SlipstreamError
from slipstream.events import Delta, Done, Event, Finish, Prefill
from slipstream.jobs import Inbox, Job
from slipstream.measure.left import TimeLeft
from slipstream.measure.prompts import Question
from slipstream.measure.race import Race, Run, race
from slipstream.measure.verdict import Verdict
from slipstream.types import Mode, ModelInfo, Options
from slipstream_app.models.conditions import Conditions, read
from slipstream_app.models.race_marks import Cause, Mark

COOL_S = 60.0  # that a run waits for a hot machine
COOL_LOOK_S = 2.0
PutJob = Callable[[Job], None]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RacePlan:
    """What is asked, by whom, how often. The first arm is the plain one."""

    questions: tuple[Question, ...]
    arms: tuple[Mode, ...]
    options: Options
    trials: int
    thinking: bool = False
    marks: tuple[Mark, ...] = ()  # what disturbed it


@dataclass(frozen=True, slots=True)
class RaceResult:
    plan: RacePlan
    info: ModelInfo
    race: Race
    conditions: tuple[Conditions, ...] = ()  # before and after each run

    @property
    def disturbances(self) -> tuple[Mark, ...]:
        """By the machine itself."""
        told: list[Mark] = []
        if any(one.on_battery for one in self.conditions):
            told.append(Mark(Cause.BATTERY))
        if any(one.low_power for one in self.conditions):
            told.append(Mark(Cause.LOW_POWER))
        if not all(one.is_calm for one in self.conditions):
            told.append(Mark(Cause.HOT))
        if count := len(self.race.disturbed):
            told.append(Mark(Cause.REPEATED, count))
        return tuple(told)

    @property
    def claims_speed(self) -> bool:
        return self.race.verdict is not Verdict.DIFFERENT

    @property
    def winner(self) -> Mode | None:
        """The fastest arm, if it is not plain and no arm said something else."""
        if not self.claims_speed:
            return None
        best = max(self.race.arms, key=lambda arm: arm.tps.median)
        return None if best.mode is Mode.BASELINE else best.mode

    @property
    def last_trial(self) -> tuple[Run, ...]:
        """One run for each arm, of the first question: what the replay plays."""
        trial = self.race.trials - 1
        asked = self.plan.questions[0]
        found = {run.mode: run for run in self.race.runs if run.trial == trial and run.question == asked}
        return tuple(found[mode] for mode in self.plan.arms)


class ArmState(StrEnum):
    WAITING = "waiting"
    READING = "reading"
    WRITING = "writing"
    ENDED = "ended"


@dataclass(slots=True)
class ArmProgress:
    """One arm's current run. The text is only appended to until the next run begins."""

    mode: Mode
    state: ArmState = ArmState.WAITING
    run: int = 0  # counts the arm's runs, warm-up included
    text: str = ""
    tokens: int = 0
    tps: float | None = None  # of the run that ended last


class _Stopped(Exception):
    """Raised in the race's thread when the user has had enough."""


class RaceRunner(QObject):
    """One race at a time. Signals arrive on the main thread."""

    progressed = Signal()
    finished = Signal(object)  # RaceResult
    failed = Signal(object)  # SlipstreamError
    stopped = Signal()
    _heard = Signal(object, int, object)  # Mode, trial, Event
    _ended = Signal(object)  # RaceResult, SlipstreamError or None

    def __init__(
        self, put: PutJob, parent: QObject | None = None, *, conditions: Callable[[], Conditions] = read
    ) -> None:
        super().__init__(parent)
        self._put = put
        self._conditions = conditions
        self._seen: list[Conditions] = []  # on the race's thread
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._over = threading.Event()
        self._job: Job | None = None
        self.arms: tuple[ArmProgress, ...] = ()
        self.done = 0  # runs
        self.total = 0
        self.trial = 0  # -1: warm-up
        self._left = TimeLeft({})
        self._heard.connect(self._on_heard)
        self._ended.connect(self._on_ended)

    @property
    def is_running(self) -> bool:
        return self._thread is not None

    @property
    def is_measuring(self) -> bool:
        """As long as it has jobs of its own."""
        return self.is_running and not self._over.is_set()

    @property
    def left_s(self) -> float | None:
        """Seconds that the runs to come may take, as those so far took; None before the first has ended."""
        return self._left.seconds(time.monotonic())

    def start(self, plan: RacePlan, info: ModelInfo, then: Callable[[], object] = lambda: None) -> None:
        """`then`: on the race's thread when it has no more jobs, whatever ended it."""
        assert not self.is_running
        self._stop.clear()
        self._over.clear()
        self._job = None
        self._seen = []
        self.arms = tuple(ArmProgress(mode) for mode in plan.arms)
        self.done, self.total, self.trial = 0, len(plan.arms) * (1 + plan.trials * len(plan.questions)), -1
        self._left = TimeLeft(dict.fromkeys(plan.arms, 1 + plan.trials * len(plan.questions)))
        self._thread = threading.Thread(target=self._run, args=(plan, info, then), name="slipstream-race")
        self._thread.start()
        self.progressed.emit()

    def stop(self) -> None:
        """The job that runs or waits is cancelled; `stopped` follows within a round."""
        self._stop.set()
        if (job := self._job) is not None:
            job.cancel()

    def close(self) -> None:
        """At the program's end, while the engine still answers or has been told to end."""
        self.stop()
        if self._thread is not None:
            self._thread.join()

    # On the race's thread.

    def _run(self, plan: RacePlan, info: ModelInfo, then: Callable[[], object]) -> None:
        try:
            outcome = self._outcome(plan, info)
        finally:
            self._over.set()
            then()
        with suppress(RuntimeError):  # the window is gone already
            self._ended.emit(outcome)

    def _outcome(self, plan: RacePlan, info: ModelInfo) -> RaceResult | SlipstreamError | None:
        """None: it was stopped."""

        def watch(_: Question, mode: Mode, trial: int, event: Event) -> None:
            if self._stop.is_set():
                raise _Stopped
            if isinstance(event, Done) and event.reason is Finish.CANCELLED:
                raise Closed("the model was unloaded or replaced; load it and race again")
            self._heard.emit(mode, trial, event)

        try:
            made = race(
                _Through(self._send),
                plan.questions,
                plan.arms,
                plan.options,
                dtype=info.dtype,
                trials=plan.trials,
                template={"enable_thinking": plan.thinking},
                warm_up=True,
                watch=watch,
                conditions=self._calm,
            )
        except _Stopped:
            return None
        except SlipstreamError as error:
            return None if self._stop.is_set() else error
        except Exception as error:  # whatever it is, the race is over and the window must hear of it
            logger.exception("the race failed")
            return SlipstreamError(f"this failed ({type(error).__name__}: {error}); see the log")
        return RaceResult(plan, info, made, tuple(self._seen))

    def _send(self, job: Job) -> None:
        self._job = job  # before the look at `_stop`, which is set before `_job` is cancelled
        if self._stop.is_set():
            raise _Stopped
        self._put(job)

    def _calm(self) -> object:
        """Waits for a hot machine to cool down, within reason; then says what this run runs under."""
        until = time.monotonic() + COOL_S
        found = self._conditions()
        while not found.is_calm and time.monotonic() < until and not self._stop.wait(COOL_LOOK_S):
            found = self._conditions()
        if self._stop.is_set():
            raise _Stopped
        self._seen.append(found)
        return found.for_speed

    # On the main thread.

    @Slot(object, int, object)
    def _on_heard(self, mode: Mode, trial: int, event: Event) -> None:
        arm = next(arm for arm in self.arms if arm.mode is mode)
        self.trial = trial
        match event:
            case Prefill():
                if arm.state is not ArmState.READING:
                    arm.run += 1
                    arm.text, arm.tokens = "", 0
                arm.state = ArmState.READING
            case Delta():
                arm.state = ArmState.WRITING
                arm.text += event.text
                arm.tokens += len(event.tokens)
            case Done():
                arm.state = ArmState.ENDED
                arm.tps = event.timings.decode_tps
                self.done += 1
                self._left.note(mode, event.timings)
            case _:
                return
        self.progressed.emit()

    @Slot(object)
    def _on_ended(self, outcome: RaceResult | SlipstreamError | None) -> None:
        if self._thread is not None:
            self._thread.join()  # it has nothing left to do
            self._thread = None
        match outcome:
            case RaceResult():
                self.finished.emit(outcome)
            case SlipstreamError():
                self.failed.emit(outcome)
            case None:
                self.stopped.emit()


class _Through(Inbox):
    """Hands jobs on to the session, which knows which inbox is the loaded pair's."""

    def __init__(self, put: PutJob) -> None:
        super().__init__()
        self._put = put

    def put(self, job: Job) -> None:
        self._put(job)


class Replay:
    """Runs as they were, on one clock that begins at each run's first token."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = tuple(runs)

    @property
    def seconds(self) -> float:
        return max((run.steps[-1].at_s for run in self.runs if run.steps), default=0.0)

    def at(self, seconds: float) -> list[tuple[str, int]]:
        """Each run's text and token count by then."""
        out: list[tuple[str, int]] = []
        for run in self.runs:
            said = [step for step in run.steps if step.at_s <= seconds]
            out.append(("".join(step.text for step in said), sum(step.tokens for step in said)))
        return out
