"""All drafters in the making: one at a time has a process."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from slipstream.train.runs import OwnRun
from slipstream_app.models.training import StartRun, Training, Wanted, read_record
from slipstream_app.models.training_progress import AT_PAUSE, Stage

logger = logging.getLogger(__name__)


class Trainings(QObject):
    """All that were begun. Nothing is started by itself."""

    changed = Signal()  # one came or went
    made = Signal(object)  # Training, when its drafter is there

    def __init__(self, folder: Path, start: StartRun = OwnRun, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._folder = folder
        self._start_run = start
        self.all: list[Training] = []
        self._next: Training | None = None  # begins when no other has a process
        for record in sorted(folder.glob("*.json")):
            with suppress(TypeError, ValueError, KeyError):
                stored = read_record(record)
                names = ("title", "model", "conversations", "anyway")
                wanted = Wanted(**{name: stored[name] for name in names}, extra=tuple(stored["extra"]))
                if record.stem == wanted.key:
                    self._add(wanted).adopt()
                    continue
            logger.info("%s is no record that this version can go on with; it stays there and may be deleted", record)

    def open(self, wanted: Wanted) -> Training:
        """The one of this model, or a new one; not started."""
        for training in self.all:
            if training.key == wanted.key:
                return training
        training = self._add(wanted)
        self.changed.emit()
        return training

    def start(self, training: Training, *, anyway: bool = False) -> None:
        """Begin it or go on with it, as the only one: another ends after its step, and can be continued later.

        Until that one has ended this one waits: two models at once would be twice the memory.
        """
        if self._next is not None and self._next is not training:
            self._next.halt()
        self._next = None
        for other in self.all:
            if other is not training:
                other.halt()
                other.look()
        if any(other.has_process for other in self.all if other is not training):
            self._next = training
            training.wait(anyway=anyway)
        elif training.has_process:
            training.resume()
        else:
            training.start(anyway=anyway)

    @Slot()
    def _on_changed(self) -> None:
        waiting = self._next
        if waiting is not None and not any(other.has_process for other in self.all if other is not waiting):
            self._next = None
            if waiting.stage in (Stage.WAITING, *AT_PAUSE):
                waiting.resume()

    def drop(self, training: Training) -> None:
        """Cancel it and delete what it left, but for a finished drafter."""
        if self._next is training:
            self._next = None
        training.forget()
        self.all.remove(training)
        training.deleteLater()
        self.changed.emit()
        self._on_changed()

    @property
    def unfinished(self) -> list[Training]:
        """What could be continued."""
        return [training for training in self.all if training.stage in (Stage.HALTED, *AT_PAUSE)]

    def closing(self) -> None:
        """The app ends: what runs saves itself and ends too."""
        self._next = None
        for training in self.all:
            training.halt()

    def _add(self, wanted: Wanted) -> Training:
        training = Training(wanted, self._folder, self._start_run, self)
        training.made.connect(self._on_made)
        training.changed.connect(self._on_changed)
        self.all.append(training)
        return training

    @Slot()
    def _on_made(self) -> None:
        self.made.emit(self.sender())
