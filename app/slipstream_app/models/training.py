"""A drafter in the making: a process of its own, and a record on disk from which it goes on."""

from __future__ import annotations

import hashlib
import json
import logging
import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from slipstream.store.atomic import write_text
from slipstream.store.paths import cache_dir
from slipstream.train.made import drafters_dir
from slipstream.train.runs import AdoptedRun, read_log
from slipstream_app.bridge.pair import PairChoice, made_choice
from slipstream_app.models.training_progress import AT_PAUSE, Progress, Stage

logger = logging.getLogger(__name__)

LOOK_MS = 500
EVERY = 10  # steps between two figures


class Run(Protocol):
    """A process that trains."""

    @property
    def pid(self) -> int: ...
    def reports(self) -> list[dict[str, Any]]: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def stop(self) -> None: ...
    def kill(self) -> None: ...
    @property
    def is_running(self) -> bool: ...
    @property
    def error(self) -> str: ...


StartRun = Callable[[Sequence[str], Path], Run]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A drafter for a model."""

    title: str  # of the model, for people
    model: str | None  # for the command; None: the built-in one
    conversations: int
    anyway: bool = False  # also where it is expected to gain little
    extra: tuple[str, ...] = ()  # further options of the command

    @property
    def key(self) -> str:
        """A file's name, of this model alone: titles are short, may lack ASCII letters, and disks ignore case."""
        words = re.sub(r"[^A-Za-z0-9.-]+", "-", self.title).strip("-.") or "model"
        return f"{words}-{hashlib.sha256((self.model or '').encode()).hexdigest()[:8]}"


