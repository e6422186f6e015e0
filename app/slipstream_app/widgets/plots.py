"""Charts in pyqtgraph, which is imported on a thread when the first is shown: it takes seconds, behind a skeleton."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from math import ceil, log10
from typing import TYPE_CHECKING, Any, ClassVar

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QPen, QShowEvent
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from slipstream.engine.costs import Depth
from slipstream_app.models.telemetry import WINDOW_S
from slipstream_app.numbers import number_text
from slipstream_app.theme import Theme
from slipstream_app.widgets.charts import Chart
from slipstream_app.widgets.panel import Words

if TYPE_CHECKING:
    import pyqtgraph


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


class PlotChart(Chart):
    """A chart in pyqtgraph; a skeleton stands there until that is loaded."""

    def __init__(self, theme: Theme, title: str, heads: Sequence[str], parent: QWidget | None = None) -> None:
        super().__init__(theme, title, heads, parent)
        self.plot: pyqtgraph.PlotWidget | None = None
        theme.resized.connect(self.recolour)
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
        axes = {side: number_axis(pg, side) for side in ("left", "bottom")}
        self.plot = pg.PlotWidget(axisItems=axes)
        plot: Any = self.plot  # Any: pyqtgraph has no types
        plot.setMenuEnabled(False)
        plot.setMouseEnabled(False, False)
        plot.hideButtons()
        plot.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        plot.plotItem.setContentsMargins(0, 8, 4, 0)  # an axis's last number stands half outside of it
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
            legend = plot.plotItem.legend
            for side in ("left", "bottom"):
                axis = plot.getAxis(side)
                axis.setPen(QPen(self.theme.color("border")))
                axis.setTextPen(self.theme.color("muted"))
                axis.setTickFont(self.theme.font(0.85))
                axis.label.setFont(self.theme.font(0.85))
                axis.label.setDefaultTextColor(self.theme.color("muted"))
            self.colour()
            for _, label in () if legend is None else legend.items:  # it keeps a new colour for later texts alone
                points = self.theme.font(0.8).pointSizeF()
                label.setText(label.text, color=self.theme.css("muted"), size=f"{points:.1f}pt")

    def colour(self) -> None:
        """Give the curves the theme's colours."""


def number_axis(pg: Any, side: str) -> Any:
    """An axis whose numbers are written as all others. pyqtgraph is imported late, and so this class is made late."""

    class NumberAxis(pg.AxisItem):
        def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
            digits = max(0, ceil(-log10(spacing * scale))) if spacing * scale > 0 else 0
            return [number_text(value * scale, digits) for value in values]

    return NumberAxis(side)


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
            self._plain.label.setFont(self.theme.font(0.85))

    def show_points(self, points: list[tuple[float, float]], plain_tps: float | None) -> None:
        """`plain_tps`: None where it was not measured; then no line is drawn."""
        self._points, self._plain_tps = points, plain_tps
        rows = [(number_text(abs(at), 0), number_text(tps)) for at, tps in reversed(points)]
        top = max((tps for _, tps in points), default=0.0)
        self.describe(self.tr("Up to {0} tokens per second in the last minute").format(number_text(top)), rows)
        if self._curve is None:
            return
        self._curve.setData([at for at, _ in points], [tps for _, tps in points])
        self._plain.setVisible(plain_tps is not None)
        if plain_tps is not None:
            self._plain.setValue(plain_tps)
            self._plain.label.setFormat(self.tr("plain: {0}").format(number_text(plain_tps)))
        assert self.plot is not None
        plot: Any = self.plot
        plot.setYRange(0, max(top, plain_tps or 0.0, 1.0) * 1.15, padding=0)


