"""A line to type in, and under it what fits, best first: the keys go to the list while the letters go to the line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QLabel,
    QLineEdit,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from slipstream_app.fuzzy import score
from slipstream_app.theme import M, S, Theme
from slipstream_app.widgets.entry import Entry

SHOWN = 60
DETAIL = Qt.ItemDataRole.UserRole
DOT = int(DETAIL) + 1

Index = QModelIndex | QPersistentModelIndex


class _Found(QAbstractListModel):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.rows: list[Entry] = []

    def show_rows(self, rows: Sequence[Entry]) -> None:
        self.beginResetModel()
        self.rows = list(rows)
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        return 0 if parent.isValid() else len(self.rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        entry = self.rows[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return entry.title
            case Qt.ItemDataRole.AccessibleTextRole:
                return f"{entry.title}, {entry.detail}" if entry.detail else entry.title
            case _ if role == DETAIL:
                return entry.detail
            case _ if role == DOT:
                return entry.dot
            case _:
                return None


class _Delegate(QStyledItemDelegate):
    def __init__(self, theme: Theme, parent: QListView) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(100, self._theme.px(30))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        theme = self._theme
        rect: QRect = option.rect  # type: ignore[attr-defined]
        state: QStyle.StateFlag = option.state  # type: ignore[attr-defined]
        is_chosen = bool(state & QStyle.StateFlag.State_Selected)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if is_chosen:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("accent"))
            painter.drawRoundedRect(rect.adjusted(2, 1, -2, -1), 6, 6)
        inner = rect.adjusted(M, 0, -M, 0)
        painter.setFont(theme.font(0.92))
        painter.setPen(theme.on("accent") if is_chosen else theme.color("muted"))
        detail: str = index.data(DETAIL) or ""
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(inner, right, detail)
        taken = painter.fontMetrics().horizontalAdvance(detail) + S
        if dot := index.data(DOT):
            wide = theme.px(8)
            area = QRect(inner.right() - taken - wide + S // 2, inner.center().y() - wide // 2 + 1, wide, wide)
            painter.setPen(theme.on("accent") if is_chosen else Qt.PenStyle.NoPen)
            painter.setBrush(theme.color(dot))
            painter.drawEllipse(area)
            taken += wide + S
        painter.setFont(theme.font())
        painter.setPen(theme.on("accent") if is_chosen else theme.color("text"))
        room = inner.width() - taken
        title = painter.fontMetrics().elidedText(index.data(), Qt.TextElideMode.ElideRight, room)
        painter.drawText(inner, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, title)
        painter.restore()


class FilterList(QWidget):
    """`find` is asked at each letter. Return or a click says `chosen`."""

    chosen = Signal(object)  # Entry
    current_changed = Signal()

    def __init__(
        self, theme: Theme, find: Callable[[str], Sequence[Entry]], nothing: str, parent: QWidget | None = None
    ) -> None:
        """`nothing`: what is said when nothing fits."""
        super().__init__(parent)
        self._find = find
        self.search = QLineEdit(clearButtonEnabled=True)
        self.list = QListView()
        self.list.setProperty("role", "list")
        self.list.setFrameShape(QListView.Shape.NoFrame)
        self.list.setUniformItemSizes(True)
        self.list.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # its keys are taken from the line
        self._model = _Found(self)
        self.list.setModel(self._model)
        self.list.setItemDelegate(_Delegate(theme, self.list))
        self.nothing = QLabel(nothing)
        self.nothing.setProperty("role", "muted")
        self.nothing.setAlignment(Qt.AlignmentFlag.AlignCenter)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(S)
        column.addWidget(self.search)
        column.addWidget(self.list, 1)
        column.addWidget(self.nothing, 1)
        self.setFocusProxy(self.search)
        self.search.textChanged.connect(self.fill)
        self.list.clicked.connect(self.choose)
        self.list.selectionModel().currentChanged.connect(self.current_changed)

    def open(self) -> None:
        """With an empty line, ready for letters."""
        self.search.clear()
        self.fill()
        self.search.setFocus()

    @property
    def rows(self) -> list[Entry]:
        return self._model.rows

    @property
    def current(self) -> Entry | None:
        row = self.list.currentIndex().row()
        return self._model.rows[row] if 0 <= row < len(self._model.rows) else None

    @Slot()
    def fill(self) -> None:
        words = self.search.text().strip()
        self._model.show_rows(ranked(words, self._find(words))[:SHOWN])
        self.list.setVisible(bool(self._model.rows))
        self.nothing.setVisible(not self._model.rows)
        if self._model.rows:
            self.list.setCurrentIndex(self._model.index(0))
        self.current_changed.emit()

    @Slot()
    def choose(self) -> None:
        if (entry := self.current) is not None:
            self.chosen.emit(entry)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        match event.key():
            case Qt.Key.Key_Down | Qt.Key.Key_Up if self._model.rows:
                step = 1 if event.key() == Qt.Key.Key_Down else -1
                row = (self.list.currentIndex().row() + step) % len(self._model.rows)
                self.list.setCurrentIndex(self._model.index(row))
            case Qt.Key.Key_Return | Qt.Key.Key_Enter:
                self.choose()
            case _:
                super().keyPressEvent(event)


def ranked(words: str, entries: Sequence[Entry]) -> list[Entry]:
    """Those that fit, best first; the order given where they fit alike. Entries found by their content stay."""
    found = [(100.0 if entry.is_match else score(words, entry.title), entry) for entry in entries]
    kept = [(points, entry) for points, entry in found if points is not None]
    kept.sort(key=lambda pair: -pair[0])
    return [entry for _, entry in kept]
