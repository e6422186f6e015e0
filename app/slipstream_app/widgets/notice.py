"""One sentence of why something cannot begin, or should not, with what to do about it; and how far it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QWidget

from slipstream_app.theme import Theme
from slipstream_app.widgets.panel import Panel, button, wrapped

BAR_HEIGHT = 6


@dataclass(frozen=True, slots=True)
class Remedy:
    words: str
    do: Callable[[], object]


class Notice(Panel):
    """Hidden while there is nothing to say."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, "", parent)
        self.words = wrapped(theme)
        self.first = button("")
        self.second = button("")
        self.first.clicked.connect(self._on_first)
        self.second.clicked.connect(self._on_second)
        self._remedies: tuple[Remedy, ...] = ()
        row = QHBoxLayout()
        row.addWidget(self.words, 1)
        row.addWidget(self.first)
        row.addWidget(self.second)
        self.body.addLayout(row)
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setFixedHeight(BAR_HEIGHT)
        self.bar.setAccessibleName(self.tr("Progress"))
        self.bar.hide()
        self.body.addWidget(self.bar)

    def say(self, words: str, *remedies: Remedy) -> None:
        """Two remedies at most."""
        self.words.say(words)
        self._remedies = remedies
        for number, made in enumerate((self.first, self.second)):
            made.setVisible(number < len(remedies))
            if number < len(remedies):
                made.setText(remedies[number].words)
        self.setVisible(bool(words))

    def show_progress(self, done: int, total: int) -> None:
        self.bar.setRange(0, total)
        self.bar.setValue(done)
        self.bar.show()

    def hide_progress(self) -> None:
        self.bar.hide()

    @Slot()
    def _on_first(self) -> None:
        self._remedies[0].do()

    @Slot()
    def _on_second(self) -> None:
        self._remedies[1].do()
