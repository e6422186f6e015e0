"""The chats at the left: search, new, by day; rename and delete."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPoint, QRect, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QFont, QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QInputDialog,
    QLineEdit,
    QListView,
    QMenu,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from slipstream_app.icons import icon
from slipstream_app.models.chat_list import ChatList, Entry, Heading
from slipstream_app.theme import RADIUS, XS, S, Theme
from slipstream_app.widgets.panel import Words, button

SEARCH_MS = 120  # after the last key


class _Delegate(QStyledItemDelegate):
    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        row = index.data(Qt.ItemDataRole.UserRole)
        lines = 2.4 if isinstance(row, Entry) and row.snippet else 1.0
        return QSize(80, int(self._theme.px(20) * lines) + self._theme.px(8))

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        row = index.data(Qt.ItemDataRole.UserRole)
        theme = self._theme
        rect: QRect = option.rect  # pyright: ignore[reportAttributeAccessIssue]
        state: QStyle.StateFlag = option.state  # pyright: ignore[reportAttributeAccessIssue]
        inner = rect.adjusted(S, 0, -S, 0)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if isinstance(row, Heading):
            painter.setFont(theme.font(0.85, bold=True))
            painter.setPen(theme.color("muted"))
            painter.drawText(inner.adjusted(0, 0, 0, -2), Qt.AlignmentFlag.AlignBottom, index.data())
        elif isinstance(row, Entry):
            is_selected = bool(state & QStyle.StateFlag.State_Selected)
            if is_selected or state & QStyle.StateFlag.State_MouseOver:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(theme.color("raised"))
                painter.drawRoundedRect(rect.adjusted(2, 1, -2, -1), RADIUS - 2, RADIUS - 2)
            if is_selected and state & QStyle.StateFlag.State_HasFocus:
                painter.setPen(theme.color("accent"))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRoundedRect(rect.adjusted(2, 1, -3, -2), RADIUS - 2, RADIUS - 2)
            self._draw_entry(painter, inner, row, is_selected)
        painter.restore()

    def _draw_entry(self, painter: QPainter, inner: QRect, row: Entry, is_selected: bool) -> None:
        theme = self._theme
        line = theme.px(20)
        font = theme.font(bold=is_selected)
        self._draw_line(painter, inner if not row.snippet else inner.adjusted(0, 4, 0, line + 4 - inner.height()),
                        font, "text", row.title)  # fmt: skip
        if row.snippet:
            self._draw_line(painter, inner.adjusted(0, line + 4, 0, -4), theme.font(0.88), "muted", row.snippet)

    def _draw_line(self, painter: QPainter, rect: QRect, font: QFont, color: str, text: str) -> None:
        painter.setFont(font)
        painter.setPen(self._theme.color(color))
        shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, rect.width())
        painter.drawText(rect, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, shown)


class _List(QListView):
    delete_pressed = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Backspace, Qt.Key.Key_Delete):
            self.delete_pressed.emit()
        else:
            super().keyPressEvent(event)


class SessionsList(QFrame):
    new_asked = Signal()
    chosen = Signal(int, object)  # chat, and the message that a search found
    renamed = Signal(int, str)
    delete_asked = Signal(int)
    export_asked = Signal(int)

    def __init__(self, theme: Theme, model: ChatList, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._model = model
        self._current: int | None = None
        self.setProperty("role", "side")
        self.search = QLineEdit()
        self.search.setPlaceholderText(self.tr("Search"))
        self.search.setAccessibleName(self.tr("Search all chats"))
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self._on_words)
        self.search.returnPressed.connect(self._on_return)
        self.new = button(self.tr("New chat"))
        self.new.setIcon(icon(theme, "plus"))
        self.new.clicked.connect(self.new_asked)
        self.list = _List(self)
        self.list.setUniformItemSizes(True)  # but for what a search finds; before it has a thousand rows to lay out
        self.list.setItemDelegate(_Delegate(theme, self.list))
        self.list.setFrameShape(QFrame.Shape.NoFrame)
        self.list.setProperty("role", "bare")
        self.list.setAccessibleName(self.tr("Chats"))
        self.list.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setMouseTracking(True)
        self.list.setModel(model)
        self.list.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.list.customContextMenuRequested.connect(self._on_menu)
        self.list.clicked.connect(self._on_click)
        self.list.activated.connect(self._on_click)
        self.list.delete_pressed.connect(self._on_delete)
        self.empty = Words(theme, role="muted")
        self.empty.setWordWrap(True)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        column = QVBoxLayout(self)
        column.setContentsMargins(S, S, S, S)
        column.setSpacing(S)
        column.addWidget(self.search)
        column.addWidget(self.new)
        column.addWidget(self.empty)
        column.addWidget(self.list, 1)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SEARCH_MS)
        self._timer.timeout.connect(self._search)
        model.modelReset.connect(self._on_reset)
        theme.changed.connect(self.list.doItemsLayout)
        column.setStretchFactor(self.list, 1)
        self.setMinimumWidth(XS)
        self._on_reset()

    def show_current(self, chat: int | None) -> None:
        self._current = chat
        index = self._model.index_of(chat)
        if index.isValid():
            self.list.setCurrentIndex(index)
        else:
            self.list.clearSelection()
            self.list.setCurrentIndex(QModelIndex())

    @Slot()
    def focus_search(self) -> None:
        self.search.setFocus()
        self.search.selectAll()

    @Slot(str)
    def _on_words(self, words: str) -> None:
        if words.strip():
            self._timer.start()
        else:
            self._search()

    @Slot()
    def _search(self) -> None:
        self._timer.stop()
        # Asking each of a thousand rows for its height takes tenths of a second.
        self.list.setUniformItemSizes(not self.search.text().strip())
        self._model.search(self.search.text())
        self._on_reset()

    @Slot()
    def _on_return(self) -> None:
        self._search()
        first = next((row for row in self._model.rows if isinstance(row, Entry)), None)
        if first is not None:
            self.chosen.emit(first.chat, first.message)

    @Slot()
    def _on_reset(self) -> None:
        is_empty = self._model.rowCount() == 0
        self.empty.setVisible(is_empty)
        self.empty.say(self.tr("Nothing found") if self._model.is_search else self.tr("No chats yet"))
        if not self._model.is_search:
            self.show_current(self._current)

    @Slot(QModelIndex)
    def _on_click(self, index: QModelIndex) -> None:
        row = index.data(Qt.ItemDataRole.UserRole)
        if isinstance(row, Entry):
            self.chosen.emit(row.chat, row.message)

    def _entry(self) -> Entry | None:
        row = self.list.currentIndex().data(Qt.ItemDataRole.UserRole)
        return row if isinstance(row, Entry) else None

    @Slot()
    def _on_delete(self) -> None:
        if (entry := self._entry()) is not None:
            self.delete_asked.emit(entry.chat)

    @Slot(QPoint)
    def _on_menu(self, at: QPoint) -> None:
        row = self.list.indexAt(at).data(Qt.ItemDataRole.UserRole)
        if not isinstance(row, Entry):
            return
        menu = QMenu(self)
        menu.addAction(self.tr("Rename…"), lambda: self.rename(row))
        menu.addAction(self.tr("Export…"), lambda: self.export_asked.emit(row.chat))
        menu.addSeparator()
        menu.addAction(self.tr("Delete"), lambda: self.delete_asked.emit(row.chat))
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self.list.viewport().mapToGlobal(at))

    def rename(self, row: Entry) -> None:
        title, is_given = QInputDialog.getText(self, self.tr("Rename chat"), self.tr("Title"), text=row.title)
        if is_given:
            self.renamed.emit(row.chat, title)
