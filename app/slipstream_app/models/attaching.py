"""Files on their way into a message: read one after another beside the window's thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from slipstream.errors import SlipstreamError
from slipstream_app.messages import Attachment
from slipstream_app.models.attached_file import Refused, read
from slipstream_app.models.work import Work


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of some files, in their order."""

    attachments: tuple[Attachment, ...] = ()
    refused: tuple[Refused, ...] = ()


class Attaching(QObject):
    changed = Signal()  # `names` are others
    taken = Signal(object)  # Taken

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._work = Work(self)
        self._under_way: dict[int, tuple[str, ...]] = {}
        self._number = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Of the files that are being read."""
        return tuple(name for names in self._under_way.values() for name in names)

    def take(self, files: Sequence[Path]) -> None:
        self._number += 1
        number = self._number
        self._under_way[number] = tuple(file.name for file in files)

        def work() -> Taken:
            attachments: list[Attachment] = []
            refused: list[Refused] = []
            for file in files:
                try:
                    attachments.append(read(file, lambda: number in self._under_way))
                except Refused as error:
                    refused.append(error)
            return Taken(tuple(attachments), tuple(refused))

        def then(taken: Taken) -> None:
            if self._under_way.pop(number, None) is not None:
                self.changed.emit()
                self.taken.emit(taken)

        def or_else(_: SlipstreamError) -> None:
            then(Taken(refused=tuple(Refused("unreadable", file.name) for file in files)))

        self._work.do(work, then, or_else, "slipstream-attach")
        self.changed.emit()

    def give_up(self) -> None:
        """What is being read is wanted no more; a PDF ends at its next page."""
        if self._under_way:
            self._under_way.clear()
            self.changed.emit()
