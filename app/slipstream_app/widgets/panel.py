"""A card with a title, quiet words, and live figures. Colours come from the style sheet, by the property `role`."""

from __future__ import annotations

import re

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from slipstream_app.icons import icon
from slipstream_app.numbers import GAP
from slipstream_app.restyling import restyle
from slipstream_app.theme import L, M, S, Theme

_IN_FIGURES = re.compile(r"(?<=\w)/(?=s\b)|(?<=\d)–(?=\d)")
_BEFORE_UNITS = re.compile(r"(?<=\d) (?=(?:[tT]ok\u2060?/|[kMGT]?B\b|ms\b|s\b|min\b|h\b|Wh\b|%|×))")


def set_role(widget: QWidget, role: str) -> None:
    """Give a widget another role after it was shown."""
    if widget.property("role") != role:
        widget.setProperty("role", role)
        restyle(widget)


def button(text: str, role: str = "", name: str = "") -> QPushButton:
    """`name`: for VoiceOver, where the text alone says too little."""
    made = QPushButton(text)
    made.setAutoDefault(False)
    if role:
        made.setProperty("role", role)
    if name:
        made.setAccessibleName(name)
    return made


def tool_button(theme: Theme, name: str, text: str, words: str) -> QToolButton:
    """An icon, with `text` beside it where there is one. `words` say what it does."""
    tool = QToolButton()
    tool.setProperty("role", "flat")
    tool.setIcon(icon(theme, name, "muted"))
    tool.setText(text)
    tool.setToolButtonStyle(
        Qt.ToolButtonStyle.ToolButtonTextBesideIcon if text else Qt.ToolButtonStyle.ToolButtonIconOnly
    )
    tool.setToolTip(words)
    tool.setAccessibleName(words)
    return tool


class Words(QLabel):
    """Plain text. `role` is muted, accent, ok, warn, bad, or empty.

    Where it wraps, figures stay whole: no line ends in "tok/", within a range or before a unit.
    """

    def __init__(self, theme: Theme, text: str = "", role: str = "", *, scale: float = 1.0, bold: bool = False) -> None:
        super().__init__()
        self._said = ""
        self._theme = theme
        self._scale = scale
        self._bold = bold
        self.setProperty("role", role)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.resize_text()
        self.say(text)

    def say(self, text: str, role: str | None = None) -> None:
        if text != self._said:
            self.setText(text)
        if role is not None:
            set_role(self, role)

    def text(self) -> str:
        return self._said

    def setText(self, text: str) -> None:
        self._said = text
        super().setText(self._unbroken(text) if self.wordWrap() else text)

    def setWordWrap(self, on: bool) -> None:
        super().setWordWrap(on)
        self.setText(self._said)

    def _unbroken(self, text: str) -> str:
        is_copied = bool(self.textInteractionFlags() & Qt.TextInteractionFlag.TextSelectableByMouse)
        return with_units(text) if is_copied else unbroken(text)

    def resize_text(self) -> None:
        """`Restyling` calls it when it is this label's turn."""
        self.setFont(self._theme.font(self._scale, bold=self._bold))


def wrapped(theme: Theme, text: str = "", role: str = "") -> Words:
    """Words that may run over several lines."""
    return _Wrapped(theme, text, role)


class _Wrapped(Words):
    """Asks for no more than a line at the least: Qt's own guess grows tall where there is little room."""

    def __init__(self, theme: Theme, text: str, role: str) -> None:
        super().__init__(theme, text, role)
        self.setWordWrap(True)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def minimumSizeHint(self) -> QSize:
        return QSize(60, self.fontMetrics().height())


def unbroken(text: str) -> str:
    """With a word joiner or a hard space where a line must not end. For what is not copied."""
    return with_units(_IN_FIGURES.sub("\u2060\\g<0>\u2060", text))


def with_units(text: str) -> str:
    """No line ends between a number and its unit."""
    return _BEFORE_UNITS.sub(GAP, text)


class Panel(QFrame):
    """Fill `body`; put controls into `head`, right of the title."""

    def __init__(self, theme: Theme, title: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.theme = theme
        self.setProperty("role", "card")
        self.heading = Words(theme, title, bold=True)
        self.head = QHBoxLayout()
        self.head.setSpacing(S)
        self.head.addWidget(self.heading)
        self.head.addStretch(1)
        self.body = QVBoxLayout()
        self.body.setSpacing(S)
        column = QVBoxLayout(self)
        column.setContentsMargins(L, M, L, M)
        column.setSpacing(S)
        column.addLayout(self.head)
        self.heading.setVisible(bool(title))
        column.addLayout(self.body, 1)


class Figure(QWidget):
    """One live number and what it is. Its width does not follow the digits, so nothing jitters."""

    def __init__(
        self, theme: Theme, name: str, widest: str, parent: QWidget | None = None, *, longest_name: str = ""
    ) -> None:
        """`longest_name`: where what it is changes too."""
        super().__init__(parent)
        self._theme = theme
        self._widest = widest
        self._longest_name = longest_name or name
        self.value = Words(theme, "–", scale=1.5, bold=True)
        self.value.setAccessibleName(name)
        self.name = Words(theme, name, "muted", scale=0.9)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.value)
        column.addWidget(self.name)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme.resized.connect(self.refresh_theme)
        self.refresh_theme()

    def set(self, text: str, *, is_stale: bool = False) -> None:
        self.value.say(text, "muted" if is_stale else "")
        self.value.setAccessibleDescription(text)

    @Slot()
    def refresh_theme(self) -> None:
        self.value.resize_text()
        self.name.resize_text()
        name = self.name.fontMetrics().horizontalAdvance(self._longest_name)
        wide = max(self.value.fontMetrics().horizontalAdvance(self._widest), self.name.sizeHint().width(), name)
        self.setFixedWidth(wide + M)
