"""What the loaded model and this process take of the memory, and what the machine runs under."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QTimer, Slot
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QWidget

from slipstream.store.paths import data_dir
from slipstream_app import mac
from slipstream_app.bridge.session import Session
from slipstream_app.models.conditions import Conditions, Level
from slipstream_app.models.conditions import read as read_conditions
from slipstream_app.models.memory import held_bytes, weights_bytes
from slipstream_app.models.work import Work
from slipstream_app.numbers import size_text
from slipstream_app.theme import Theme
from slipstream_app.widgets.panel import Panel, Words
from slipstream_app.widgets.peak_bar import Part, StackBar

LOOK_MS = 5000


class MemoryPanel(Panel):
    """Asks the system about heat, pressure and swap while it can be seen."""

    def __init__(self, theme: Theme, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(theme, self.tr("Memory"), parent)
        self._session = session
        self._machine = mac.machine(data_dir())
        self._weights: tuple[str, int] = ("", 0)
        self._work = Work(self)
        self.bar = StackBar(theme, self.tr("Memory"))
        self.conditions = Words(theme, "", "muted")
        self.body.addWidget(self.bar)
        self.body.addWidget(self.conditions)
        self._timer = QTimer(self, interval=LOOK_MS)
        self._timer.timeout.connect(self._ask)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._ask()
        self._timer.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.rest()

    def rest(self) -> None:
        """Ask nothing more until it is shown again."""
        self._timer.stop()

    def refresh(self) -> None:
        """With a model: all that the engine counts. Without: what this program takes."""
        held, prompts = self._session.held, self._session.prompts
        status = None if prompts is None else prompts.status
        kept = 0 if status is None else status.ram_bytes
        if held is None:
            self._show_unloaded(kept)
            return
        working = max(0, held.active - held.target - held.drafters - held.caches - kept)
        parts = (
            Part(self.tr("weights"), held.target, "model"),
            Part(self.tr("drafter"), held.drafters, "draft"),
            Part(self.tr("KV of running answers"), held.caches, "accent"),
            Part(self.tr("cache of prompts"), kept, "ngram"),
            Part(self.tr("working memory"), working, "muted"),
            Part(self.tr("free"), held.free, "raised"),
        )
        self.bar.show_parts(parts, sum(part.bytes for part in parts), self.tr("limit"))

    def _show_unloaded(self, kept: int) -> None:
        info = self._session.info
        path = "" if info is None else info.path
        if path != self._weights[0]:
            self._weights = (path, weights_bytes(Path(path)) if path else 0)
        weights = self._weights[1]
        limit = self._machine.gpu_bytes
        rest = max(0, held_bytes() - weights - kept)
        parts = (
            Part(self.tr("weights"), weights, "model"),
            Part(self.tr("cache of prompts"), kept, "ngram"),
            Part(self.tr("this program"), rest, "muted"),
            Part(self.tr("free"), max(0, limit - weights - kept - rest), "raised"),
        )
        self.bar.show_parts(parts, limit, self.tr("limit"))

    @Slot()
    def _ask(self) -> None:
        self._work.do(read_conditions, self._show, lambda _: None, "slipstream-conditions")

    def _show(self, found: Conditions) -> None:
        self.refresh()  # what an answer held is given back a moment after its end
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
