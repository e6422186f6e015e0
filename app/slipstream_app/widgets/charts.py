"""Charts of the rounds. Each has a table with the same numbers, for VoiceOver and for whoever prefers to read them.

pyqtgraph is imported on a thread when the first chart that needs it is shown: it takes seconds, behind a skeleton.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QShowEvent
from PySide6.QtWidgets import (
    QHeaderView,
    QSizePolicy,
    QStackedLayout,
    QTableWidget,
    QTableWidgetItem,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from slipstream_app.models.telemetry import DRAFTER, MODEL, NGRAM, WINDOW_S, RoundPoint
from slipstream_app.theme import Theme
from slipstream_app.widgets.panel import Panel, Words, wrapped

if TYPE_CHECKING:
    import pyqtgraph

LETTER_COLOURS = {DRAFTER: "draft", NGRAM: "ngram", MODEL: "model"}
_HEIGHT = 215


class _Plots(QObject):
    """Imports pyqtgraph once, off the main thread, and says when it is there."""

    ready = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.module: Any = None  # Any: pyqtgraph has no types
        self._thread: threading.Thread | None = None

    def ask(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._load, name="slipstream-plots", daemon=True)
            self._thread.start()
        elif self.module is not None:
            self.ready.emit()

    def _load(self) -> None:
        import pyqtgraph

        pyqtgraph.setConfigOptions(antialias=True)
        self.module = pyqtgraph
        self.ready.emit()


_plots: list[_Plots] = []


def plots() -> _Plots:
    """Made when first asked for: a QObject needs an application."""
    if not _plots:
        _plots.append(_Plots())
    return _plots[0]


class Chart(Panel):
    """A title, a picture, and the same numbers as a table behind a switch."""

    def __init__(self, theme: Theme, title: str, heads: Sequence[str], parent: QWidget | None = None) -> None:
        super().__init__(theme, title, parent)
        self.table = QTableWidget(0, len(heads))
        self.table.setHorizontalHeaderLabels(list(heads))
        self.table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        self.table.verticalHeader().hide()
        self.table.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.table.setAccessibleName(self.tr("{0}, as a table").format(title))
        self.switch = QToolButton()
        self.switch.setText(self.tr("Table"))
        self.switch.setCheckable(True)
        self.switch.setProperty("role", "flat")
        self.switch.setToolTip(self.tr("Show the numbers as a table"))
        self.switch.setAccessibleName(self.tr("{0}: show as a table").format(title))
        self.switch.toggled.connect(self._on_switch)
        self.head.addWidget(self.switch)
        self.picture = QWidget()
        self.picture.setAccessibleName(title)
        self.nothing = wrapped(theme, "", "muted")
        self.nothing.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.stack = QStackedLayout()
        for widget in (self.picture, self.table, self.nothing):
            self.stack.addWidget(widget)
        self.body.addLayout(self.stack, 1)
        self.table.setFrameShape(QTableWidget.Shape.NoFrame)
        self.table.setAlternatingRowColors(True)
        self.table.setShowGrid(False)
        self._rows: list[tuple[str, ...]] = []
        theme.changed.connect(self._on_zoom)
        self._on_zoom()

    @Slot()
    def _on_zoom(self) -> None:
        """One height for all, whatever the table or the plot would like."""
        self.setFixedHeight(self.theme.px(_HEIGHT))

    def say(self, sentence: str) -> None:
        """Instead of the picture; empty: the picture again."""
        self.nothing.setText(sentence)
        self._on_switch(self.switch.isChecked())

    def describe(self, sentence: str, rows: list[tuple[str, ...]]) -> None:
        """What the picture shows, in words and in rows."""
        self.picture.setAccessibleDescription(sentence)
        self._rows = rows
        if self.table.isVisible():
            self._fill()

    @Slot(bool)
    def _on_switch(self, is_table: bool) -> None:
        if self.nothing.text():
            self.stack.setCurrentWidget(self.nothing)
            return
        if is_table:
            self._fill()
        self.stack.setCurrentWidget(self.table if is_table else self.picture)

    def _fill(self) -> None:
        self.table.setRowCount(len(self._rows))
        for row, values in enumerate(self._rows):
            for column, text in enumerate(values):
                item = self.table.item(row, column)
                if item is None:
                    self.table.setItem(row, column, QTableWidgetItem(text))
                elif item.text() != text:
                    item.setText(text)


class PlotChart(Chart):
    """A chart in pyqtgraph; a skeleton stands there until that is loaded."""

    def __init__(self, theme: Theme, title: str, heads: Sequence[str], parent: QWidget | None = None) -> None:
        super().__init__(theme, title, heads, parent)
        self.plot: pyqtgraph.PlotWidget | None = None
        theme.changed.connect(self.recolour)
        self._column = QVBoxLayout(self.picture)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._skeleton = Words(theme, self.tr("Loading charts…"), "muted")
        self._skeleton.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._column.addWidget(self._skeleton)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self.plot is None:
            plots().ready.connect(self._on_ready, Qt.ConnectionType.UniqueConnection)
            plots().ask()

    @Slot()
    def _on_ready(self) -> None:
        if self.plot is not None:
            return
        pg = plots().module
        self.plot = pg.PlotWidget()
        plot: Any = self.plot  # Any: pyqtgraph has no types
        plot.setMenuEnabled(False)
        plot.setMouseEnabled(False, False)
        plot.hideButtons()
        plot.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        plot.setFrameShape(plot.Shape.NoFrame)
        plot.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)
        self._column.removeWidget(self._skeleton)
        self._skeleton.hide()
        self._column.addWidget(plot)
        self.build(pg, plot)
        self.recolour()

    def build(self, pg: Any, plot: Any) -> None:
        """Make the curves. Called once."""
        raise NotImplementedError

    @Slot()
    def recolour(self) -> None:
        plot: Any = self.plot
        if plot is not None:
            plot.setBackground(self.theme.color("surface"))
            for side in ("left", "bottom"):
                axis = plot.getAxis(side)
                axis.setPen(QPen(self.theme.color("border")))
                axis.setTextPen(self.theme.color("muted"))
                axis.setTickFont(self.theme.font(0.85))
            self.colour()

    def colour(self) -> None:
        """Give the curves the theme's colours."""


