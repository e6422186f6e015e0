"""The figures of a chat's answers while they are written, beside the chat."""

from __future__ import annotations

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from slipstream_app.bridge.bus import Bus
from slipstream_app.models.telemetry import Telemetry
from slipstream_app.theme import L, M, Theme
from slipstream_app.widgets.charts import PositionChart, RoundStrip
from slipstream_app.widgets.live_figures import LiveFigures
from slipstream_app.widgets.panel import Words, button, tool_button
from slipstream_app.widgets.scrolling import Scrolling
from slipstream_app.widgets.speed_verdict import SpeedVerdict

REPAINT_MS = 250
SHOWN_ROUNDS = 120
WIDTH = 300
SOURCE = "chat"


class TelemetryDrawer(QFrame):
    """Paints four times a second while an answer is written and it can be seen; no timer runs otherwise."""

    closed = Signal()
    all_asked = Signal()  # the whole screen

    def __init__(self, theme: Theme, bus: Bus, telemetry: Telemetry, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._telemetry = telemetry
        self.setProperty("role", "drawer")
        title = Words(theme, self.tr("Telemetry of chats"), bold=True)
        self.close_button = tool_button(theme, "x", "", self.tr("Close telemetry"))
        self.close_button.clicked.connect(self.closed)
        head = QHBoxLayout()
        head.addWidget(title)
        head.addStretch(1)
        head.addWidget(self.close_button)
        self.figures = LiveFigures(theme)
        self.verdict = SpeedVerdict(theme)
        self.strip = RoundStrip(theme)
        self.positions = PositionChart(theme)
        self.all = button(self.tr("All telemetry"))
        self.all.clicked.connect(self.all_asked)
        body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(L, M, L, L)
        column.setSpacing(M)
        column.addLayout(head)
        for widget in (self.figures, self.verdict, self.strip, self.positions, self.all):
            column.addWidget(widget)
        column.addStretch(1)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(Scrolling(body, self.tr("Telemetry of chats")))
        self._timer = QTimer(self, interval=REPAINT_MS)
        self._timer.timeout.connect(self._on_tick)
        bus.opened.connect(self._wake)
        theme.resized.connect(self.refresh_theme)
        self.refresh_theme()

    @property
    def is_awake(self) -> bool:
        return self._timer.isActive()

    @Slot()
    def _wake(self, *_: object) -> None:
        if self.isVisible():
            self.refresh()
            self._timer.start()

    @Slot()
    def _on_tick(self) -> None:
        self.refresh()
        if not self._telemetry.running:
            self._timer.stop()

    def refresh(self) -> None:
        figures = self._telemetry.figures(SOURCE)
        self.figures.show_source(self._telemetry, SOURCE)
        self.verdict.judge(figures, self._telemetry.plain_tps)
        nothing = ""
        if not figures.rounds:
            nothing = self.tr("No round yet.")
        elif not figures.drafted:
            nothing = self.tr("Plain decoding: nothing is drafted.")
        for chart in (self.strip, self.positions):
            chart.say(nothing)
        self.positions.show_shares(figures.by_position)
        rounds = list(self._telemetry.rounds(SOURCE))[-SHOWN_ROUNDS:]
        self.strip.show_rounds(rounds, figures.by_letter)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._wake()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()

    @Slot()
    def refresh_theme(self) -> None:
        theme = self._theme
        self.setFixedWidth(theme.px(WIDTH))
        self.figures.fit(theme.px(WIDTH) - 2 * L)
