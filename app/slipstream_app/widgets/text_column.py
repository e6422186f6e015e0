"""The column in the middle of the window in which a chat is read and written."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from slipstream_app.theme import XL, L, S, Theme

MAX_TEXT_WIDTH = 860  # beyond, lines are too long to read


def column_width(theme: Theme, room: int) -> int:
    """Of what is `room` pixels wide. A scroll bar stands in the margin."""
    return max(200, min(room - 2 * XL, theme.px(MAX_TEXT_WIDTH)))


class TextColumn(QWidget):
    """What stands under the messages is as wide as they are. Fill `body`."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.body = QVBoxLayout(self)
        self.body.setSpacing(S)
        theme.resized.connect(self._fit)
        self._fit()

    @Slot()
    def _fit(self) -> None:
        side = max(0, (self.width() - column_width(self._theme, self.width())) // 2)
        self.body.setContentsMargins(side, S, side, L)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()
