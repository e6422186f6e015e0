"""Telemetry: how fast, owing to whom, and why; now, since the program's start, and over the last 30 days."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from PySide6.QtCore import QSize, QTimer, Slot
from PySide6.QtGui import QHideEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QComboBox,
    QFileDialog,
    QGridLayout,
    QHBoxLayout,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from slipstream_app.models.calibrating import Phase
from slipstream_app.models.telemetry import ALL, Figures, RoundPoint, Telemetry, rounds_csv
from slipstream_app.models.telemetry_history import history_csv
from slipstream_app.screens.base import AppContext, Screen
from slipstream_app.setting import Detail
from slipstream_app.theme import L, M, S
from slipstream_app.widgets.calibration import CalibrationPanel
from slipstream_app.widgets.charts import PositionChart, RoundStrip
from slipstream_app.widgets.live_figures import LiveFigures
from slipstream_app.widgets.memory_panel import MemoryPanel
from slipstream_app.widgets.panel import Words, button
from slipstream_app.widgets.plots import CostChart, SpeedChart
from slipstream_app.widgets.saving import save_text
from slipstream_app.widgets.scrolling import Scrolling
from slipstream_app.widgets.sections import Sections
from slipstream_app.widgets.speed_tables import SessionTable, SpeedHistory, source_name
from slipstream_app.widgets.speed_verdict import SpeedVerdict

logger = logging.getLogger(__name__)

REPAINT_MS = 100
SHOWN_ROUNDS = 400
NARROW = 680  # below it the charts stand in one column
SHOWN_CHARTS = {Detail.SIMPLE: 1, Detail.STANDARD: 3, Detail.EXPERT: 4}
NOW, SESSION, HISTORY = range(3)


class TelemetryScreen(Screen):
    """Paints ten times a second while something moves and it can be seen; no timer runs otherwise."""

    NAME: ClassVar[str] = "telemetry"

    def __init__(self, app: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(app, parent)
        self._telemetry: Telemetry = app.telemetry
        self._painted = -1
        self.calibrating = app.calibrating
        self.calibrating.measured.connect(self._on_measured)
        self.calibrating.changed.connect(self._on_calibrating)
        self._shows_costs = False  # somebody just had them measured, whatever the detail
        self.paints = 0
        self._timer = QTimer(self, interval=REPAINT_MS)
        self._timer.timeout.connect(self._on_tick)

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
        self.session_table = SessionTable()
        self.history = SpeedHistory(app.theme, app.speeds)
        for page in (self._now_page(), _with_margin(self.session_table), _with_margin(self.history)):
            self.pages.addWidget(page)
        bar.setContentsMargins(0, 0, L, 0)
        column = QVBoxLayout(self)
        column.setContentsMargins(L, M, 0, 0)
        column.setSpacing(M)
        column.addLayout(bar)
        column.addWidget(self.pages, 1)
        app.bus.opened.connect(self._wake)
        app.bus.status_changed.connect(self._wake)
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
        self.calibration = CalibrationPanel(theme, self.calibrating)
        self.memory = MemoryPanel(theme, self.app.session)
        self.verdict = SpeedVerdict(theme)

        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(0, 0, 0, L)
        column.setSpacing(M)
        column.addWidget(self.figures)
        column.addWidget(self.state)
        column.addWidget(self.verdict)
        column.addLayout(self._grid)
        column.addWidget(self.calibration)
        column.addWidget(self.memory)
        column.addStretch(1)
        self._now = Scrolling(inside, self.tr("Now"), margin=L)
        return self._now

    def _arrange(self) -> None:
        """Two columns of charts where there is room for them."""
        is_narrow = self.width() < NARROW * self.app.theme.zoom / 100
        charts = (self.chart, self.positions, self.strip, self.costs)
        shown = len(charts) if self._shows_costs else SHOWN_CHARTS[self.app.settings.detail]
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

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.left()

    def left(self) -> None:
        self._timer.stop()
        self.memory.rest()

    def visited(self, argument: object) -> None:
        """`argument`: "calibrate" starts a calibration."""
        self._wake()
        if argument == "calibrate":
            self.calibrate()

    def commands(self) -> Mapping[str, Callable[[], object]]:
        return {"model.calibrate": self.calibrate}

    def calibrate(self) -> None:
        """Measure the loaded model, in sight."""
        self.sections.choose(NOW)
        self._now.ensureWidgetVisible(self.calibration)
        self.calibrating.start()

    @Slot()
    def _on_measured(self) -> None:
        self._shows_costs = True
        self._arrange()
        self.refresh()

    @Slot()
    def _on_calibrating(self) -> None:
        """What was measured earlier has been read from its file, or belongs to a pair that is gone."""
        if self.isVisible() and self.calibrating.phase is not Phase.RUNNING and not self.freeze.isChecked():
            self.refresh()

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
            self.session_table.show_session(self._telemetry)
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
        kept = self.calibrating.kept
        self.verdict.judge(figures, self._telemetry.plain_tps, None if kept is None else kept.curves)
        self.costs.show_points(self.app.session.costs, self.app.session.depth)
        self.memory.refresh()

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

    def _fill_sources(self) -> None:
        known = {self.source.itemData(row) for row in range(self.source.count())}
        for source in self._telemetry.sources:
            if source not in known:
                self.source.addItem(source_name(source), source)

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

    @Slot()
    def _on_export(self) -> None:
        name = "slipstream-history.csv" if self.sections.index == HISTORY else "slipstream-rounds.csv"
        file, _ = QFileDialog.getSaveFileName(self, self.tr("Export"), name, self.tr("CSV (*.csv)"))
        if file:
            self.export_to(Path(file))

    def export_to(self, file: Path) -> None:
        """The rounds of the chosen source, or the history when that is shown."""
        is_history = self.sections.index == HISTORY
        text = history_csv(self.history.days) if is_history else rounds_csv(self._telemetry.rounds(self._chosen))
        save_text(self.app.banners, file, text)


def _clock(at_s: float) -> str:
    return datetime.fromtimestamp(at_s).strftime("%H:%M")


def _with_margin(page: QWidget) -> QWidget:
    """Beside the window's edge, at which the scroll bar of the first page stands."""
    made = QWidget()
    column = QVBoxLayout(made)
    column.setContentsMargins(0, 0, L, 0)
    column.addWidget(page)
    return made
