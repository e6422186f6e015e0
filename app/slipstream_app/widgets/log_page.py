"""The app's log: by level, by words, and the last error for the clipboard. Read only while it is seen."""

from __future__ import annotations

import logging

from PySide6.QtCore import QTimer, Slot
from PySide6.QtGui import QGuiApplication, QHideEvent, QShowEvent
from PySide6.QtWidgets import QCheckBox, QComboBox, QHBoxLayout, QLineEdit, QPlainTextEdit, QVBoxLayout, QWidget

from slipstream_app import log
from slipstream_app.theme import S, Theme
from slipstream_app.widgets.panel import button

LOOK_MS = 500
LINES = 500


class LogPage(QWidget):
    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._count = -1
        self.level = QComboBox()
        self.level.setAccessibleName(self.tr("Level"))
        for name, level in (
            (self.tr("All"), logging.INFO),
            (self.tr("Warnings and errors"), logging.WARNING),
            (self.tr("Errors"), logging.ERROR),
        ):
            self.level.addItem(name, level)
        self.level.currentIndexChanged.connect(self.show_anew)
        self.search = QLineEdit()
        self.search.setPlaceholderText(self.tr("Search the log"))
        self.search.setAccessibleName(self.tr("Search the log"))
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self.show_anew)
        self.follow = QCheckBox(self.tr("Follow"))
        self.follow.setChecked(True)
        self.copy_error = button(self.tr("Copy last error"))
        self.copy_error.clicked.connect(self._on_copy_error)
        self.lines = QPlainTextEdit()
        self.lines.setReadOnly(True)
        self.lines.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.lines.setTabChangesFocus(True)
        self.lines.setAccessibleName(self.tr("Log"))
        self.lines.setFont(theme.code_font(0.88))
        row = QHBoxLayout()
        row.setSpacing(S)
        row.addWidget(self.level)
        row.addWidget(self.search, 1)
        row.addWidget(self.follow)
        row.addWidget(self.copy_error)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addLayout(row)
        column.addWidget(self.lines, 1)
        self.timer = QTimer(self, interval=LOOK_MS)
        self.timer.timeout.connect(self._show)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.show_anew()
        self.timer.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.timer.stop()

    @Slot()
    def show_anew(self) -> None:
        self._count = -1
        self._show()

    @Slot()
    def _show(self) -> None:
        if log.ring.count == self._count:
            return
        self._count = log.ring.count
        words = self.search.text().lower()
        found = [line for line in log.ring.lines(int(self.level.currentData())) if words in line.lower()]
        bar = self.lines.verticalScrollBar()
        at = bar.value()
        self.lines.setPlainText("\n".join(found[-LINES:]))
        bar.setValue(bar.maximum() if self.follow.isChecked() else at)
        self.copy_error.setEnabled(bool(log.ring.lines(logging.ERROR)))

    @Slot()
    def _on_copy_error(self) -> None:
        errors = log.ring.lines(logging.ERROR)
        if errors:
            QGuiApplication.clipboard().setText(errors[-1])
