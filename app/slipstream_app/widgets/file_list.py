"""What a pair is made of: its files with their sizes, folder by folder, behind a switch."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QPlainTextEdit, QToolButton, QVBoxLayout, QWidget

from slipstream_app.models.pairs import Half
from slipstream_app.numbers import size_text
from slipstream_app.theme import XS, M, Theme

MOST_LINES = 9  # seen at once
_INDENT = "    "


class FileList(QWidget):
    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._halves: tuple[Half, ...] = ()
        self.switch = QToolButton()
        self.switch.setProperty("role", "flat")
        self.switch.setCheckable(True)
        self.switch.setArrowType(Qt.ArrowType.RightArrow)
        self.switch.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.switch.toggled.connect(self._on_switch)
        self.files = QPlainTextEdit()
        self.files.setProperty("role", "field")
        self.files.setReadOnly(True)
        self.files.setTabChangesFocus(True)
        self.files.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.files.setAccessibleName(self.tr("Files of this pair"))
        self.files.hide()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(XS)
        column.addWidget(self.switch, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self.files)
        theme.resized.connect(self._fit)

    def show_halves(self, halves: Sequence[Half]) -> None:
        self.setVisible(any(half.files for half in halves))
        if tuple(halves) == self._halves:
            return
        self._halves = tuple(halves)
        every = [size for half in halves for _, size in half.files]
        self.switch.setText(self.tr("%n file(s), {0}", "", len(every)).format(size_text(sum(every))))
        lines: list[str] = []
        for half in halves:
            lines.append(str(half.folder))
            lines += [f"{_INDENT}{name}\t{size_text(size)}" for name, size in half.files]
        self.files.setPlainText("\n".join(lines))
        self._fit()

    @Slot(bool)
    def _on_switch(self, is_open: bool) -> None:
        self.switch.setArrowType(Qt.ArrowType.DownArrow if is_open else Qt.ArrowType.RightArrow)
        self.files.setVisible(is_open)

    @Slot()
    def _fit(self) -> None:
        """As high as its lines, within reason; the sizes under each other, behind the longest name."""
        metrics = self.files.fontMetrics()
        names = (f"{_INDENT}{name}" for half in self._halves for name, _ in half.files)
        self.files.setTabStopDistance(max(map(metrics.horizontalAdvance, names), default=0) + self._theme.px(M))
        lines = min(self.files.blockCount(), MOST_LINES)
        self.files.setFixedHeight(lines * metrics.lineSpacing() + self._theme.px(18))
