"""Telemetry: how fast, owing to whom, and why; now, since the program's start, and over the last 30 days."""

from __future__ import annotations

import logging
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from PySide6.QtCore import QSize, Qt, QTimer, Slot
from PySide6.QtGui import QHideEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QComboBox,
    QFileDialog,
    QGridLayout,
    QHBoxLayout,
    QHeaderView,
    QScrollArea,
    QStackedWidget,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from slipstream.store.paths import data_dir
from slipstream_app import mac
from slipstream_app.models.conditions import Conditions, Level
from slipstream_app.models.conditions import read as read_conditions
from slipstream_app.models.memory import peak_bytes, weights_bytes
from slipstream_app.models.sizes import share_text, size_text
from slipstream_app.models.telemetry import ALL, Figures, RoundPoint, Telemetry, rounds_csv
from slipstream_app.models.telemetry_history import KEPT_DAYS, DayRow, history_csv
from slipstream_app.models.work import Work
from slipstream_app.screens.base import AppContext, Screen
from slipstream_app.settings import Detail
from slipstream_app.theme import L, M, S
from slipstream_app.widgets.charts import PositionChart, RoundStrip
from slipstream_app.widgets.live_figures import LiveFigures
from slipstream_app.widgets.panel import Panel, Words, button
from slipstream_app.widgets.peak_bar import Part, StackBar
from slipstream_app.widgets.plots import CostChart, SpeedChart
from slipstream_app.widgets.saving import save_text
from slipstream_app.widgets.sections import Sections
from slipstream_app.widgets.speed_verdict import SpeedVerdict

logger = logging.getLogger(__name__)

REPAINT_MS = 100
SHOWN_ROUNDS = 400
NARROW = 680  # below it the charts stand in one column
CONDITIONS_MS = 5000
SHOWN_CHARTS = {Detail.SIMPLE: 1, Detail.STANDARD: 3, Detail.EXPERT: 4}
NOW, SESSION, HISTORY = range(3)


