"""The model pill in the toolbar and its popover: which pair answers, and another one in two clicks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QPoint, QSize, Qt, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from slipstream.events import Empty, Faulted, Loading, Ready, Status, Working
from slipstream_app.bridge.pair import PairChoice
from slipstream_app.icons import icon
from slipstream_app.numbers import percent_text
from slipstream_app.theme import M, S, Theme
from slipstream_app.widgets.entry import Entry
from slipstream_app.widgets.filter_list import FilterList
from slipstream_app.widgets.load_bar import LoadBar
from slipstream_app.widgets.panel import Words

WIDTH = 380


@dataclass(frozen=True, slots=True)
class Offer:
    """A pair that can be loaded, and one line about it ("fits", "0.5 GB")."""

    choice: PairChoice
    detail: str = ""
    dot: str = ""  # a colour of the theme: whether it fits


class Pill(QPushButton):
    """Names the pair and what is being done with it."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setIcon(icon(theme, "cpu", "muted"))
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        self.show_status(Empty(), None, "")

    def show_status(self, status: Status, choice: PairChoice | None, mode: str) -> None:
        match status:
            case Loading(name, done, total) if total:
                words = self.tr("Loading {0}, {1}").format(name, percent_text(str(100 * done // total)))
            case Loading(name):
                words = self.tr("Loading {0}…").format(name)
            case Ready(info) | Working(info):
                title = choice.title if choice is not None else info.name
                safe = choice is not None and choice.is_safe
                words = f"{title} · {self.tr('safe mode') if safe else mode}"
            case Faulted():
                title = choice.title if choice is not None else self.tr("The model")
                words = self.tr("{0} has stopped").format(title)
            case Empty():
                words = self.tr("No model is loaded")
        self.setText(f" {words}  ▾")
        self.setAccessibleName(self.tr("Model: {0}").format(words))
        self.setToolTip(self.tr("Choose a pair"))


class Popover(QFrame):
    """A list of pairs under the pill. Says what was asked for; loads nothing itself."""

    load_asked = Signal(object)  # PairChoice
    unload_asked = Signal()
    manage_asked = Signal()

    def __init__(self, theme: Theme, offers: Callable[[], Sequence[Offer]], parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self._theme = theme
        self._offers = offers
        self._loaded: PairChoice | None = None
        self._is_loading = False
        self.setAccessibleName(self.tr("Choose a pair"))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setProperty("role", "card")
        self.found = FilterList(theme, self._find, self.tr("No pair has that name."))
        self.found.search.setPlaceholderText(self.tr("Search pairs"))
        self.found.search.setAccessibleName(self.tr("Search pairs"))
        self.found.list.setAccessibleName(self.tr("Pairs"))
        self.found.chosen.connect(self._on_load)
        self.found.current_changed.connect(self._tend)
        self.bar = LoadBar()
        self.read = Words(theme, "", "muted")  # how much, of how much
        self.load = QPushButton(self.tr("Load"))
        self.load.setProperty("role", "primary")
        self.unload = QPushButton(self.tr("Unload"))
        self.manage = QPushButton(self.tr("Manage models…"))
        row = QHBoxLayout()
        row.addWidget(self.manage)
        row.addStretch(1)
        row.addWidget(self.unload)
        row.addWidget(self.load)
        column = QVBoxLayout(self)
        column.setContentsMargins(M, M, M, M)
        column.setSpacing(S)
        column.addWidget(self.found, 1)
        column.addWidget(self.bar)
        column.addWidget(self.read)
        column.addLayout(row)
        self.load.clicked.connect(self._on_load)
        self.unload.clicked.connect(self._on_unload)
        self.manage.clicked.connect(self._on_manage)

    def show_status(self, status: Status, choice: PairChoice | None) -> None:
        self._is_loading = isinstance(status, Loading)
        self._loaded = choice
        self.bar.show_status(status)
        self.read.say(self.bar.words)
        self.read.setVisible(bool(self.bar.words))
        self.unload.setText(self.tr("Cancel") if self._is_loading else self.tr("Unload"))
        self.unload.setEnabled(choice is not None)
        self._tend()

    def open_below(self, pill: QWidget) -> None:
        width = self._theme.px(WIDTH)
        self.resize(width, self.sizeHint().height())
        self.move(pill.mapToGlobal(QPoint(0, pill.height() + 2)))
        self.show()
        self.found.open()

    def sizeHint(self) -> QSize:
        return QSize(self._theme.px(WIDTH), self._theme.px(300))

    def refresh(self) -> None:
        """What is offered, or is known of it, is different now."""
        if self.isVisible():
            self.found.fill()

    def _find(self, _: str) -> list[Entry]:
        return [
            Entry(
                offer.choice.title,
                partial(self.load_asked.emit, offer.choice),
                offer.detail,
                value=offer.choice,
                dot=offer.dot,
            )
            for offer in self._offers()
        ]

    @property
    def _can_load(self) -> bool:
        entry = self.found.current
        return entry is not None and entry.value != self._loaded

    @Slot()
    def _tend(self) -> None:
        self.load.setEnabled(self._can_load)

    @Slot()
    def _on_load(self) -> None:
        entry = self.found.current
        if entry is not None and self._can_load:
            self.hide()
            entry.run()

    @Slot()
    def _on_unload(self) -> None:
        self.hide()
        self.unload_asked.emit()

    @Slot()
    def _on_manage(self) -> None:
        self.hide()
        self.manage_asked.emit()
