"""The model pill in the toolbar and its popover: which pair answers, and another one in two clicks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, QPoint, QSize, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListView,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from slipstream.events import Empty, Faulted, Loading, Ready, Status, Working
from slipstream_app.bridge.pair import PairChoice
from slipstream_app.fuzzy import score
from slipstream_app.icons import icon
from slipstream_app.theme import M, S, Theme

WIDTH = 380


@dataclass(frozen=True, slots=True)
class Offer:
    """A pair that can be loaded, and one line about it ("fits", "0.5 GB")."""

    choice: PairChoice
    detail: str = ""


class _Offers(QAbstractListModel):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.rows: list[Offer] = []

    def show_rows(self, rows: Sequence[Offer]) -> None:
        self.beginResetModel()
        self.rows = list(rows)
        self.endResetModel()

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.rows)

    def data(self, index: QModelIndex | QPersistentModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        offer = self.rows[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.AccessibleTextRole:
                return f"{offer.choice.title}   {offer.detail}".rstrip()
            case Qt.ItemDataRole.ToolTipRole:
                return offer.choice.target or offer.choice.title
            case _:
                return None


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
        self.search = QLineEdit(placeholderText=self.tr("Search pairs"), clearButtonEnabled=True)
        self.search.setAccessibleName(self.tr("Search pairs"))
        self.list = QListView()
        self.list.setAccessibleName(self.tr("Pairs"))
        self.list.setProperty("role", "list")
        self.list.setFrameShape(QFrame.Shape.NoFrame)
        self.list.setUniformItemSizes(True)
        self.list.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        self._model = _Offers(self)
        self.list.setModel(self._model)
        self.nothing = QLabel(self.tr("No pair has that name."))
        self.nothing.setProperty("role", "muted")
        self.bar = QProgressBar(textVisible=False)
        self.bar.setRange(0, 0)  # MLX reads lazily and does not say how far it is
        self.bar.setAccessibleName(self.tr("Loading"))
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
        for widget in (self.search, self.list, self.nothing, self.bar):
            column.addWidget(widget)
        column.addLayout(row)
        self.search.textChanged.connect(self._fill)
        self.list.activated.connect(self._on_load)
        self.list.selectionModel().currentChanged.connect(self._tend)
        self.load.clicked.connect(self._on_load)
        self.unload.clicked.connect(self._on_unload)
        self.manage.clicked.connect(self._on_manage)

    def show_status(self, status: Status, choice: PairChoice | None) -> None:
        self._is_loading = isinstance(status, Loading)
        self._loaded = choice
        self.bar.setVisible(self._is_loading)
        self.unload.setText(self.tr("Cancel") if self._is_loading else self.tr("Unload"))
        self.unload.setEnabled(choice is not None)
        self._tend()

    def open_below(self, pill: QWidget) -> None:
        self.search.clear()
        self._fill()
        width = self._theme.px(WIDTH)
        self.resize(width, self.sizeHint().height())
        self.move(pill.mapToGlobal(QPoint(0, pill.height() + 2)))
        self.show()
        self.search.setFocus()

    def sizeHint(self) -> QSize:
        return QSize(self._theme.px(WIDTH), self._theme.px(300))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        match event.key():
            case Qt.Key.Key_Down | Qt.Key.Key_Up if self._model.rows:
                step = 1 if event.key() == Qt.Key.Key_Down else -1
                row = (self.list.currentIndex().row() + step) % len(self._model.rows)
                self.list.setCurrentIndex(self._model.index(row))
            case Qt.Key.Key_Return | Qt.Key.Key_Enter:
                self._on_load()
            case _:
                super().keyPressEvent(event)

    @Slot()
    def _fill(self) -> None:
        words = self.search.text()
        found = [(score(words, offer.choice.title), offer) for offer in self._offers()]
        kept = [(points, offer) for points, offer in found if points is not None]
        if words:
            kept.sort(key=lambda pair: -pair[0])
        self._model.show_rows([offer for _, offer in kept])
        self.list.setVisible(bool(kept))
        self.nothing.setVisible(not kept)
        if kept:
            self.list.setCurrentIndex(self._model.index(0))
        self._tend()

    def _chosen(self) -> PairChoice | None:
        row = self.list.currentIndex().row()
        return self._model.rows[row].choice if 0 <= row < len(self._model.rows) else None

    @Slot()
    def _tend(self) -> None:
        self.load.setEnabled(self._chosen() is not None and self._chosen() != self._loaded)

    @Slot()
    def _on_load(self) -> None:
        chosen = self._chosen()
        if chosen is not None and chosen != self._loaded:
            self.hide()
            self.load_asked.emit(chosen)

    @Slot()
    def _on_unload(self) -> None:
        self.hide()
        self.unload_asked.emit()

    @Slot()
    def _on_manage(self) -> None:
        self.hide()
        self.manage_asked.emit()
