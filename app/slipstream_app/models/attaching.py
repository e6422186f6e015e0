"""Files on their way into a message: read one after another beside the window's thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from slipstream.errors import SlipstreamError
from slipstream_app.messages import Attachment
from slipstream_app.models.attached_file import Refused, read
from slipstream_app.models.work import Work


class Attaching(QObject):
    """`read` and `refused` come in the order of the files."""

    changed = Signal()  # `names` are others
    read = Signal(object)  # Attachment
    refused = Signal(object)  # Refused

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._work = Work(self)
        self._files: deque[Path] = deque()  # the first is being read
        self._number = 0  # of the reading that is wanted

    @property
    def names(self) -> tuple[str, ...]:
        """Of the files to come."""
        return tuple(file.name for file in self._files)

    def take(self, files: Sequence[Path]) -> None:
        is_idle = not self._files
        self._files.extend(files)
        self.changed.emit()
        if is_idle:
            self._read_next()

    def _read_next(self) -> None:
        if not self._files:
            return
        file = self._files[0]
        self._number += 1
        number = self._number

        def work() -> Attachment | Refused:
            try:
                return read(file, lambda: number == self._number)
            except Refused as error:
                return error

        def then(outcome: Attachment | Refused) -> None:
            if number != self._number:
                return
            self._files.popleft()
            (self.refused if isinstance(outcome, Refused) else self.read).emit(outcome)
            self.changed.emit()
            self._read_next()

        def or_else(_: SlipstreamError) -> None:
            then(Refused("unreadable", file.name))

        self._work.do(work, then, or_else, "slipstream-attach")

    def give_up(self) -> None:
        """What is to come is wanted no more; a PDF ends at its next page."""
        self._number += 1
        if self._files:
            self._files.clear()
            self.changed.emit()
