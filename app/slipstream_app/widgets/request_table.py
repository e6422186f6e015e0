"""The last requests, and all that is known of the chosen one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QModelIndex, Qt, Slot
from PySide6.QtWidgets import QHeaderView, QPlainTextEdit, QScrollArea, QSplitter, QTableView, QVBoxLayout, QWidget

from slipstream_app.models.requests import PATH, RequestTable
from slipstream_app.numbers import count_text, number_text
from slipstream_app.theme import Theme
from slipstream_app.widgets.panel import Words, wrapped

if TYPE_CHECKING:
    from slipstream.server.request_log import RequestRecord


class RequestsView(QWidget):
    def __init__(self, theme: Theme, table: RequestTable, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._table = table
        self.view = _view(table)
        self.view.setAccessibleName(self.tr("Requests, newest first"))
        self.nothing = Words(theme, self.tr("No request yet. They appear here as clients ask."), "muted")
        self.nothing.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.detail = wrapped(theme)
        self.detail.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.detail.setAccessibleName(self.tr("Details of the chosen request"))
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setTabChangesFocus(True)
        self.text.setAccessibleName(self.tr("What the client sent"))
        self.text.hide()
        pane = QWidget()
        inside = QVBoxLayout(pane)
        inside.setContentsMargins(0, 0, 0, 0)
        inside.addWidget(self.detail)
        inside.addWidget(self.text, 1)
        inside.addStretch(0)
        split = QSplitter(Qt.Orientation.Vertical)
        split.addWidget(self.view)
        area = QScrollArea()
        area.setWidget(pane)
        area.setWidgetResizable(True)
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        split.addWidget(area)
        split.setStretchFactor(0, 3)
        split.setStretchFactor(1, 2)
        split.setSizes([300, 200])
        split.setChildrenCollapsible(False)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.nothing)
        column.addWidget(split, 1)
        self._split = split
        self.view.selectionModel().currentRowChanged.connect(self._on_row)
        table.changed.connect(self._on_changed)
        self._theme = theme
        theme.resized.connect(self._fit_rows)
        self._fit_rows()
        self.refresh()

    @Slot()
    def _fit_rows(self) -> None:
        self.view.verticalHeader().setDefaultSectionSize(self._theme.px(30))

    @Slot(object)
    def _on_changed(self, _: object) -> None:
        self.refresh()

    def refresh(self) -> None:
        is_empty = self._table.rowCount() == 0
        self.nothing.setVisible(is_empty)
        self._split.setVisible(not is_empty)
        index = self.view.currentIndex()
        self._show(self._table.record(index.row()) if index.isValid() else None)

    @Slot(QModelIndex, QModelIndex)
    def _on_row(self, current: QModelIndex, _: QModelIndex) -> None:
        self._show(self._table.record(current.row()) if current.isValid() else None)

    def _show(self, record: RequestRecord | None) -> None:
        self.detail.say(self._describe(record))
        text = None if record is None else record.text
        self.text.setVisible(text is not None)
        if text is not None and self.text.toPlainText() != text:
            self.text.setPlainText(text)

    def _describe(self, record: RequestRecord | None) -> str:
        if record is None:
            return self.tr("Choose a request to see more of it.")
        lines = [f"{record.method} {record.path}: {self._table.status_text(record)}"]
        lines.append(
            self.tr("From {0}, {1}").format(record.address, record.agent or self.tr("which does not say who it is"))
        )
        timings = record.timings
        if timings is not None:
            read = self.tr("Prompt %Ln token(s), {0} of them from the cache", "", timings.prompt_tokens)
            rounds = self.tr("in %Ln round(s)", "", timings.rounds)
            made = self.tr("%Ln token(s) out {0}", "", timings.output_tokens).format(rounds)
            lines.append(f"{read.format(count_text(timings.reused_tokens))}; {made}")
            lines.append(
                self.tr("First token after {0} s, then {1} tok/s, {2} tokens per round").format(
                    number_text(timings.ttft_s, 2),
                    number_text(timings.decode_tps),
                    number_text(timings.tokens_per_round, 2),
                )
            )
        if record.reason:
            why = (
                self.tr("the client left, or the server was stopped") if record.reason == "cancelled" else record.error
            )
            lines.append(self.tr("Ended: {0}").format(record.reason) + (f" ({why})" if why else ""))
        if record.dropped:
            lines.append(
                self.tr(
                    "The prompt did not fit: its oldest %Ln message(s) were not given to the model.", "", record.dropped
                )
            )
        if record.ignored:
            lines.append(self.tr("Ignored fields: {0}").format(", ".join(record.ignored)))
        if record.text is None:
            lines.append(self.tr("Its text was not kept."))
        return "\n".join(lines)


def _view(table: RequestTable) -> QTableView:
    view = QTableView()
    view.setModel(table)
    view.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
    view.setSelectionMode(QTableView.SelectionMode.SingleSelection)
    view.setShowGrid(False)
    view.setAlternatingRowColors(True)
    view.setFrameShape(QTableView.Shape.NoFrame)
    view.setTabKeyNavigation(False)
    view.verticalHeader().hide()
    header = view.horizontalHeader()
    header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
    header.setSectionResizeMode(PATH, QHeaderView.ResizeMode.Stretch)
    header.setHighlightSections(False)
    return view
