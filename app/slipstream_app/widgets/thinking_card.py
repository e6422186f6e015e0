"""A model's thoughts, folded away: how long, how many tokens, and the text for those who want it."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtWidgets import QToolButton, QWidget

from slipstream_app.icons import icon
from slipstream_app.numbers import number_text
from slipstream_app.theme import XS, L, Theme
from slipstream_app.widgets.block import Part
from slipstream_app.widgets.prose import Prose


class ThinkingCard(Part):
    toggled = Signal(bool)  # by the user

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self.head = QToolButton(self)
        self.head.setProperty("role", "flat")
        self.head.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.head.clicked.connect(self._on_click)
        self.body = Prose(theme, parent=self)
        self.body.setAccessibleName(self.tr("Thoughts"))
        self._text = ""
        self._is_open = False
        self.body.hide()
        theme.changed.connect(self.refresh_theme)
        self.refresh_theme()

    @property
    def is_open(self) -> bool:
        return self._is_open

    def set_open(self, is_open: bool) -> None:
        if is_open == self._is_open:
            return
        self._is_open = is_open
        self.body.setVisible(is_open)
        if is_open:
            self.body.set_text(self._text)
        self._draw_icon()
        self.resized.emit()

    def set_thoughts(self, text: str, seconds: float, tokens: int | None) -> None:
        """`tokens` None: it is still thinking."""
        self._text = text
        if self._is_open:
            self.body.set_text(text)
        if tokens is None:
            self.head.setText(self.tr("Thinking… {0} s").format(number_text(seconds, 0)))
        else:
            words = self.tr("Thought for {0} s (%Ln token(s))", None, tokens)
            self.head.setText(words.format(number_text(seconds)))

    def fit(self, width: int) -> int:
        size = self.head.sizeHint()
        self.head.setGeometry(0, 0, min(width, size.width()), size.height())
        if not self._is_open:
            return size.height()
        height = self.body.fit(width - L)
        self.body.setGeometry(L, size.height() + XS, width - L, height)
        return size.height() + XS + height

    @Slot()
    def _on_click(self) -> None:
        self.set_open(not self._is_open)
        self.toggled.emit(self._is_open)

    @Slot()
    def refresh_theme(self) -> None:
        self.head.setFont(self.theme.font(0.95))
        self._draw_icon()

    def _draw_icon(self) -> None:
        self.head.setIcon(icon(self.theme, "chevron-down" if self._is_open else "chevron-right", "muted"))
        self.head.setIconSize(QSize(self.theme.px(14), self.theme.px(14)))
        words = self.tr("Hide thoughts") if self._is_open else self.tr("Show thoughts")
        self.head.setToolTip(words)