class SpeedChart(PlotChart):
    """Tokens in each second of the last minute, and plain decoding's speed where it was measured."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        self._curve: Any = None
        self._plain: Any = None
        self._points: list[tuple[float, float]] = []
        self._plain_tps: float | None = None
        heads = (self.tr("Seconds ago"), self.tr("Tokens per second"))
        super().__init__(theme, self.tr("Speed, 60 s"), heads, parent)

    def build(self, pg: Any, plot: Any) -> None:
        plot.setXRange(-WINDOW_S, 0, padding=0)
        plot.setLimits(yMin=0)
        plot.getAxis("left").setWidth(44)
        self._curve = plot.plot([], [])
        self._plain = pg.InfiniteLine(angle=0, label="", labelOpts={"position": 0.12, "anchors": [(0, 1), (0, 1)]})
        self._plain.setVisible(False)
        plot.addItem(self._plain)
        self.show_points(self._points, self._plain_tps)

    def colour(self) -> None:
        if self._curve is not None:
            pen = QPen(self.theme.color("draft"), 2)
            pen.setCosmetic(True)
            self._curve.setPen(pen)
            dashes = QPen(self.theme.color("plain"), 1, Qt.PenStyle.DashLine)
            dashes.setCosmetic(True)
            self._plain.setPen(dashes)
            self._plain.label.setColor(self.theme.color("plain"))

    def show_points(self, points: list[tuple[float, float]], plain_tps: float | None) -> None:
        """`plain_tps`: None where it was not measured; then no line is drawn."""
        self._points, self._plain_tps = points, plain_tps
        rows = [(f"{abs(at):.0f}", f"{tps:.1f}") for at, tps in reversed(points)]
        top = max((tps for _, tps in points), default=0.0)
        self.describe(self.tr("Up to {0} tokens per second in the last minute").format(f"{top:.1f}"), rows)
        if self._curve is None:
            return
        self._curve.setData([at for at, _ in points], [tps for _, tps in points])
        self._plain.setVisible(plain_tps is not None)
        if plain_tps is not None:
            self._plain.setValue(plain_tps)
            self._plain.label.setFormat(self.tr("plain: {0}").format(f"{plain_tps:.1f}"))
        assert self.plot is not None
        plot: Any = self.plot
        plot.setYRange(0, max(top, plain_tps or 0.0, 1.0) * 1.15, padding=0)


class CostChart(PlotChart):
    """Milliseconds of one verification by how many tokens it checks, as calibration measured it."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        self._curve: Any = None
        self._points: list[tuple[int, float]] = []
        heads = (self.tr("Tokens"), self.tr("Milliseconds"))
        super().__init__(theme, self.tr("Cost: verify ms by width"), heads, parent)
        self.say(self.tr("Not measured on this machine yet."))

    def build(self, pg: Any, plot: Any) -> None:
        plot.getAxis("left").setWidth(44)
        self._curve = plot.plot([], [], symbol="o", symbolSize=6)
        self.show_points(self._points)

    def colour(self) -> None:
        if self._curve is not None:
            pen = QPen(self.theme.color("model"), 2)
            pen.setCosmetic(True)
            self._curve.setPen(pen)
            self._curve.setSymbolBrush(self.theme.color("model"))
            self._curve.setSymbolPen(pen)

    def show_points(self, points: list[tuple[int, float]]) -> None:
        self._points = points
        self.say("" if points else self.tr("Not measured on this machine yet."))
        rows = [(str(width), f"{ms:.2f}") for width, ms in points]
        self.describe(self.tr("The cost of a verification at {0} widths").format(len(points)), rows)
        if self._curve is not None:
            self._curve.setData([width for width, _ in points], [ms for _, ms in points])


