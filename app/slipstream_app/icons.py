"""Icons drawn from Lucide's SVGs in the theme's colours, at any size and resolution."""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import QByteArray, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QIcon, QIconEngine, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from slipstream_app.resources import icon_file
from slipstream_app.theme import Theme


def icon(theme: Theme, name: str, color: str = "text") -> QIcon:
    """`name`: a file of resources/icons. It follows the theme; call again for another colour."""
    return QIcon(_ThemedEngine(theme, name, color))


def draw(theme: Theme, painter: QPainter, rect: QRect, name: str, color: str) -> None:
    _renderer(name, theme.css(color)).render(painter, QRectF(rect))


@lru_cache(maxsize=256)
def _renderer(name: str, css: str) -> QSvgRenderer:
    text = icon_file(name).read_text(encoding="utf-8").replace("currentColor", css)
    return QSvgRenderer(QByteArray(text.encode()))


class _ThemedEngine(QIconEngine):
    def __init__(self, theme: Theme, name: str, color: str) -> None:
        super().__init__()
        self._theme = theme
        self._name = name
        self._color = color

    def clone(self) -> QIconEngine:
        return _ThemedEngine(self._theme, self._name, self._color)

    def paint(self, painter: QPainter, rect: QRect, mode: QIcon.Mode, state: QIcon.State) -> None:
        painter.save()
        if mode is QIcon.Mode.Disabled:
            painter.setOpacity(0.45)
        draw(self._theme, painter, rect, self._name, self._color)
        painter.restore()

    def pixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State) -> QPixmap:
        made = QPixmap(size)
        made.fill(Qt.GlobalColor.transparent)
        painter = QPainter(made)
        self.paint(painter, QRect(0, 0, size.width(), size.height()), mode, state)
        painter.end()
        return made
