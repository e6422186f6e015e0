"""The table of pairs, with a bar of memory in each row; and a download with its bar."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import (
    QHBoxLayout,
    QHeaderView,
    QProgressBar,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from slipstream_app.models.pairs import PAIR, PEAK, DownloadState, Fetch, FitWord, Index, PairFit, PairTable
from slipstream_app.models.sizes import size_text
from slipstream_app.theme import S, Theme
from slipstream_app.widgets.panel import Panel, Words, button, wrapped
from slipstream_app.widgets.peak_bar import Part, paint_bar

FIT_COLOURS = {FitWord.FITS: "ok", FitWord.TIGHT: "warn", FitWord.TOO_LARGE: "bad", FitWord.UNKNOWN: "muted"}


def pair_view(theme: Theme, table: PairTable, name: str) -> QTableView:
    view = QTableView()
    view.setModel(table)
    view.setAccessibleName(name)
    view.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
    view.setSelectionMode(QTableView.SelectionMode.SingleSelection)
    view.setShowGrid(False)
    view.setAlternatingRowColors(True)
    view.setFrameShape(QTableView.Shape.NoFrame)
    view.setTabKeyNavigation(False)
    view.verticalHeader().hide()
    view.verticalHeader().setDefaultSectionSize(theme.px(34))
    header = view.horizontalHeader()
    header.setHighlightSections(False)
    header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
    header.setSectionResizeMode(PAIR, QHeaderView.ResizeMode.Stretch)
    header.setSectionResizeMode(PEAK, QHeaderView.ResizeMode.Fixed)
    header.resizeSection(PEAK, theme.px(230))
    view.setItemDelegateForColumn(PEAK, _PeakDelegate(theme, view))
    return view


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
        area.adjust(6, 4, -6, -3)
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


class DownloadCard(Panel):
    """One download. It goes on where it ended, also after a restart."""

    pause_asked = Signal(str)  # repository
    resume_asked = Signal(str)
    page_asked = Signal(str)  # address

    def __init__(self, theme: Theme, state: DownloadState, parent: QWidget | None = None) -> None:
        super().__init__(theme, state.repo, parent)
        self._state = state
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setFixedHeight(8)
        self.bar.setRange(0, 1000)
        self.bar.setAccessibleName(self.tr("Download of {0}").format(state.repo))
        self.words = wrapped(theme)
        self.files = Words(theme, "", "muted", scale=0.9)
        self.switch = button("")
        self.page = button(self.tr("Open page"))
        self.switch.clicked.connect(self._on_switch)
        self.page.clicked.connect(self._on_page)
        self.head.addWidget(self.page)
        self.head.addWidget(self.switch)
        row = QHBoxLayout()
        row.setSpacing(S)
        row.addWidget(self.bar, 1)
        self.body.addLayout(row)
        self.body.addWidget(self.words)
        self.body.addWidget(self.files)
        self.show_state(state)

    @property
    def state(self) -> DownloadState:
        return self._state

    @property
    def is_moving(self) -> bool:
        return self._state.fetch in (Fetch.WAITING, Fetch.LOOKING, Fetch.RUNNING, Fetch.RETRYING)

    def show_state(self, state: DownloadState) -> None:
        self._state = state
        self.bar.setValue(round(1000 * state.done / state.total) if state.total else 0)
        self.words.say(self._sentence(state), "bad" if state.fetch is Fetch.FAILED else "")
        now = [name for name, done, size in state.files if 0 < done < size]
        self.files.say(", ".join(now[:3]))
        self.files.setVisible(bool(now))
        self.switch.setVisible(not state.is_over)
        self.switch.setText(self.tr("Pause") if self.is_moving else self.tr("Resume"))
        verb = self.tr("Pause {0}") if self.is_moving else self.tr("Resume {0}")
        self.switch.setAccessibleName(verb.format(state.repo))
        self.page.setVisible(bool(state.page))

    def _sentence(self, state: DownloadState) -> str:
        have = self.tr("{0} of {1}").format(size_text(state.done), size_text(state.total)) if state.total else ""
        speed = self.tr("{0} a second").format(size_text(round(state.bytes_per_s)))
        left = "" if state.remaining_s is None else self.tr("about {0} left").format(_span(state.remaining_s))
        kept = self.tr("Paused. {0} are kept and not fetched again.").format(have) if have else self.tr("Paused")
        return {
            Fetch.WAITING: self.tr("Waiting behind another download"),
            Fetch.LOOKING: self.tr("Asking the hub what is there"),
            Fetch.RUNNING: ", ".join(words for words in (have, speed, left) if words),
            Fetch.RETRYING: ". ".join(words for words in (have, state.words) if words),
            Fetch.PAUSED: kept,
            Fetch.DONE: self.tr("Downloaded and checked"),
            Fetch.FAILED: state.words,
        }[state.fetch]

    def _on_switch(self) -> None:
        (self.pause_asked if self.is_moving else self.resume_asked).emit(self._state.repo)

    def _on_page(self) -> None:
        self.page_asked.emit(self._state.page)


def _span(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{round(seconds)} s" if minutes < 2 else f"{minutes} min" if minutes < 100 else f"{minutes / 60:.1f} h"