class Training(QObject):
    """One drafter in the making. `changed` whenever anything of it is different."""

    changed = Signal()
    made = Signal()

    def __init__(self, wanted: Wanted, folder: Path, start: StartRun, parent: QObject | None = None) -> None:
        """`folder`: of its record and logs."""
        super().__init__(parent)
        self.wanted = wanted
        self.progress = Progress()
        self.stage = Stage.HALTED
        self.why = ""  # of a refusal or failure
        self.is_news = False  # it was finished while there was no app
        self._folder = folder
        self._start_run = start
        self._output = _free(drafters_dir() / f"{self.key}-DSpark")
        self._sitting = 0
        self._run: Run | None = None
        self._is_stopping = False
        self._before_pause = Stage.STARTING
        self._timer = QTimer(self, interval=LOOK_MS)
        self._timer.timeout.connect(self.look)

    @property
    def key(self) -> str:
        return self.wanted.key

    @property
    def output(self) -> Path:
        """Where its drafter goes: a folder in which there was none."""
        return self._output

    @property
    def work(self) -> Path:
        """What it writes on the way. The command's own folders lie elsewhere: this one goes with the training."""
        return cache_dir() / "train-window" / self.key

    @property
    def choice(self) -> PairChoice:
        """Its model with the drafter that it makes."""
        return made_choice(self.wanted.title, self.wanted.model, self.output)

    @property
    def has_process(self) -> bool:
        return self._run is not None

    @property
    def is_stopping(self) -> bool:
        """It was told to end, and makes its step yet."""
        return self._is_stopping and self._run is not None

    @property
    def can_pause(self) -> bool:
        """Before its first report it does not listen."""
        return self.stage in (Stage.WRITING, Stage.FITTING) and not self._is_stopping

    @property
    def arguments(self) -> list[str]:
        """The same at each sitting, so that it goes on."""
        wanted = self.wanted
        model = [] if wanted.model is None else ["--model", wanted.model]
        amount = ["--conversations", str(wanted.conversations), "--every", str(EVERY)]
        places = ["--work", str(self.work), "--output", str(self.output)]
        return [*model, *places, *amount, *(["--anyway"] if wanted.anyway else []), *wanted.extra]

    # What the user does.

    def start(self, *, anyway: bool = False) -> None:
        """Begin, or go on from where it was. `anyway`: also where it is expected to gain little.

        For people `Trainings.start` does it, which keeps to one at a time.
        """
        if self._run is not None:
            return
        self.wanted = replace(self.wanted, anyway=self.wanted.anyway or anyway)
        self._sitting += 1
        self._is_stopping = self.progress.stands = False
        try:
            self._run = self._start_run(self.arguments, self._log(self._sitting))
        except OSError as error:
            self._rest(Stage.FAILED, f"the training process could not be started ({error.strerror})")
            return
        self._rest(Stage.STARTING)
        self._timer.start()

    def pause(self) -> None:
        if self._run is not None and self.can_pause:
            self._before_pause = self.stage
            self._run.pause()
            self._rest(Stage.PAUSING)

    def resume(self) -> None:
        """After a pause, or when there is no process any more."""
        if self._run is None:
            self.start()
        elif self.stage in AT_PAUSE:
            self._run.resume()
            self._rest(self._before_pause)

    def halt(self) -> None:
        """End the process after the step that it makes; what was learned is kept. Does not wait."""
        if self._run is not None:
            if self._is_stopping:
                return  # a second word would end it at once
            self._is_stopping = True
            self._run.stop()
            self.changed.emit()
        elif self.stage is Stage.WAITING:
            self._rest(Stage.HALTED)

    def wait(self, *, anyway: bool = False) -> None:
        """Say that it begins when another has ended."""
        if self._run is None:
            self.wanted = replace(self.wanted, anyway=self.wanted.anyway or anyway)
            self._rest(Stage.WAITING)

    # What the process does.

    def adopt(self) -> None:
        """Read what earlier sittings said, and take up a process that outlived the last app."""
        stored = read_record(self._record)
        self._sitting = int(stored.get("sitting", 0))
        self._output = drafters_dir() / Path(str(stored.get("output", self._output))).name
        for sitting in range(1, self._sitting):
            for report in read_log(self._log(sitting))[0]:
                self.progress.take(report)
        self.progress.stands = False  # that of an earlier sitting ended with it
        run = AdoptedRun(int(stored.get("pid", 0)), self._log(self._sitting))
        stage = Stage.STARTING
        for report in run.reports():
            stage = self.progress.take(report) or stage
        if run.pid and run.is_running:
            self._run = run
            self._before_pause = stage
            self._timer.start()
            self._rest(self._pause_stage if stored.get("stage") in AT_PAUSE else stage)
        elif stored.get("stage") in (Stage.DONE, Stage.REFUSED, Stage.FAILED):
            self._rest(Stage(stored["stage"]), str(stored.get("why", "")))
        else:
            self.is_news = self._has_judged
            self._rest(Stage.DONE if self.is_news else Stage.HALTED)

    @Slot()
    def look(self) -> None:
        """Take what the process said since the last look."""
        run = self._run
        if run is None:
            return
        was_running = run.is_running  # asked first: what it says at its very end is then read too
        reports = run.reports()
        stage = None
        for report in reports:
            stage = self.progress.take(report) or stage
        if not was_running:
            self._run = None
            self._timer.stop()
            self._ended(run.error)
        elif reports and self.stage in AT_PAUSE:
            self._before_pause = stage or self._before_pause  # of the step that was being made when it was asked
            self._rest(self._pause_stage)
        elif stage is not None:
            self._rest(stage)

    @property
    def _pause_stage(self) -> Stage:
        return Stage.PAUSED if self.progress.stands else Stage.PAUSING

    @property
    def _has_judged(self) -> bool:
        return self.progress.is_judged and (self.output / "model.safetensors").is_file()

    def _ended(self, error: str) -> None:
        if not error and self._has_judged:  # also where it was told to end during its last step
            self._rest(Stage.DONE)
            self.made.emit()
        elif self._is_stopping:
            self._rest(Stage.HALTED)
        elif "--anyway" in error:
            self._rest(Stage.REFUSED, error.partition(";")[0])
        elif error:
            self._rest(Stage.FAILED, error)
        else:
            self._rest(Stage.HALTED)

    # Disk.

    @property
    def _record(self) -> Path:
        return self._folder / f"{self.key}.json"

    def _log(self, sitting: int) -> Path:
        return self._folder / f"{self.key}-{sitting}.jsonl"

    def _rest(self, stage: Stage, why: str = "") -> None:
        is_news = (stage, why) != (self.stage, self.why)
        self.stage, self.why = stage, why
        if is_news:
            self._keep()
        self.changed.emit()

    def _keep(self) -> None:
        pid = 0 if self._run is None else self._run.pid
        stored = asdict(self.wanted) | {
            "sitting": self._sitting,
            "pid": pid,
            "output": self._output.name,
            "stage": self.stage.value,
            "why": self.why,
        }
        try:
            write_text(self._record, json.dumps(stored, indent=2) + "\n")
        except OSError as error:
            logger.warning("the record of a training cannot be kept: %s", error)

    def leftovers(self) -> tuple[int, int]:
        """Files and bytes of what it wrote on the way, which `forget` deletes."""
        sizes: list[int] = []
        for file in self.work.rglob("*"):
            with suppress(OSError):  # it is being written
                if file.is_file():
                    sizes.append(file.stat().st_size)
        return len(sizes), sum(sizes)

    def forget(self) -> None:
        """Delete its record, its logs and what it wrote on the way. A finished drafter stays."""
        self._timer.stop()
        if self._run is not None:
            self._run.kill()
            self._run = None
        for file in self._folder.glob(f"{self.key}*"):
            if file == self._record or re.fullmatch(re.escape(self.key) + r"-[0-9]+\.(jsonl|err)", file.name):
                file.unlink(missing_ok=True)
        shutil.rmtree(self.work, ignore_errors=True)


def _free(folder: Path) -> Path:
    """This folder, or one numbered beside it, where none is: a finished drafter is never written over."""
    number, free = 1, folder
    while free.exists():
        number += 1
        free = folder.with_name(f"{folder.name}-{number}")
    return free


def read_record(record: Path) -> dict[str, Any]:
    """Empty where there is none that can be read."""
    try:
        stored: Any = json.loads(record.read_text("utf-8"))  # Any: the file may say anything
    except (OSError, ValueError):
        return {}
    return stored if isinstance(stored, dict) else {}
