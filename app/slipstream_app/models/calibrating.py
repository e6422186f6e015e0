"""Measuring what the loaded model's passes cost here: one job on the engine's thread, watched from the main one."""

from __future__ import annotations

from enum import StrEnum

from PySide6.QtCore import QObject, Signal, Slot

from slipstream.errors import SlipstreamError, Unsteady
from slipstream.events import Done, Event, Failed, Finish, Measured
from slipstream.jobs import Job
from slipstream.store.curves import Measured as Kept
from slipstream.store.curves import curves_of
from slipstream.types import Calibrate, ModelInfo
from slipstream_app.bridge.session import Session
from slipstream_app.models.work import Work

SOURCE = "calibrate"


class Phase(StrEnum):
    NO_MODEL = "no model"
    UNMEASURED = "unmeasured"
    MEASURED = "measured"
    RUNNING = "running"
    REFUSED = "refused"  # the machine is hot or busy
    FAILED = "failed"


class Calibrating(QObject):
    """`changed` whenever any of its figures did. Nothing calibrates by itself: somebody calls `start`.

    One for the whole app, so that what one window started is seen in the others. What is kept is looked for once
    somebody attends.
    """

    changed = Signal()
    measured = Signal()  # a calibration came to its end

    def __init__(self, session: Session, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._work = Work(self)
        self._is_attended = False
        self._job: Job | None = None
        self._info: ModelInfo | None = None
        self.phase = Phase.NO_MODEL
        self.done = 0  # measurements, of `total`
        self.total = 0
        self.kept: Kept | None = None  # what is known of the loaded model on this machine
        self.why = ""  # of a refusal: what the machine is; of a failure: the sentence
        session.bus.said.connect(self._on_said)
        session.bus.status_changed.connect(self._on_status)
        self._on_status()

    @property
    def is_running(self) -> bool:
        return self._job is not None

    def attend(self) -> None:
        """It is shown somewhere now."""
        if not self._is_attended:
            self._is_attended = True
            self._look()

    def start(self, *, force: bool = False) -> None:
        """`force`: also on a machine that is hot or busy. While one runs, nothing happens."""
        if self._job is not None:
            return
        job = Job(Calibrate(force), _ignore)
        try:
            self._session.put(job, SOURCE)
        except SlipstreamError as error:
            self._rest(Phase.FAILED, error.message)
            return
        self._job = job
        self.done = self.total = 0
        self._rest(Phase.RUNNING)

    def stop(self) -> None:
        """What was measured before stays as it was."""
        if self._job is not None:
            self._session.cancel(self._job)

    @Slot(int, object)
    def _on_said(self, number: int, event: Event) -> None:
        if self._job is None or number != self._job.number:
            return
        match event:
            case Measured(done, total):
                self.done, self.total = done, total
                self.changed.emit()
            case Done(reason):
                self._job = None
                if reason is not Finish.CANCELLED:
                    self.measured.emit()
                self._look()
            case Failed(Unsteady() as error):
                self._job = None
                self._rest(Phase.REFUSED, str(error.facts.get("state", "")))
            case Failed(error):
                self._job = None
                self._rest(Phase.FAILED, error.message)
            case _:
                pass

    @Slot()
    def _on_status(self, *_: object) -> None:
        info = self._session.info
        if info == self._info:
            return
        self._info, self.kept = info, None
        if self._job is None:
            self._rest(Phase.NO_MODEL if info is None else Phase.UNMEASURED)
            self._look()

    def _look(self) -> None:
        """For what is kept; a file, and on a Mac a program that is asked about power."""
        info = self._info
        if info is None:
            self._rest(Phase.NO_MODEL)
            return
        if not self._is_attended:
            return

        def then(found: Kept | None) -> None:
            if info == self._info and self._job is None:
                self.kept = found
                self._rest(Phase.UNMEASURED if found is None else Phase.MEASURED)

        self._work.do(lambda: curves_of(info), then, lambda _: None, "slipstream-curves")

    def _rest(self, phase: Phase, why: str = "") -> None:
        self.phase, self.why = phase, why
        self.changed.emit()


def _ignore(_: Event) -> None:
    pass
