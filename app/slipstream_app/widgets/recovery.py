"""The recovery card: the engine has faulted or stands still; why, probably, and what can be done about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from slipstream.errors import SlipstreamError
from slipstream_app.icons import icon
from slipstream_app.theme import L, M, S, Theme

LOG_LINES = 20


class Cause(StrEnum):
    MEMORY = "memory"
    METAL = "metal"
    FILE = "file"
    STUCK = "stuck"
    UNKNOWN = "unknown"


_FILE_CODES = {"model_not_found", "model_incomplete", "unsupported_model", "pair_mismatch"}
_MEMORY_WORDS = ("out of memory", "insufficient memory", "bad_alloc", "memoryerror", "unable to allocate", "malloc")


def cause_of(error: SlipstreamError) -> Cause:
    """A guess from the error's code and words."""
    words = error.message.casefold()
    if error.code in _FILE_CODES:
        return Cause.FILE
    if error.code == "wont_fit" or any(sign in words for sign in _MEMORY_WORDS):
        return Cause.MEMORY
    if "metal" in words or "command buffer" in words:
        return Cause.METAL
    return Cause.UNKNOWN


class RecoveryCard(QFrame):
    reload_asked = Signal()
    safe_asked = Signal()
    report_asked = Signal()
    choose_asked = Signal()

    def __init__(self, theme: Theme, log_lines: Callable[[], Sequence[str]], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._log_lines = log_lines
        self.cause: Cause | None = None
        self.setProperty("role", "card")
        self._mark = QLabel()
        self.heading = QLabel()
        self.text = QLabel(wordWrap=True)
        self.text.setTextFormat(Qt.TextFormat.PlainText)
        self.text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.kept = QLabel(self.tr("Finished text is kept."), wordWrap=True)
        self.kept.setProperty("role", "muted")
        self.log = QPlainTextEdit(readOnly=True)
        self.log.setAccessibleName(self.tr("Last lines of the log"))
        self.log.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.reload = QPushButton(self.tr("Reload"))
        self.reload.setProperty("role", "primary")
        self.safe = QPushButton(self.tr("Safe mode"))
        self.safe.setToolTip(self.tr("Without a drafter, with a context of 4,096 tokens"))
        self.choose = QPushButton(self.tr("Another pair…"))
        self.report = QPushButton(self.tr("Save report…"))
        self.details = QPushButton(self.tr("Details"))
        self.details.setCheckable(True)
        head = QHBoxLayout()
        head.setSpacing(S)
        head.addWidget(self._mark)
        head.addWidget(self.heading, 1)
        row = QHBoxLayout()
        row.setSpacing(S)
        for button in (self.reload, self.safe, self.choose, self.report, self.details):
            row.addWidget(button)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(L, M, L, M)
        column.setSpacing(S)
        column.addLayout(head)
        column.addWidget(self.text)
        column.addWidget(self.kept)
        column.addLayout(row)
        column.addWidget(self.log)
        self.reload.clicked.connect(self.reload_asked)
        self.safe.clicked.connect(self.safe_asked)
        self.choose.clicked.connect(self.choose_asked)
        self.report.clicked.connect(self.report_asked)
        self.details.toggled.connect(self._on_details)
        theme.changed.connect(self._on_theme)
        self._on_theme()
        self.log.hide()
        self.hide()

    def show_fault(self, error: SlipstreamError, *, is_safe: bool) -> None:
        """`is_safe`: it was in safe mode already."""
        self.cause = cause_of(error)
        self.heading.setText(
            {
                Cause.MEMORY: self.tr("The model ran out of memory"),
                Cause.METAL: self.tr("The graphics processor gave up"),
                Cause.FILE: self.tr("The model could not be loaded"),
            }.get(self.cause, self.tr("The model has stopped"))
        )
        self._open(error.message, self.tr("Reload"), can_be_safe=not is_safe and self.cause is not Cause.FILE)

    def show_stall(self, seconds: int) -> None:
        self.cause = Cause.STUCK
        self.heading.setText(self.tr("The model does not answer"))
        text = self.tr("Nothing has moved for %n seconds. Restart it; its answers so far are kept.", "", seconds)
        self._open(text, self.tr("Restart"), can_be_safe=True)

    def _open(self, text: str, first: str, *, can_be_safe: bool) -> None:
        text = text[:1].upper() + text[1:]
        self.text.setText(text if text.endswith((".", "!", "?")) else f"{text}.")
        self.reload.setText(first)
        self.safe.setVisible(can_be_safe)
        self.log.setPlainText("\n".join(self._log_lines()))
        self.setAccessibleName(f"{self.heading.text()}. {text}")
        self.details.setChecked(False)
        self.show()

    @Slot(bool)
    def _on_details(self, is_open: bool) -> None:
        self.log.setVisible(is_open)

    @Slot()
    def _on_theme(self) -> None:
        size = self._theme.px(20)
        self._mark.setPixmap(icon(self._theme, "circle-alert", "bad").pixmap(size, size))
        self.heading.setFont(self._theme.font(1.15, bold=True))
        self.log.setFont(self._theme.code_font(0.85))
        self.log.setFixedHeight(self._theme.px(140))
