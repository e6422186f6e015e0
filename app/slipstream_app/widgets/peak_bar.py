"""Memory as a bar: named parts against a limit, on the screens and in tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt, Slot
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from slipstream_app.models.sizes import size_text
from slipstream_app.theme import Theme


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
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
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
        self.setAccessibleDescription(", ".join(self._legend()))
        self.updateGeometry()
        self.update()

    def _legend(self) -> list[str]:
        said = [f"{part.name} {size_text(part.bytes)}" for part in self._parts if part.bytes]
        if self._limit:
            said.append(f"{self._limit_name} {size_text(self._limit)}")
        return said

    def sizeHint(self) -> QSize:
        return QSize(200, self._theme.px(14) + 2 * self._theme.px(20) + 4)

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        high = self._theme.px(14)
        paint_bar(painter, self._theme, QRectF(1, 2, self.width() - 2, high), self._parts, self._limit)
        painter.setFont(self._theme.font(0.88))
        metrics = painter.fontMetrics()
        x, y = 0, high + 6
        line = self._theme.px(20)
        dot = self._theme.px(9)
        entries = [(part.colour, f"{part.name} {size_text(part.bytes)}") for part in self._parts if part.bytes]
        if self._limit:
            entries.append(("", f"{self._limit_name} {size_text(self._limit)}"))
        for colour, text in entries:
            wide = metrics.horizontalAdvance(text) + (dot + 5 if colour else 0)
            if x and x + wide > self.width():
                x, y = 0, y + line
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
            x += wide + self._theme.px(14)
        painter.end()
