"""The command palette: every action, pair, chat and setting by a few letters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, QRect, QSize, Qt, Slot
from PySide6.QtGui import QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QDialog,
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
        painter.setFont(theme.font())
        painter.setPen(theme.on("accent") if is_chosen else theme.color("text"))
        room = inner.width() - taken
        title = painter.fontMetrics().elidedText(index.data(), Qt.TextElideMode.ElideRight, room)
        painter.drawText(inner, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, title)
        painter.restore()


class Palette(QDialog):
    """`find` is asked at each letter. Enter or a click runs the chosen entry after the palette has closed."""

    def __init__(self, theme: Theme, find: Callable[[str], Sequence[Entry]], parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup | Qt.WindowType.FramelessWindowHint)
        self._theme = theme
        self._find = find
        self.setAccessibleName(self.tr("Command palette"))
        self.search = QLineEdit(placeholderText=self.tr("Do, open or find…"))
        self.search.setAccessibleName(self.tr("What to do"))
        self.list = QListView()
        self.list.setAccessibleName(self.tr("Found"))
        self.list.setProperty("role", "list")
        self.list.setFrameShape(QListView.Shape.NoFrame)
        self.list.setUniformItemSizes(True)
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._model = _Found(self)
        self.list.setModel(self._model)
        self.list.setItemDelegate(_Delegate(theme, self.list))
        self.nothing = QLabel(self.tr("Nothing has that name."))
        self.nothing.setProperty("role", "muted")
        self.nothing.setAlignment(Qt.AlignmentFlag.AlignCenter)
        column = QVBoxLayout(self)
        column.setContentsMargins(M, M, M, M)
        column.setSpacing(S)
        for widget in (self.search, self.list, self.nothing):
            column.addWidget(widget)
        self.search.textChanged.connect(self._fill)
        self.list.clicked.connect(self._run)

    def open_over(self, window: QWidget) -> None:
        self.search.clear()
        self._fill()
        width = min(self._theme.px(560), window.width() - 2 * M)
        height = min(self._theme.px(400), window.height() - 4 * M)
        self.resize(width, height)
        corner = window.mapToGlobal(window.rect().topLeft())
        self.move(corner.x() + (window.width() - width) // 2, corner.y() + self._theme.px(64))
        self.show()
        self.search.setFocus()

    @property
    def rows(self) -> list[Entry]:
        return self._model.rows

    def keyPressEvent(self, event: QKeyEvent) -> None:
        match event.key():
            case Qt.Key.Key_Down | Qt.Key.Key_Up if self._model.rows:
                step = 1 if event.key() == Qt.Key.Key_Down else -1
                row = (self.list.currentIndex().row() + step) % len(self._model.rows)
                self.list.setCurrentIndex(self._model.index(row))
            case Qt.Key.Key_Return | Qt.Key.Key_Enter:
                self._run()
            case _:
                super().keyPressEvent(event)

    @Slot()
    def _fill(self) -> None:
        words = self.search.text().strip()
        self._model.show_rows(ranked(words, self._find(words))[:SHOWN])
        self.list.setVisible(bool(self._model.rows))
        self.nothing.setVisible(not self._model.rows)
        if self._model.rows:
            self.list.setCurrentIndex(self._model.index(0))

    @Slot()
    def _run(self) -> None:
        row = self.list.currentIndex().row()
        if 0 <= row < len(self._model.rows):
            entry = self._model.rows[row]
            self.hide()
            entry.run()


def ranked(words: str, entries: Sequence[Entry]) -> list[Entry]:
    """Those that fit, best first; the order given where they fit alike. Entries found by their content stay."""
    found = [(100.0 if entry.is_match else score(words, entry.title), entry) for entry in entries]
    kept = [(points, entry) for points, entry in found if points is not None]
    kept.sort(key=lambda pair: -pair[0])
    return [entry for _, entry in kept]
