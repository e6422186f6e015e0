"""A table of figures to read: fixed heads, numbers to the right, no grid."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, Qt
from PySide6.QtWidgets import QHeaderView, QTableWidget, QTableWidgetItem


class FigureTable(QTableWidget):
    """The first columns, `naming` of them, name the row."""

    def __init__(self, heads: Sequence[str], name: str, *, naming: int = 1) -> None:
        self._naming = naming
        super().__init__(0, len(heads))
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        self.horizontalHeader().setHighlightSections(False)
        self.verticalHeader().hide()
        self.setShowGrid(False)
        self.setAlternatingRowColors(True)
        self.setFrameShape(QTableWidget.Shape.NoFrame)
        self.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QTableWidget.SelectionBehavior.SelectRows)
        self.setTabKeyNavigation(False)
        self.setAccessibleName(name)
        for column, head in enumerate(heads):
            item = QTableWidgetItem(head)
            item.setTextAlignment(self._side(column))
            self.setHorizontalHeaderItem(column, item)

    def show_rows(self, rows: Sequence[tuple[str, ...]]) -> None:
        self.setRowCount(len(rows))
        for row, values in enumerate(rows):
            for column, text in enumerate(values):
                item = self.item(row, column)
                if item is None:
                    item = QTableWidgetItem()
                    item.setTextAlignment(self._side(column))
                    self.setItem(row, column, item)
                if item.text() != text:
                    item.setText(text)

    def _side(self, column: int) -> Qt.AlignmentFlag:
        side = Qt.AlignmentFlag.AlignLeft if column < self._naming else Qt.AlignmentFlag.AlignRight
        return side | Qt.AlignmentFlag.AlignVCenter

    def changeEvent(self, event: QEvent) -> None:
        """Rows grow with the text."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.FontChange:
            self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() * 7 // 4)