class TelemetryScreen(Screen):
    """Paints ten times a second while something moves and it can be seen; no timer runs otherwise."""

    NAME: ClassVar[str] = "telemetry"

    def __init__(self, app: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(app, parent)
        self._telemetry: Telemetry = app.telemetry
        self._painted = -1
        self._days: tuple[DayRow, ...] = ()
        self._weights: tuple[str, int] = ("", 0)
        self._machine = mac.machine(data_dir())
        self.paints = 0
        self._timer = QTimer(self, interval=REPAINT_MS)
        self._timer.timeout.connect(self._on_tick)
        self._work = Work(self)
        self._conditions_timer = QTimer(self, interval=CONDITIONS_MS)
        self._conditions_timer.timeout.connect(self._ask_conditions)

        self.sections = Sections(self.tr("Period"), (self.tr("Now"), self.tr("Session"), self.tr("History")))
        self.sections.chosen.connect(self._on_section)
        self.source = QComboBox()
        self.source.setAccessibleName(self.tr("Source"))
        self.source.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.source.addItem(self.tr("All sources"), ALL)
        self.source.currentIndexChanged.connect(self._on_source)
        self.freeze = button(self.tr("Freeze"))
        self.freeze.setCheckable(True)
        self.freeze.toggled.connect(self._on_freeze)
        self.export = button(self.tr("Export CSV…"))
        self.export.clicked.connect(self._on_export)
        bar = QHBoxLayout()
        bar.setSpacing(S)
        bar.addWidget(self.sections)
        bar.addStretch(1)
        for widget in (self.source, self.freeze, self.export):
            bar.addWidget(widget)

        self.pages = QStackedWidget()
        for page in (self._now_page(), self._session_page(), self._history_page()):
            self.pages.addWidget(page)
        column = QVBoxLayout(self)
        column.setContentsMargins(L, M, L, 0)
        column.setSpacing(M)
        column.addLayout(bar)
        column.addWidget(self.pages, 1)
        app.bus.opened.connect(self._wake)
        app.bus.status_changed.connect(self._wake)
        app.speeds.read.connect(self._on_history)
        app.settings.changed.connect(self._on_setting)
        self._arrange()

    @property
    def title(self) -> str:
        return self.tr("Telemetry")

    # The pages.

    def _now_page(self) -> QWidget:
        theme = self.app.theme
        self.figures = LiveFigures(theme)
        self.state = Words(theme, "", "muted")
        self.chart = SpeedChart(theme)
        self.positions = PositionChart(theme)
        self.strip = RoundStrip(theme)
        self.costs = CostChart(theme)
        self._grid = QGridLayout()
        self._grid.setSpacing(M)
        self.memory = StackBar(theme, self.tr("Memory"))
        memory = Panel(theme, self.tr("Memory"))
        memory.body.addWidget(self.memory)
        self.conditions = Words(theme, "", "muted")
        memory.body.addWidget(self.conditions)
        self.verdict = SpeedVerdict(theme)

        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(0, 0, 0, L)
        column.setSpacing(M)
        column.addWidget(self.figures)
        column.addWidget(self.state)
        column.addWidget(self.verdict)
        column.addLayout(self._grid)
        column.addWidget(memory)
        column.addStretch(1)
        area = QScrollArea()
        area.setWidget(inside)
        area.setWidgetResizable(True)
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setAccessibleName(self.tr("Now"))
        return area

    def _session_page(self) -> QWidget:
        heads = (
            self.tr("Source"),
            self.tr("Requests"),
            self.tr("Prompt tokens"),
            self.tr("Cached"),
            self.tr("Tokens out"),
            self.tr("Per round"),
            self.tr("Accepted"),
            self.tr("Last tok/s"),
        )
        self.session_table = _table(heads, self.tr("This session by source"))
        return self.session_table

    def _history_page(self) -> QWidget:
        heads = (
            self.tr("Day"),
            self.tr("Source"),
            self.tr("Requests"),
            self.tr("Tokens out"),
            self.tr("tok/s, median"),
            self.tr("tok/s, slow tenth"),
            self.tr("Cached"),
        )
        self.history_table = _table(heads, self.tr("History by day and source"))
        self.history_note = Words(self.app.theme, "", "muted")
        self.clear = button(self.tr("Clear…"), name=self.tr("Clear the history"))
        self.clear.clicked.connect(self._on_clear)
        foot = QHBoxLayout()
        foot.addWidget(self.history_note, 1)
        foot.addWidget(self.clear)
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, M)
        column.addWidget(self.history_table, 1)
        column.addLayout(foot)
        return page

    def _arrange(self) -> None:
        """Two columns of charts where there is room for them."""
        is_narrow = self.width() < NARROW * self.app.theme.zoom / 100
        shown = SHOWN_CHARTS[self.app.settings.detail]
        charts = (self.chart, self.positions, self.strip, self.costs)
        for number, chart in enumerate(charts):
            row, column = (number, 0) if is_narrow else divmod(number, 2)
            is_last_alone = not is_narrow and number == shown - 1 and column == 0
            self._grid.addWidget(chart, row, column, 1, 2 if is_last_alone else 1)
            chart.setVisible(number < shown)
        self._grid.setColumnStretch(0, 3)
        self._grid.setColumnStretch(1, 0 if is_narrow else 2)
        self.figures.fit(self.width() - 2 * L)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def minimumSizeHint(self) -> QSize:
        return QSize(360, 240)

    # When to paint.

    @Slot(str)
    def _on_setting(self, key: str) -> None:
        if key == "general/detail":
            self._arrange()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._wake()
        self._ask_conditions()
        self._conditions_timer.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.left()

    def left(self) -> None:
        self._timer.stop()
        self._conditions_timer.stop()

    def visited(self, argument: object) -> None:
        self._wake()

    @property
    def is_awake(self) -> bool:
        return self._timer.isActive()

    @Slot()
    def _wake(self, *_: object) -> None:
        if self.isVisible() and not self.freeze.isChecked() and not self._timer.isActive():
            self._timer.start()
            self._on_tick()

    @Slot()
    def _on_tick(self) -> None:
        moved = self._telemetry.version != self._painted
        line = self._telemetry.speed_line(self._chosen)
        if moved or line:
            self.refresh()
        if not line and not self._telemetry.running:
            self.refresh()
            self._timer.stop()  # until a job is opened

    @property
    def _chosen(self) -> str:
        return str(self.source.currentData() or ALL)

    @Slot()
    def refresh(self) -> None:
        """Show what is known now."""
        self.paints += 1
        self._painted = self._telemetry.version
        self._fill_sources()
        if self.pages.currentIndex() == SESSION:
            self._show_session()
            return
        if self.pages.currentIndex() == HISTORY:
            return
        chosen = self._chosen
        figures = self._telemetry.figures(chosen)
        self.figures.show_source(self._telemetry, chosen)
        self.state.say(self._state_words())
        self.chart.show_points(self._telemetry.speed_line(chosen), self._telemetry.plain_tps)
        rounds = list(self._telemetry.rounds(chosen))[-SHOWN_ROUNDS:]
        self._show_rounds(figures, rounds)
        self.verdict.judge(figures, self._telemetry.plain_tps)
        self.costs.show_points(self.app.session.costs)
        self._show_memory()

    def _state_words(self) -> str:
        if self.freeze.isChecked():
            return self.state.text()
        reading = [job.read for job in self._telemetry.running.values() if not job.tokens and job.read[1]]
        if reading:
            return self.tr("Reading {0} of {1} prompt tokens").format(*reading[0])
        if self._telemetry.running:
            return self.tr("%n request(s) under way", "", len(self._telemetry.running))
        since = self._telemetry.idle_since_s
        if since is None:
            return self.tr("Nothing was generated yet. Ask something in Chat, or run a Race.")
        return self.tr("Idle since {0}. These are the last figures.").format(_clock(since))

    def _show_rounds(self, figures: Figures, rounds: list[RoundPoint]) -> None:
        if not figures.rounds:
            self.positions.say(self.tr("No round yet."))
            self.strip.say(self.tr("No round yet."))
            return
        nothing_drafted = "" if figures.drafted else self.tr("Plain decoding: nothing is drafted.")
        self.positions.say(nothing_drafted)
        self.strip.say(nothing_drafted)
        self.positions.show_shares(figures.by_position)
        self.strip.show_rounds(rounds, figures.by_letter)

    def _show_memory(self) -> None:
        info, prompts = self.app.session.info, self.app.session.prompts
        path = "" if info is None else info.path
        if path != self._weights[0]:
            self._weights = (path, weights_bytes(Path(path)) if path else 0)
        weights = self._weights[1]
        status = None if prompts is None else prompts.status
        kept = 0 if status is None else status.ram_bytes
        rest = max(0, peak_bytes() - weights - kept)
        parts = (
            Part(self.tr("weights"), weights, "model"),
            Part(self.tr("kept prompts"), kept, "ngram"),
            Part(self.tr("rest of this process, peak"), rest, "draft"),
        )
        self.memory.show_parts(parts, self._machine.gpu_bytes, self.tr("limit"))

    # Heat, pressure, swap.

    @Slot()
    def _ask_conditions(self) -> None:
        self._work.do(read_conditions, self._show_conditions, lambda _: None, "slipstream-conditions")

    def _show_conditions(self, found: Conditions) -> None:
        levels = {Level.NOMINAL: self.tr("nominal"), Level.RAISED: self.tr("raised"), Level.HIGH: self.tr("high")}
        told: list[str] = []
        if found.thermal is not None:
            told.append(self.tr("Heat: {0}").format(levels[found.thermal]))
        if found.pressure is not None:
            told.append(self.tr("Memory pressure: {0}").format(levels[found.pressure]))
        if found.swap_bytes is not None:
            told.append(self.tr("Swap: {0}").format(size_text(found.swap_bytes)))
        if found.on_battery:
            told.append(self.tr("On battery"))
        is_calm = found.is_calm and found.pressure in (None, Level.NOMINAL)
        self.conditions.say(" · ".join(told), "muted" if is_calm else "warn")
        self.conditions.setVisible(bool(told))

    def _show_session(self) -> None:
        rows: list[tuple[str, ...]] = []
        for source in (*self._telemetry.sources, ALL):
            figures = self._telemetry.figures(source)
            rows.append(
                (
                    self.source_name(source) if source else self.tr("All"),
                    f"{figures.requests:,}",
                    f"{figures.prompt_tokens:,}",
                    share_text(figures.cached_share),
                    f"{figures.output_tokens:,}",
                    _number(figures.tokens_per_round, "{:.2f}"),
                    share_text(figures.accepted_share),
                    "–" if figures.last is None else f"{figures.last.decode_tps:.1f}",
                )
            )
        _fill(self.session_table, rows)

    def source_name(self, source: str) -> str:
        return {
            "chat": self.tr("Chat"),
            "race": self.tr("Race"),
            "verify": self.tr("Verify"),
            "client": self.tr("API client"),
        }.get(source, source)

    def _fill_sources(self) -> None:
        known = {self.source.itemData(row) for row in range(self.source.count())}
        for source in self._telemetry.sources:
            if source not in known:
                self.source.addItem(self.source_name(source), source)

    # What the user does.

    @Slot(int)
    def _on_section(self, index: int) -> None:
        self.pages.setCurrentIndex(index)
        self.source.setEnabled(index == NOW)
        self.freeze.setEnabled(index == NOW)
        if index == HISTORY:
            self.app.speeds.ask()
        self.refresh()

    @Slot()
    def _on_source(self) -> None:
        self.refresh()

    @Slot(bool)
    def _on_freeze(self, is_frozen: bool) -> None:
        self.freeze.setText(self.tr("Go on") if is_frozen else self.tr("Freeze"))
        if is_frozen:
            self._timer.stop()
            self.state.say(self.tr("Frozen at {0}").format(datetime.now().strftime("%H:%M:%S")))
        else:
            self._wake()

    @Slot(object)
    def _on_history(self, days: tuple[DayRow, ...]) -> None:
        self._days = days
        rows = [
            (
                row.day.isoformat(),
                self.source_name(row.source),
                f"{row.requests:,}",
                f"{row.tokens:,}",
                _number(row.tps_median, "{:.1f}"),
                _number(row.tps_p10, "{:.1f}"),
                share_text(row.cached_share),
            )
            for row in days
        ]
        _fill(self.history_table, rows)
        self.clear.setText(self.tr("Clear…"))
        self.clear.setEnabled(bool(days))
        kept = self.tr("Kept for {0} days, on this machine alone. No text is kept.").format(KEPT_DAYS)
        self.history_note.say(kept if days else self.tr("Nothing yet. {0}").format(kept))

    @Slot()
    def _on_clear(self) -> None:
        """The second press does it."""
        sure = self.tr("Really clear")
        if self.clear.text() == sure:
            self.app.speeds.clear()
        else:
            self.clear.setText(sure)

    @Slot()
    def _on_export(self) -> None:
        name = "slipstream-history.csv" if self.sections.index == HISTORY else "slipstream-rounds.csv"
        file, _ = QFileDialog.getSaveFileName(self, self.tr("Export"), name, self.tr("CSV (*.csv)"))
        if file:
            self.export_to(Path(file))

    def export_to(self, file: Path) -> None:
        """The rounds of the chosen source, or the history when that is shown."""
        is_history = self.sections.index == HISTORY
        text = history_csv(self._days) if is_history else rounds_csv(self._telemetry.rounds(self._chosen))
        save_text(self.app.banners, file, text)


def _table(heads: tuple[str, ...], name: str) -> QTableWidget:
    table = QTableWidget(0, len(heads))
    table.setHorizontalHeaderLabels(list(heads))
    table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
    table.horizontalHeader().setHighlightSections(False)
    table.verticalHeader().hide()
    table.setShowGrid(False)
    table.setAlternatingRowColors(True)
    table.setFrameShape(QTableWidget.Shape.NoFrame)
    table.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
    table.setSelectionBehavior(QTableWidget.SelectionBehavior.SelectRows)
    table.setTabKeyNavigation(False)
    table.setAccessibleName(name)
    return table


def _fill(table: QTableWidget, rows: list[tuple[str, ...]]) -> None:
    table.setRowCount(len(rows))
    for row, values in enumerate(rows):
        for column, text in enumerate(values):
            item = table.item(row, column)
            if item is None:
                item = QTableWidgetItem()
                if column:
                    item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                table.setItem(row, column, item)
            if item.text() != text:
                item.setText(text)


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else form.format(value)


def _clock(at_s: float) -> str:
    return datetime.fromtimestamp(at_s).strftime("%H:%M")
