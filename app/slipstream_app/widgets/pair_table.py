"""The table of pairs, with a bar of memory in each row."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt, Slot
from PySide6.QtGui import QPainter, QResizeEvent
from PySide6.QtWidgets import QHeaderView, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QTableView, QWidget

from slipstream_app.models.pairs import KEEP, PAIR, PEAK, FitWord, Index, PairFit, PairTable
from slipstream_app.theme import Theme
from slipstream_app.widgets.peak_bar import Part, paint_bar

ROOMY = 860  # pixels of the table
FIT_COLOURS = {FitWord.FITS: "ok", FitWord.TIGHT: "warn", FitWord.TOO_LARGE: "bad", FitWord.UNKNOWN: "muted"}


class PairView(QTableView):
    def __init__(self, theme: Theme, table: PairTable, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setModel(table)
        self.setAccessibleName(name)
        self.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QTableView.SelectionMode.SingleSelection)
        self.setShowGrid(False)
        self.setAlternatingRowColors(True)
        self.setFrameShape(QTableView.Shape.NoFrame)
        self.setTabKeyNavigation(False)
        self.verticalHeader().hide()
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(PAIR, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(PEAK, QHeaderView.ResizeMode.Fixed)
        self.setItemDelegateForColumn(PEAK, _PeakDelegate(theme, self))
        theme.changed.connect(self.refresh_theme)
        self.refresh_theme()

    @Slot()
    def refresh_theme(self) -> None:
        self.verticalHeader().setDefaultSectionSize(self._theme.px(34))
        self.horizontalHeader().resizeSection(PEAK, self._theme.px(230))
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    @property
    def whole_height(self) -> int:
        """With every row in sight and none beneath."""
        rows = self.model().rowCount() * self.verticalHeader().defaultSectionSize()
        return self.horizontalHeader().sizeHint().height() + rows + 2 * self.frameWidth()

    def _fit(self) -> None:
        """Where there is little room the details alone say how long a pair stays."""
        self.setColumnHidden(KEEP, self.width() < self._theme.px(ROOMY))


def parts_of(fit: PairFit, names: tuple[str, str, str, str]) -> tuple[Part, ...]:
    """`names`: of model, drafter, cache and working memory."""
    sizes = (fit.target, fit.drafter, fit.cache, fit.working)
    colours = ("model", "draft", "ngram", "muted")
    return tuple(Part(name, size, colour) for name, size, colour in zip(names, sizes, colours, strict=True))


class _PeakDelegate(QStyledItemDelegate):
    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        fit = index.data(PairTable.FIT)
        if not isinstance(fit, PairFit) or fit.word is FitWord.UNKNOWN:
            super().paint(painter, option, index)
            return
        theme = self._theme
        painter.save()
        is_chosen = bool(option.state & QStyle.StateFlag.State_Selected)  # pyright: ignore[reportAttributeAccessIssue]
        area = QRectF(option.rect)  # pyright: ignore[reportAttributeAccessIssue]
        if is_chosen:
            painter.fillRect(area, theme.color("accent"))
        area.adjust(9, 4, -9, -3)  # under the words of the head
        high = theme.px(9)
        bar = QRectF(area.left(), area.top(), area.width(), high)
        paint_bar(painter, theme, bar, parts_of(fit, ("", "", "", "")), fit.limit)
        painter.setFont(theme.font(0.82))
        painter.setPen(theme.on("accent") if is_chosen else theme.color(FIT_COLOURS[fit.word]))
        words = area.adjusted(0, high + 1, 0, 0)
        painter.drawText(words, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, str(index.data()))
        painter.restore()

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(self._theme.px(230), self._theme.px(34))
