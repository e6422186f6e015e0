"""A row of places to choose from, for a screen that has several pages."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QToolButton, QWidget


class Sections(QWidget):
    """One is chosen at any time. Left and right move between them, as between radio buttons."""

    chosen = Signal(int)

    def __init__(self, name: str, titles: Sequence[str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self._group = QButtonGroup(self)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        for number, title in enumerate(titles):
            made = QToolButton()
            made.setText(title)
            made.setCheckable(True)
            made.setProperty("role", "flat")
            made.setAccessibleName(title)
            self._group.addButton(made, number)
            row.addWidget(made)
        row.addStretch(1)
        self._group.idClicked.connect(self._on_click)
        self._group.button(0).setChecked(True)

    @property
    def index(self) -> int:
        return self._group.checkedId()

    def choose(self, index: int) -> None:
        self._group.button(index).setChecked(True)
        self.chosen.emit(index)

    def rename(self, index: int, title: str) -> None:
        self._group.button(index).setText(title)
        self._group.button(index).setAccessibleName(title)

    @Slot(int)
    def _on_click(self, index: int) -> None:
        self.chosen.emit(index)
