"""How long a pair stays loaded while nothing is asked, as one choice."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QWidget

from slipstream_app.models.keep_alive import OFFERED, PINNED
from slipstream_app.theme import S, Theme
from slipstream_app.widgets.panel import Words


class KeepChoice(QWidget):
    chosen = Signal(object)  # minutes, PINNED, or None: as in Settings

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.box = QComboBox()
        self.box.setAccessibleName(self.tr("How long it stays loaded while nothing is asked"))
        self.box.setToolTip(self.tr("When it has been unloaded, the next request to the server loads it again."))
        self.box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.box.activated.connect(self._on_chosen)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(S)
        row.addWidget(Words(theme, self.tr("Stays loaded"), "muted"))
        row.addWidget(self.box)

    def show_value(self, own: int | None, usual: int) -> None:
        """`own`: the pair's word; `usual`: minutes of Settings, 0: it is never unloaded."""
        words = self.tr("%n minute(s) after the last request", "", usual) if usual else self.tr("always")
        rows: list[tuple[str, int | None]] = [
            (self.tr("As in Settings: {0}").format(words), None),
            (self.tr("Always: pinned"), PINNED),
        ]
        minutes: list[int] = sorted({*OFFERED, own} if own else OFFERED)
        rows += [(self.tr("%n minute(s) after the last request", "", count), count) for count in minutes]
        if rows != [(self.box.itemText(at), self.box.itemData(at)) for at in range(self.box.count())]:
            self.box.clear()
            for text, value in rows:
                self.box.addItem(text, value)
        self.box.setCurrentIndex(next(at for at, (_, value) in enumerate(rows) if value == own))

    @Slot()
    def _on_chosen(self) -> None:
        self.chosen.emit(self.box.currentData())
