"""A training as it goes: the loss by step, and how much of a draft would be kept, by position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QPen
from PySide6.QtWidgets import QWidget

from slipstream_app.numbers import count_text, number_text, share_text
from slipstream_app.theme import Theme
from slipstream_app.widgets.plots import PlotChart


class LossChart(PlotChart):
    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        self._curve: Any = None
        self._points: Sequence[tuple[int, float]] = ()
        super().__init__(theme, self.tr("Loss"), (self.tr("Step"), self.tr("Loss")), parent)

    def build(self, pg: Any, plot: Any) -> None:
        plot.getAxis("left").setWidth(44)
        plot.setLabel("bottom", self.tr("step"))
        self._curve = plot.plot([], [])
        self.show_points(self._points)

    def colour(self) -> None:
        if self._curve is not None:
            self._curve.setPen(_pen(self.theme, "draft"))

    def show_points(self, points: Sequence[tuple[int, float]]) -> None:
        """(step, loss), oldest first."""
        self._points = points
        self.say("" if points else self.tr("It begins once the conversations are written."))
        last = number_text(points[-1][1], 3) if points else "–"
        self.describe(
            self.tr("Loss now: {0}").format(last), [(count_text(step), number_text(loss, 3)) for step, loss in points]
        )
        if self._curve is not None and self.plot is not None:
            self._curve.setData([step for step, _ in points], [loss for _, loss in points])
            top = max((loss for _, loss in points), default=1.0)
            plot: Any = self.plot
            plot.setYRange(0, top * 1.1, padding=0)


class AcceptanceChart(PlotChart):
    """Two lines: as it was at the first figure, and as it is now."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        self._now: Any = None
        self._first: Any = None
        self._figures: Sequence[tuple[float, ...]] = ()
        heads = (self.tr("Position"), self.tr("At first"), self.tr("Now"))
        super().__init__(theme, self.tr("Drafts that would be kept, by position"), heads, parent)

    def build(self, pg: Any, plot: Any) -> None:
        plot.getAxis("left").setWidth(44)
        plot.setYRange(0, 1.05, padding=0)
        plot.setLabel("bottom", self.tr("position in the draft"))
        plot.addLegend(offset=(-6, 2))
        self._first = plot.plot([], [], name=self.tr("at first"), symbol="t", symbolSize=6)
        self._now = plot.plot([], [], name=self.tr("now"), symbol="o", symbolSize=7)
        self.show_figures(self._figures)

    def colour(self) -> None:
        if self._now is None:
            return
        for curve, name, style in (
            (self._first, "plain", Qt.PenStyle.DashLine),
            (self._now, "draft", Qt.PenStyle.SolidLine),
        ):
            pen = _pen(self.theme, name, style)
            curve.setPen(pen)
            curve.setSymbolPen(pen)
            curve.setSymbolBrush(self.theme.color(name))

    def show_figures(self, figures: Sequence[tuple[float, ...]]) -> None:
        """Shares by position, one row for each figure, oldest first."""
        self._figures = figures
        self.say("" if figures else self.tr("It begins once the conversations are written."))
        first, now = (figures[0], figures[-1]) if figures else ((), ())
        rows = [
            (str(place), share_text(before), share_text(share))
            for place, (before, share) in enumerate(zip(first, now, strict=True), 1)
        ]
        said = ", ".join(f"{place}: {share}" for place, _, share in rows)
        self.describe(self.tr("Kept by position: {0}").format(said or self.tr("nothing yet")), rows)
        if self._now is None or self.plot is None:
            return
        places = list(range(1, len(now) + 1))
        self._first.setData(places, list(first))
        self._now.setData(places, list(now))
        plot: Any = self.plot
        plot.getAxis("bottom").setTicks([[(place, str(place)) for place in places]])


def _pen(theme: Theme, name: str, style: Qt.PenStyle = Qt.PenStyle.SolidLine) -> QPen:
    pen = QPen(theme.color(name), 2, style)
    pen.setCosmetic(True)
    return pen
