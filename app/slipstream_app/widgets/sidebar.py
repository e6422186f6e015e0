"""The sidebar: one row for each screen, and the footer below. Knows no screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import QPainter, QPalette
from PySide6.QtWidgets import (
    QFrame,
    QListView,
    QSizePolicy,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from slipstream_app import icons
from slipstream_app.theme import XS, M, S, Theme

WIDE, NARROW = 184, 56
ICON = Qt.ItemDataRole.UserRole
BADGE = Qt.ItemDataRole.UserRole + 1

Index = QModelIndex | QPersistentModelIndex


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    label: str
    icon: str
    keys: str  # in the platform's writing


class _Rows(QAbstractListModel):
    def __init__(self, rows: Sequence[Row], parent: QWidget) -> None:
        super().__init__(parent)
        self._rows = tuple(rows)
        self._badges: dict[str, int] = {}

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        row = self._rows[index.row()]
        badge = self._badges.get(row.name, 0)
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return row.label
            case Qt.ItemDataRole.AccessibleTextRole:
                return self.tr("{0}, {1} new").format(row.label, badge) if badge else row.label
            case Qt.ItemDataRole.ToolTipRole:
                return f"{row.label}  {row.keys}"
            case _ if role == ICON:
                return row.icon
            case _ if role == BADGE:
                return badge
            case _:
                return None

    def set_badge(self, name: str, count: int) -> None:
        at = next(number for number, row in enumerate(self._rows) if row.name == name)
        if self._badges.get(name, 0) != count:
            self._badges[name] = count
            self.dataChanged.emit(self.index(at), self.index(at))


class _Delegate(QStyledItemDelegate):
    def __init__(self, theme: Theme, parent: QListView) -> None:
        super().__init__(parent)
        self._theme = theme
        self.is_narrow = False

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(NARROW, self._theme.px(34))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        theme = self._theme
        state: QStyle.StateFlag = option.state  # type: ignore[attr-defined]
        rect: QRect = option.rect.adjusted(S, 2, -S, -2)  # type: ignore[attr-defined]
        is_chosen = bool(state & QStyle.StateFlag.State_Selected)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if is_chosen or state & QStyle.StateFlag.State_MouseOver:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("raised"))
            painter.drawRoundedRect(rect, 6, 6)
        if state & QStyle.StateFlag.State_HasFocus and state & QStyle.StateFlag.State_KeyboardFocusChange:
            painter.setPen(theme.color("accent"))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(rect.adjusted(1, 1, -1, -1), 6, 6)
        size = theme.px(18)
        left = rect.center().x() - size // 2 if self.is_narrow else rect.left() + S
        where = QRect(left, rect.center().y() - size // 2 + 1, size, size)
        icons.draw(theme, painter, where, index.data(ICON), "accent" if is_chosen else "muted")
        badge: int = index.data(BADGE)
        if not self.is_narrow:
            painter.setFont(theme.font(bold=is_chosen))
            painter.setPen(theme.color("text"))
            text = QRect(where.right() + S + 2, rect.top(), rect.right() - where.right() - M, rect.height())
            painter.drawText(text, Qt.AlignmentFlag.AlignVCenter, index.data())
        if badge:
            self._paint_badge(painter, rect, badge)
        painter.restore()

    def _paint_badge(self, painter: QPainter, rect: QRect, badge: int) -> None:
        theme = self._theme
        painter.setFont(theme.font(0.8, bold=True))
        words = str(badge) if badge < 100 else "99+"
        height = theme.px(16)
        width = max(height, painter.fontMetrics().horizontalAdvance(words) + S)
        top = rect.top() if self.is_narrow else rect.center().y() - height // 2 + 1
        pill = QRect(rect.right() - width - XS, top, width, height)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("accent"))
        painter.drawRoundedRect(pill, height / 2, height / 2)
        painter.setPen(theme.on("accent"))
        painter.drawText(pill, Qt.AlignmentFlag.AlignCenter, words)


class Sidebar(QFrame):
    """Says `chosen` with the name of a row. `footer` is shown below the rows."""

    chosen = Signal(str)

    def __init__(self, theme: Theme, rows: Sequence[Row], footer: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", "side")
        self._theme = theme
        self._names = [row.name for row in rows]
        self._footer = footer
        self.list = QListView()
        self.list.setAccessibleName(self.tr("Screens"))
        self.list.setFrameShape(QFrame.Shape.NoFrame)
        self.list.setMouseTracking(True)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding)
        self._rows = _Rows(rows, self)
        self._delegate = _Delegate(theme, self.list)
        self.list.setModel(self._rows)
        self.list.setItemDelegate(self._delegate)
        self.list.viewport().setAutoFillBackground(False)
        palette = self.list.palette()
        palette.setColor(QPalette.ColorRole.Base, Qt.GlobalColor.transparent)
        self.list.setPalette(palette)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, S, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.list, 1)
        column.addWidget(footer)
        self.set_narrow(False)
        self.list.selectionModel().selectionChanged.connect(self._on_selection)
        theme.changed.connect(self._on_theme)

    def set_narrow(self, is_narrow: bool) -> None:
        self._delegate.is_narrow = is_narrow
        self._footer.setProperty("narrow", is_narrow)
        self.setFixedWidth(self._theme.px(NARROW if is_narrow else WIDE))
        self.list.viewport().update()

    @property
    def is_narrow(self) -> bool:
        return self._delegate.is_narrow

    def show_as_current(self, name: str) -> None:
        """Without saying `chosen`. "": none of them."""
        self.list.selectionModel().blockSignals(True)
        if name:
            self.list.setCurrentIndex(self._rows.index(self._names.index(name)))
        else:
            self.list.clearSelection()
        self.list.selectionModel().blockSignals(False)
        self.list.viewport().update()

    def set_badge(self, name: str, count: int) -> None:
        self._rows.set_badge(name, count)

    @Slot()
    def _on_selection(self) -> None:
        """Not the current row's change: a list that gets the focus makes its first row current by itself."""
        rows = self.list.selectionModel().selectedIndexes()
        if rows:
            self.chosen.emit(self._names[rows[0].row()])

    @Slot()
    def _on_theme(self) -> None:
        self.set_narrow(self.is_narrow)
        self.list.doItemsLayout()
