"""Speeds as tables: this session by source, and the last days by day and source."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, Slot
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from slipstream_app.models.telemetry import ALL, Telemetry
from slipstream_app.models.telemetry_history import KEPT_DAYS, DayRow, TelemetryHistory
from slipstream_app.numbers import count_text, number_text, share_text
from slipstream_app.theme import M, Theme
from slipstream_app.widgets.figure_table import FigureTable
from slipstream_app.widgets.panel import Words, button


class SessionTable(FigureTable):
    """Since the program's start."""

    def __init__(self) -> None:
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
        super().__init__(heads, self.tr("This session by source"))

    def show_session(self, telemetry: Telemetry) -> None:
        rows: list[tuple[str, ...]] = []
        for source in (*telemetry.sources, ALL):
            figures = telemetry.figures(source)
            rows.append(
                (
                    source_name(source) if source else self.tr("All"),
                    count_text(figures.requests),
                    count_text(figures.prompt_tokens),
                    share_text(figures.cached_share),
                    count_text(figures.output_tokens),
                    number_text(figures.tokens_per_round, 2),
                    share_text(figures.accepted_share),
                    number_text(None if figures.last is None else figures.last.decode_tps),
                )
            )
        self.show_rows(rows)


class SpeedHistory(QWidget):
    """The days that are kept, and what clears them."""

    def __init__(self, theme: Theme, speeds: TelemetryHistory, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._speeds = speeds
        self.days: tuple[DayRow, ...] = ()
        heads = (
            self.tr("Day"),
            self.tr("Source"),
            self.tr("Requests"),
            self.tr("Tokens out"),
            self.tr("tok/s, median"),
            self.tr("tok/s, slow tenth"),
            self.tr("Cached"),
        )
        self.table = FigureTable(heads, self.tr("History by day and source"), naming=2)
        self.note = Words(theme, "", "muted")
        self.clear = button(self.tr("Clear…"), name=self.tr("Clear the history"))
        self.clear.clicked.connect(self._on_clear)
        foot = QHBoxLayout()
        foot.addWidget(self.note, 1)
        foot.addWidget(self.clear)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, M)
        column.addWidget(self.table, 1)
        column.addLayout(foot)
        speeds.read.connect(self._on_read)

    @Slot(object)
    def _on_read(self, days: tuple[DayRow, ...]) -> None:
        self.days = days
        rows = [
            (
                row.day.isoformat(),
                source_name(row.source),
                count_text(row.requests),
                count_text(row.tokens),
                number_text(row.tps_median),
                number_text(row.tps_p10),
                share_text(row.cached_share),
            )
            for row in days
        ]
        self.table.show_rows(rows)
        self.clear.setText(self.tr("Clear…"))
        self.clear.setEnabled(bool(days))
        kept = self.tr("Kept for {0} days, on this machine alone. No text is kept.").format(KEPT_DAYS)
        self.note.say(kept if days else self.tr("Nothing yet. {0}").format(kept))

    @Slot()
    def _on_clear(self) -> None:
        """The second press does it."""
        sure = self.tr("Really clear")
        if self.clear.text() == sure:
            self._speeds.clear()
        else:
            self.clear.setText(sure)


def source_name(source: str) -> str:
    """In the window's language; a client's own name as it is."""
    return {
        "chat": QCoreApplication.translate("Sources", "Chat"),
        "race": QCoreApplication.translate("Sources", "Race"),
        "verify": QCoreApplication.translate("Sources", "Verify"),
        "self-test": QCoreApplication.translate("Sources", "Self-test"),
        "client": QCoreApplication.translate("Sources", "API client"),
    }.get(source, source)
