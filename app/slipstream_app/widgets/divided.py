"""Two parts above each other that share the height by what they show, until somebody moves what is between them."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSplitter, QWidget

UPPER_SHARE = 0.6  # of the height, where both parts are higher than there is room for


class Divided(QSplitter):
    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Vertical, parent)
        self.divides_itself = True
        self.setChildrenCollapsible(False)
        self.splitterMoved.connect(self._on_moved)

    def whole_heights(self) -> tuple[int, int] | None:
        """Of both parts, with nothing to scroll; None while one is hidden."""
        raise NotImplementedError

    def divide(self) -> None:
        """The upper part is as high as what it shows, and the lower has the rest."""
        wanted = self.whole_heights() if self.divides_itself else None
        if wanted is not None:
            room = self.height() - self.handleWidth()
            high = min(wanted[0], max(room - wanted[1], round(UPPER_SHARE * room)))
            super().setSizes([high, room - high])

    def setSizes(self, sizes: Sequence[int]) -> None:
        """As they were left another time."""
        self.divides_itself = False
        super().setSizes(sizes)

    @Slot()
    def _on_moved(self, *_: object) -> None:
        self.divides_itself = False

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.divide()
