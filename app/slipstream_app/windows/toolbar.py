"""The bar above the screens: the model pill, facts of what is loaded, Stop, and the palette's button."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtGui import QKeySequence, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QSizePolicy, QToolButton, QWidget

from slipstream.events import Loading, Ready, Status, Working
from slipstream.types import ModelInfo
from slipstream_app.icons import icon
from slipstream_app.models.memory import weights_bytes
from slipstream_app.numbers import count_text, size_text
from slipstream_app.precision import precision_text
from slipstream_app.shortcuts import BY_ID
from slipstream_app.theme import M, S, Theme
from slipstream_app.widgets.load_bar import LoadBar
from slipstream_app.widgets.pill import Pill

BAR_WIDTH = 140


class _Facts(QLabel):
    """Takes what room there is; what does not fit is in the tip."""

    def __init__(self) -> None:
        super().__init__()
        self._words = ""
        self.setProperty("role", "muted")
        self.setProperty("elides", True)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    def say(self, words: str) -> None:
        self._words = words
        self.setToolTip(words)
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        self.setText(self.fontMetrics().elidedText(self._words, Qt.TextElideMode.ElideRight, self.width()))


class Toolbar(QFrame):
    """Its buttons are for whoever made it to connect."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._info: ModelInfo | None = None  # of what is shown
        self.setProperty("role", "bar")
        self.pill = Pill(theme)
        self.facts = _Facts()
        self.loading = LoadBar()
        self.cancel = QPushButton(self.tr("Cancel"))
        self.cancel.setAccessibleName(self.tr("Cancel loading"))
        self.cancel.hide()
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
        row.addWidget(self.loading)
        row.addWidget(self.facts, 1)
        row.addWidget(self.cancel)
        row.addWidget(self.stop)
        row.addWidget(self.search)
        theme.changed.connect(self._on_theme)
        self._on_theme()

    def show_status(self, status: Status) -> None:
        info = status.model if isinstance(status, Ready | Working) else None
        self.loading.show_status(status)
        self.cancel.setVisible(isinstance(status, Loading))
        if info is None:
            self.facts.say(self.loading.words)
        elif info != self._info:  # not at each request: the disk is asked
            self.facts.say(self._facts_of(info))
        self._info = info

    def _facts_of(self, info: ModelInfo) -> str:
        size = weights_bytes(Path(info.path))
        facts = (
            self.tr("Loaded: {0}").format(size_text(size)) if size else "",
            self.tr("{0} tokens of context").format(count_text(info.context)),
            info.dtype,
            "" if info.quantisation == "none" else precision_text(info.quantisation),
        )
        return " · ".join(fact for fact in facts if fact)

    @Slot()
    def _on_theme(self) -> None:
        size = self._theme.px(18)
        self.loading.setFixedWidth(self._theme.px(BAR_WIDTH))
        for button in (self.pill, self.stop, self.search):
            button.setIconSize(QSize(size, size))
