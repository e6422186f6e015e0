"""The figures of what runs now, or of what ran last: on the Telemetry screen and beside a chat."""

from __future__ import annotations

from PySide6.QtWidgets import QGridLayout, QWidget

from slipstream_app.models.telemetry import ALL, Telemetry
from slipstream_app.numbers import GAP, number_text, share_text
from slipstream_app.theme import L, Theme
from slipstream_app.widgets.panel import Figure


class LiveFigures(QWidget):
    """Greyed while nothing is written."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.speed = Figure(theme, self.tr("tok/s"), "0000.0")
        self.per_round = Figure(theme, self.tr("tokens per round"), "00.00")
        self.accepted = Figure(theme, self.tr("of drafts accepted"), share_text(1))
        cached = self.tr("to first token, cached")
        self.ttft = Figure(theme, self.tr("to first token"), "000.0 s", longest_name=cached)
        self.cached = Figure(theme, self.tr("of prompts cached"), share_text(1))
        self.all = (self.speed, self.per_round, self.accepted, self.ttft, self.cached)
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(L)

    def fit(self, width: int) -> None:
        """In as many columns as there is room for."""
        widest = max(figure.width() for figure in self.all) + L
        needed = sum(figure.width() + L for figure in self.all)
        per_row = len(self.all) if needed <= width else max(1, min(3, width // widest))
        for number, figure in enumerate(self.all):
            self._grid.addWidget(figure, *divmod(number, per_row))
        self._grid.setColumnStretch(len(self.all), 1)

    def show_source(self, telemetry: Telemetry, source: str = ALL) -> None:
        is_idle = not telemetry.running
        figures, tps = telemetry.figures(source), telemetry.live_tps(source)
        last = figures.last
        per_round = figures.tokens_per_round
        self.speed.set(number_text(tps), is_stale=is_idle)
        self.per_round.set(number_text(per_round, 2), is_stale=is_idle)
        self.accepted.set(share_text(figures.accepted_share), is_stale=is_idle)
        self.ttft.set("–" if last is None else f"{number_text(last.ttft_s, 2)}{GAP}s", is_stale=is_idle)
        self.ttft.name.say(
            self.tr("to first token, cached") if last and last.reused_tokens else self.tr("to first token")
        )
        self.cached.set(share_text(figures.cached_share), is_stale=is_idle)