class CostChart(PlotChart):
    """Milliseconds of a round by how many drafts it verifies, for each who drafts, as rounds on this machine took."""

    # A symbol and a colour for each.
    _MARKS: ClassVar = {
        "plain": ("s", "plain"),
        "lookup": ("t", "ngram"),
        "dspark": ("o", "draft"),
        "dflash": ("d", "accent"),
        "mtp": ("+", "model"),
    }

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        self._curves: dict[str, Any] = {}
        self._points: Mapping[str, list[tuple[int, float]]] = {}
        self._depth = Depth()
        self._knee: Any = None  # a line across
        heads = (self.tr("Who drafts"), self.tr("Drafts verified"), self.tr("Milliseconds"))
        super().__init__(theme, self.tr("Cost: milliseconds of a round, by drafts verified"), heads, parent)
        self.reach = Words(theme, "", "muted", scale=0.92)
        self.reach.setAccessibleName(self.tr("How far it pays to draft"))
        self.body.addWidget(self.reach)
        self.show_points({})

    def build(self, pg: Any, plot: Any) -> None:
        plot.getAxis("left").setWidth(44)
        plot.addLegend(offset=(6, 1), colCount=3, horSpacing=12)
        self._knee = pg.InfiniteLine(angle=90, span=(0, 0.7))  # below the legend
        self._knee.setVisible(False)
        plot.addItem(self._knee)
        self.show_points(self._points, self._depth)

    def colour(self) -> None:
        for source, curve in self._curves.items():
            colour = self.theme.color(self._mark(source)[1])
            pen = QPen(colour, 2)
            pen.setCosmetic(True)
            curve.setPen(pen)
            curve.setSymbolBrush(colour)
            curve.setSymbolPen(pen)
        if self._knee is not None:
            dashes = QPen(self.theme.color("muted"), 1, Qt.PenStyle.DashLine)
            dashes.setCosmetic(True)
            self._knee.setPen(dashes)

    def _mark(self, source: str) -> tuple[str, str]:
        return self._MARKS.get(source, ("x", "model"))

    def _name(self, source: str) -> str:
        names = {"plain": self.tr("plain"), "lookup": self.tr("n-gram"), "mtp": "MTP"}
        return names.get(source) or {"dspark": "DSpark", "dflash": "DFlash"}.get(source, source)

    def show_points(self, points: Mapping[str, list[tuple[int, float]]], depth: Depth | None = None) -> None:
        """By who drafts: (drafts verified, milliseconds). `depth`: how far it pays to draft."""
        self._points, self._depth = points, depth or Depth()
        self.reach.say(self._depth_words(self._depth))
        self.reach.setVisible(bool(self.reach.text()) and bool(points))
        self.say("" if points else self.tr("Nothing was measured yet: Auto learns it in its first rounds."))
        rows = [
            (self._name(source), str(drafts), number_text(ms)) for source, line in points.items() for drafts, ms in line
        ]
        said = self.tr("The cost of a round at %n length(s)", "", len(rows))
        self.describe(". ".join(words for words in (said, self.reach.text()) if words), rows)
        plot: Any = self.plot
        if plot is None:
            return
        for source, line in points.items():
            if source not in self._curves:
                symbol, _ = self._mark(source)
                self._curves[source] = plot.plot([], [], name=self._name(source), symbol=symbol, symbolSize=7)
                self.recolour()
            self._curves[source].setData([drafts for drafts, _ in line], [ms for _, ms in line])
        top = max((ms for line in points.values() for _, ms in line), default=1.0)
        plot.setYRange(0, top * 1.4, padding=0)  # above it, the legend
        self._knee.setVisible(self._depth.knee is not None)
        self._knee.setValue(self._depth.knee or 0)

    def _depth_words(self, depth: Depth) -> str:
        """What calibration found, and what the planner makes of it now."""
        told: list[str] = []
        if depth.knee is not None:
            told.append(self.tr("Knee at {0}").format(depth.knee))
        elif depth.measured:
            told.append(self.tr("No knee up to {0}").format(depth.measured))
        elif depth.caps:
            told.append(self.tr("Knee unknown before calibration"))
        parked = [source for source, cap in depth.caps.items() if not cap]
        caps = {self._name(source): cap for source, cap in depth.caps.items() if cap}
        if len(caps) == 1 and not parked:
            told.append(self.tr("cap now {0}").format(next(iter(caps.values()))))
        else:
            told += [self.tr("cap now {0} for {1}").format(cap, name) for name, cap in caps.items()]
        told += [self.tr("{0} is parked: plain decoding is faster").format(self._name(source)) for source in parked]
        return ", ".join(told)
