"""Pages that scroll up and down, and cards under each other on one."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from slipstream_app.theme import M, Theme
from slipstream_app.widgets.panel import wrapped


class Scrolling(QScrollArea):
    """`inside` is as wide as the page. `name`: for VoiceOver. `margin`: right of it, where the bar stands."""

    def __init__(self, inside: QWidget, name: str, parent: QWidget | None = None, *, margin: int = 0) -> None:
        super().__init__(parent)
        self._margin = margin
        self.setWidget(inside)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(name)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._margin and (layout := self.widget().layout()) is not None:
            bar = self.width() - self.viewport().width()
            margins = layout.contentsMargins()
            margins.setRight(max(0, self._margin - bar))
            layout.setContentsMargins(margins)


class CardColumn(Scrolling):
    """`nothing`: what is said while there is no card."""

    def __init__(self, theme: Theme, name: str, nothing: str, parent: QWidget | None = None) -> None:
        self.nothing = wrapped(theme, nothing, "muted")
        self.nothing.setAlignment(Qt.AlignmentFlag.AlignCenter)
        inside = QWidget()
        self._column = QVBoxLayout(inside)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(M)
        self._column.addWidget(self.nothing)
        self._column.addStretch(1)
        self._shown: list[QWidget] = []
        super().__init__(inside, name, parent)

    def put(self, card: QWidget, *, is_first: bool = False) -> None:
        self._column.insertWidget(0 if is_first else self._column.count() - 1, card)
        self._shown.append(card)
        self.nothing.hide()

    def take(self, card: QWidget) -> None:
        """The card is deleted."""
        self._column.removeWidget(card)
        self._shown.remove(card)
        card.deleteLater()
        self.nothing.setVisible(not self._shown)
