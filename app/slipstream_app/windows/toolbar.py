"""The bar above the screens: the model pill, facts of what is loaded, Stop, and the palette's button."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QLocale, QSize, Slot
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QToolButton, QWidget

from slipstream.events import Ready, Status, Working
from slipstream.types import ModelInfo
from slipstream_app.icons import icon
from slipstream_app.models.memory import weights_bytes
from slipstream_app.models.sizes import size_text
from slipstream_app.shortcuts import BY_ID
from slipstream_app.theme import M, S, Theme
from slipstream_app.widgets.pill import Pill


class Toolbar(QFrame):
    """Its buttons are for whoever made it to connect."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setProperty("role", "bar")
        self.pill = Pill(theme)
        self.facts = QLabel()
        self.facts.setProperty("role", "muted")
        self.stop = QPushButton(self.tr("Stop"))
        self.stop.setIcon(icon(theme, "square"))
        self.stop.setToolTip(self.tr("Stop what is being written"))
        self.search = QToolButton()
        self.search.setProperty("role", "flat")
        self.search.setIcon(icon(theme, "search", "muted"))
        self.search.setAccessibleName(self.tr("Command palette"))
        keys = QKeySequence(BY_ID["help.palette"].keys[0]).toString(QKeySequence.SequenceFormat.NativeText)
        self.search.setToolTip(self.tr("Command palette  {0}").format(keys))
        row = QHBoxLayout(self)
        row.setContentsMargins(M, S, M, S)
        row.setSpacing(M)
        row.addWidget(self.pill)
        row.addWidget(self.facts, 1)
        row.addWidget(self.stop)
        row.addWidget(self.search)
        theme.changed.connect(self._on_theme)
        self._on_theme()

    def show_status(self, status: Status) -> None:
        match status:
            case Ready(info) | Working(info):
                self.facts.setText(self._facts_of(info))
            case _:
                self.facts.clear()

    def _facts_of(self, info: ModelInfo) -> str:
        size = weights_bytes(Path(info.path))
        facts = (
            self.tr("Loaded: {0}").format(size_text(size)) if size else "",
            self.tr("{0} tokens of context").format(QLocale().toString(info.context)),
            info.dtype,
            "" if info.quantisation == "none" else info.quantisation,
        )
        return " · ".join(fact for fact in facts if fact)

    @Slot()
    def _on_theme(self) -> None:
        size = self._theme.px(18)
        for button in (self.pill, self.stop, self.search):
            button.setIconSize(QSize(size, size))
