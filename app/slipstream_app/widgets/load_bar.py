"""How far a pair is loaded, by bytes that were read; while nobody knows, a bar without an end."""

from __future__ import annotations

from PySide6.QtWidgets import QProgressBar, QWidget

from slipstream.events import Loading, Status
from slipstream_app.numbers import part_text

HEIGHT = 8
STEPS = 1000  # bytes are more than a progress bar can count


class LoadBar(QProgressBar):
    """Seen while a pair is loading."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.words = ""  # how much was read, of how much
        self.setTextVisible(False)
        self.setFixedHeight(HEIGHT)
        self.setAccessibleName(self.tr("Loading"))
        self.hide()

    def show_status(self, status: Status) -> None:
        loading = status if isinstance(status, Loading) else Loading("")
        done, total = loading.bytes_done, loading.bytes_total
        self.words = part_text(done, total) if total else ""
        self.setRange(0, STEPS if total else 0)
        self.setValue(STEPS * done // total if total else 0)
        self.setAccessibleDescription(self.words)
        self.setToolTip(self.words)
        self.setVisible(isinstance(status, Loading))
