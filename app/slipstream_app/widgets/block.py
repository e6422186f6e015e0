"""What every part of a message answers: how high it is at a width. Messages lay their parts out by that alone."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QWidget

from slipstream_app.markdown import Block
from slipstream_app.theme import Theme


class Part(QFrame):
    """A part of a message with an inner layout. Says when its height is another one."""

    resized = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.theme = theme

    def fit(self, width: int) -> int:
        """Take this width; the height that is needed, in pixels."""
        layout = self.layout()
        if layout is None:
            return 0
        self.setFixedWidth(width)
        layout.activate()
        return layout.totalHeightForWidth(width) if layout.hasHeightForWidth() else layout.totalSizeHint().height()


@dataclass(slots=True)
class Away:
    """The place of a part that is no widget for now."""

    block: Block
    wide: int
    high: int
    top: int
    is_stale: bool = False  # it would have another height now

    def fit(self, width: int) -> int:
        self.is_stale |= width != self.wide
        return self.high

    def setGeometry(self, x: int, y: int, width: int, height: int) -> None:
        self.top = y

    def y(self) -> int:
        return self.top

    def height(self) -> int:
        return self.high

    def is_within(self, top: int, bottom: int) -> bool:
        return self.top + self.high >= top and self.top <= bottom
