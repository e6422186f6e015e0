"""The chats of the sidebar, by day, or what a search found."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from math import inf

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from slipstream_app.history import History

Index = QModelIndex | QPersistentModelIndex


class Age(Enum):
    TODAY = auto()
    YESTERDAY = auto()
    WEEK = auto()
    MONTH = auto()
    OLDER = auto()


@dataclass(frozen=True, slots=True)
class Heading:
    age: Age


@dataclass(frozen=True, slots=True)
class Entry:
    chat: int
    title: str
    snippet: str = ""
    message: int | None = None


Row = Heading | Entry


class ChatList(QAbstractListModel):
    """Rows are headings and chats. `UserRole` gives the Row."""

    def __init__(self, history: History, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._history = history
        self._words = ""
        self._rows: list[Row] = []
        self.refresh()

    def search(self, words: str) -> None:
        self._words = words if words.strip() else ""
        self.refresh()

    @property
    def is_search(self) -> bool:
        return bool(self._words)

    def refresh(self) -> None:
        rows = self._found() if self._words else self._by_day()
        if rows == self._rows:
            return
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()

    def _found(self) -> list[Row]:
        hits = self._history.search(self._words)
        return [Entry(hit.chat, hit.title, hit.snippet, hit.message) for hit in hits]

    def _by_day(self) -> list[Row]:
        ages = _ages(datetime.date.today())
        rows: list[Row] = []
        begin_s, age = next(ages)
        last: Age | None = None
        for chat in self._history.chats():  # newest first
            while chat.updated_s < begin_s:
                begin_s, age = next(ages)
            if age is not last:
                rows.append(Heading(age))
            last = age
            rows.append(Entry(chat.id, chat.title))
        return rows

    @property
    def rows(self) -> Sequence[Row]:
        return self._rows

    def index_of(self, chat: int | None) -> QModelIndex:
        """The first row of a chat; invalid when it has none."""
        for at, row in enumerate(self._rows):
            if isinstance(row, Entry) and row.chat == chat:
                return self.index(at)
        return QModelIndex()

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        row = self._rows[index.row()]
        match role, row:
            case Qt.ItemDataRole.UserRole, _:
                return row
            case ((Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.AccessibleTextRole), Entry()):
                return f"{row.title}: {row.snippet}" if row.snippet else row.title
            case Qt.ItemDataRole.ToolTipRole, Entry():
                return row.title
            case ((Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.AccessibleTextRole), Heading()):
                return self.heading(row.age)
            case _:
                return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        if index.isValid() and isinstance(self._rows[index.row()], Heading):
            return Qt.ItemFlag.NoItemFlags
        return super().flags(index)

    def heading(self, age: Age) -> str:
        words = {
            Age.TODAY: self.tr("Today"),
            Age.YESTERDAY: self.tr("Yesterday"),
            Age.WEEK: self.tr("Last 7 days"),
            Age.MONTH: self.tr("Last 30 days"),
            Age.OLDER: self.tr("Older"),
        }
        return words[age]


def _ages(today: datetime.date) -> Iterator[tuple[float, Age]]:
    """When each began, the latest first."""
    for days, age in ((0, Age.TODAY), (1, Age.YESTERDAY), (7, Age.WEEK), (30, Age.MONTH)):
        begin = datetime.datetime.combine(today - datetime.timedelta(days=days), datetime.time.min)
        yield begin.timestamp(), age
    yield -inf, Age.OLDER
