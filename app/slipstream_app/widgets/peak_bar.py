"""Memory as a bar: named parts against a limit, on the screens and in tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt, Slot
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from slipstream_app.numbers import size_text
from slipstream_app.theme import Theme
from slipstream_app.widgets.flowed import flowed


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    bytes: int
    colour: str  # a name of the theme


def paint_bar(painter: QPainter, theme: Theme, area: QRectF, parts: Sequence[Part], limit: int) -> None:
    """The bar's whole width is the limit, or the parts' sum where that is more; a mark then stands at the limit."""
    total = sum(part.bytes for part in parts)
    scale = max(limit, total, 1)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.color("raised"))
    painter.drawRoundedRect(area, 4, 4)
    left = area.left()
    for part in parts:
        wide = area.width() * part.bytes / scale
        piece = QRectF(left, area.top(), wide, area.height())
        painter.setBrush(theme.color(part.colour))
        painter.drawRect(piece.adjusted(0, 0, -1 if wide > 3 else 0, 0))
        left += wide
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(theme.color("border"), 1))
    painter.drawRoundedRect(area, 4, 4)
    if total > limit > 0:
        at = area.left() + area.width() * limit / scale
        painter.setPen(QPen(theme.color("bad"), 2))
        painter.drawLine(round(at), round(area.top() - 2), round(at), round(area.bottom() + 2))
    painter.restore()


class StackBar(QWidget):
    """The bar with a legend below that wraps to what room there is."""

    def __init__(self, theme: Theme, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._parts: tuple[Part, ...] = ()
        self._limit = 0
        self._limit_name = ""
        self.setAccessibleName(name)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        theme.changed.connect(self._on_theme)

    @Slot()
    def _on_theme(self) -> None:
        self.updateGeometry()
        self.update()

    @property
    def parts(self) -> tuple[Part, ...]:
        return self._parts

    def show_parts(self, parts: Sequence[Part], limit: int, limit_name: str) -> None:
        if (tuple(parts), limit, limit_name) == (self._parts, self._limit, self._limit_name):
            return
        self._parts, self._limit, self._limit_name = tuple(parts), limit, limit_name
        self.setAccessibleDescription(", ".join(words for _, words in self._entries))
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(200, self.heightForWidth(max(200, self.width())))

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self.heightForWidth(10_000))

    def heightForWidth(self, width: int) -> int:
        lines = 1 + max((line for _, line, _ in self._places(width)), default=0)
        return self._theme.px(14) + 6 + lines * self._theme.px(20)

    def _places(self, width: int) -> list[tuple[int, int, int]]:
        """Of each entry of the legend: how far from the left, in which line, and how wide."""
        metrics = QFontMetrics(self._theme.font(0.88))
        dot = self._theme.px(9) + 5
        widths = [metrics.horizontalAdvance(text) + (dot if colour else 0) for colour, text in self._entries]
        places = flowed(widths, width, self._theme.px(14))
        return [(x, line, wide) for (x, line), wide in zip(places, widths, strict=True)]

    @property
    def _entries(self) -> list[tuple[str, str]]:
        """A colour, where there is one, and words."""
        found = [(part.colour, f"{part.name} {size_text(part.bytes)}") for part in self._parts if part.bytes]
        return [*found, ("", f"{self._limit_name} {size_text(self._limit)}")] if self._limit else found

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        high, line, dot = self._theme.px(14), self._theme.px(20), self._theme.px(9)
        paint_bar(painter, self._theme, QRectF(1, 2, self.width() - 2, high), self._parts, self._limit)
        painter.setFont(self._theme.font(0.88))
        for (colour, text), (x, number, wide) in zip(self._entries, self._places(self.width()), strict=True):
            y = high + 6 + number * line
            if colour:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(self._theme.color(colour))
                painter.drawRoundedRect(QRectF(x, y + (line - dot) / 2, dot, dot), 2, 2)
            painter.setPen(self._theme.color("muted"))
            painter.drawText(
                QRectF(x + (dot + 5 if colour else 0), y, wide, line),
                Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter,
                text,
            )
        painter.end()
