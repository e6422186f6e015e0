"""The server's requests as a table, and the figures that go with them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal, Slot

from slipstream_app.bridge.server import ServerHost, ServerOn, ServerState
from slipstream_app.numbers import brief_text, number_text, share_text

if TYPE_CHECKING:  # it imports starlette, and this table is there before the window
    from slipstream.server.request_log import RequestRecord

KEPT = 200
Index = QModelIndex | QPersistentModelIndex

TIME, CLIENT, PATH, PROMPT, CACHED, OUT, TPS, STATUS = range(8)


class RequestTable(QAbstractTableModel):
    """Newest first, 200 at most. The numbers begin again when the server is switched off and on."""

    changed = Signal(object)  # RequestRecord, on the main thread
    _heard = Signal(object)  # the same, from the server's loop

    def __init__(self, server: ServerHost, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._server = server
        self._records: list[RequestRecord] = []
        self._heard.connect(self.take)

    @Slot(object)
    def on_server(self, state: ServerState) -> None:
        """Follow the log of a server that has just been switched on."""
        if isinstance(state, ServerOn) and (backend := self._server.backend) is not None:
            backend.requests.follow = self._heard.emit
            for record in backend.requests.records:
                self.take(record)

    def record(self, row: int) -> RequestRecord:
        return self._records[row]

    def records(self) -> Sequence[RequestRecord]:
        return tuple(self._records)

    def clients_since(self, at_s: float) -> int:
        """How many different ones had something generated that began or ended after this wall clock's time."""
        return len({one.client for one in self._records if one.jobs and one.at_s + (one.seconds or 0) >= at_s})

    @Slot(object)
    def take(self, record: RequestRecord) -> None:
        for row, known in enumerate(self._records):
            if (known.number, known.at_s) == (record.number, record.at_s):
                if record == known or (known.seconds is not None and record.seconds is None):
                    return  # read from the log before its signal came
                self._records[row] = record
                self.dataChanged.emit(self.index(row, 0), self.index(row, STATUS))
                self.changed.emit(record)
                return
        self.beginInsertRows(QModelIndex(), 0, 0)
        self._records.insert(0, record)
        self.endInsertRows()
        if len(self._records) > KEPT:
            self.beginRemoveRows(QModelIndex(), KEPT, len(self._records) - 1)
            del self._records[KEPT:]
            self.endRemoveRows()
        self.changed.emit(record)

    def clear(self) -> None:
        self.beginResetModel()
        self._records.clear()
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own default
        return 0 if parent.isValid() else len(self._records)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else 8

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.TextAlignmentRole:
            return _side(section)
        if orientation != Qt.Orientation.Horizontal or role != Qt.ItemDataRole.DisplayRole:
            return None
        return (
            self.tr("Time"),
            self.tr("Client"),
            self.tr("Path"),
            self.tr("Prompt"),
            self.tr("Cached"),
            self.tr("Out"),
            self.tr("tok/s"),
            self.tr("Status"),
        )[section]

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        record = self._records[index.row()]
        column = index.column()
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            text = self._text(record, column)
            if role == Qt.ItemDataRole.AccessibleTextRole:
                return f"{self.headerData(column, Qt.Orientation.Horizontal)}: {text}"
            return text
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _side(column)
        if role == Qt.ItemDataRole.ToolTipRole and record.error:
            return record.error
        return None

    def _text(self, record: RequestRecord, column: int) -> str:
        timings = record.timings
        texts = {
            TIME: datetime.fromtimestamp(record.at_s).strftime("%H:%M:%S"),
            CLIENT: record.client,
            PATH: record.path,
            STATUS: self.status_text(record),
        }
        if timings is not None:
            texts[PROMPT] = brief_text(timings.prompt_tokens)
            texts[CACHED] = "" if record.cached_share is None else share_text(record.cached_share)
            texts[OUT] = brief_text(timings.output_tokens)
            texts[TPS] = number_text(timings.decode_tps) if timings.decode_tps else ""
        return texts.get(column, "")

    def status_text(self, record: RequestRecord) -> str:
        """In words where a number alone would say too little."""
        if record.status is None:
            return self.tr("waiting")
        if record.seconds is None:
            return self.tr("{0}, answering").format(record.status)
        if record.reason == "cancelled":
            return self.tr("{0}, client left").format(record.status)
        if record.error:
            return f"{record.status}, {record.reason}"
        if record.dropped:
            return self.tr("{0}, shortened").format(record.status)
        return str(record.status)


def _side(column: int) -> Qt.AlignmentFlag:
    """Figures to the right, under their heads."""
    is_figure = column in (PROMPT, CACHED, OUT, TPS)
    return (Qt.AlignmentFlag.AlignRight if is_figure else Qt.AlignmentFlag.AlignLeft) | Qt.AlignmentFlag.AlignVCenter