class PaintedChart(Chart):
    """A chart simple enough for QPainter."""

    def __init__(self, theme: Theme, title: str, heads: Sequence[str], parent: QWidget | None = None) -> None:
        super().__init__(theme, title, heads, parent)
        canvas = _Canvas(self.paint)
        canvas.setAccessibleName(title)
        self.stack.removeWidget(self.picture)
        self.picture.deleteLater()
        self.picture = canvas
        self.stack.insertWidget(0, canvas)
        self.stack.setCurrentWidget(canvas)

    def paint(self, painter: QPainter, area: QRectF) -> None:
        raise NotImplementedError


class _Canvas(QWidget):
    def __init__(self, paint: Callable[[QPainter, QRectF], None]) -> None:
        super().__init__()
        self._paint = paint

    def minimumSizeHint(self) -> QSize:
        return QSize(120, 60)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint(painter, QRectF(self.rect()))
        painter.end()


class PositionChart(PaintedChart):
    """A bar for each position of the draft: how often what was drafted there was kept."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        self._shares: tuple[float, ...] = ()
        super().__init__(theme, self.tr("Accepted by position"), (self.tr("Position"), self.tr("Share kept")), parent)

    def show_shares(self, shares: tuple[float, ...]) -> None:
        self._shares = shares
        rows = [(str(position), f"{share:.0%}") for position, share in enumerate(shares, 1)]
        said = ", ".join(f"{position}: {share}" for position, share in rows)
        self.describe(self.tr("Kept by position: {0}").format(said or self.tr("nothing yet")), rows)
        self.picture.update()

    def paint(self, painter: QPainter, area: QRectF) -> None:
        if not self._shares:
            return
        painter.setFont(self.theme.font(0.85))
        line = painter.fontMetrics().height()
        columns = 1 if len(self._shares) * (line + 4) <= area.height() else 2
        per_column = -(-len(self._shares) // columns)
        row_height = min(area.height() / per_column, line * 1.7)
        wide = area.width() / columns
        number = painter.fontMetrics().horizontalAdvance("00") + 6
        value = painter.fontMetrics().horizontalAdvance("100 %") + 8
        for index, share in enumerate(self._shares):
            column, row = divmod(index, per_column)
            left, top = area.left() + column * wide, area.top() + row * row_height
            cell = QRectF(left, top, wide - 8, row_height)
            painter.setPen(self.theme.color("muted"))
            painter.drawText(cell, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, str(index + 1))
            track = cell.adjusted(number, row_height * 0.25, -value, -row_height * 0.25)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self.theme.color("raised"))
            painter.drawRoundedRect(track, 3, 3)
            painter.setBrush(self.theme.color("draft"))
            painter.drawRoundedRect(QRectF(track.left(), track.top(), track.width() * share, track.height()), 3, 3)
            painter.setPen(self.theme.color("text"))
            painter.drawText(cell, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, f"{share:.0%}")


class RoundStrip(PaintedChart):
    """The last rounds, newest last: whose tokens they were, by colour and letter, and how many."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        self._rounds: list[RoundPoint] = []
        self._shares: dict[str, float] = {}
        heads = (self.tr("Round"), self.tr("Source"), self.tr("Drafted"), self.tr("Kept"))
        super().__init__(theme, self.tr("Rounds"), heads, parent)

    def show_rounds(self, rounds: list[RoundPoint], by_letter: dict[str, int]) -> None:
        self._rounds = rounds
        total = sum(by_letter.values())
        self._shares = {letter: by_letter.get(letter, 0) / total for letter in LETTER_COLOURS} if total else {}
        names = self.names()
        said = ", ".join(f"{names[letter]} {share:.0%}" for letter, share in self._shares.items())
        rows = [
            (str(len(rounds) - index), names[point.letter], str(point.drafted), str(point.accepted))
            for index, point in enumerate(reversed(rounds))
        ]
        self.describe(said or self.tr("No round yet"), rows)
        self.picture.update()

    def names(self) -> dict[str, str]:
        return {DRAFTER: self.tr("drafter"), NGRAM: self.tr("n-gram"), MODEL: self.tr("model alone")}

    def paint(self, painter: QPainter, area: QRectF) -> None:
        painter.setFont(self.theme.font(0.85))
        line = painter.fontMetrics().height()
        left = area.left()
        names = self.names()
        for letter, colour in LETTER_COLOURS.items():  # the legend
            text = f"{letter} {names[letter]}"
            if letter in self._shares:
                text += f" {self._shares[letter]:.0%}"
            wide = painter.fontMetrics().horizontalAdvance(text)
            painter.setPen(self.theme.color(colour))
            legend = QRectF(left, area.bottom() - line, wide, line)
            painter.drawText(legend, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, text)
            left += wide + 12
        cell = QRectF(0, 0, line * 0.95, line * 1.3)
        cells = area.adjusted(0, 0, 0, -line - 6)
        per_line = max(1, int(cells.width() // (cell.width() + 1)))
        lines = max(1, int(cells.height() // (cell.height() + 2)))
        bold = self.theme.font(0.8, bold=True)
        painter.setFont(bold)
        for index, point in enumerate(self._rounds[-per_line * lines :]):
            row, column = divmod(index, per_line)
            place = cell.translated(cells.left() + column * (cell.width() + 1), cells.top() + row * (cell.height() + 2))
            colour = self.theme.color(LETTER_COLOURS[point.letter])
            ground = QColor(colour)
            # Paler where less of the draft was kept.
            ground.setAlphaF(0.12 + 0.28 * (point.accepted / point.drafted if point.drafted else 0.0))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(ground)
            painter.drawRoundedRect(place, 2, 2)
            painter.setPen(colour)
            painter.drawText(place, Qt.AlignmentFlag.AlignCenter, point.letter)
