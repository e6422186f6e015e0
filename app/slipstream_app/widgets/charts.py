"""Charts of the rounds. Each has a table with the same numbers, for VoiceOver and for whoever prefers to read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QRectF, QSize, Qt, Slot
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QHeaderView, QStackedLayout, QTableWidget, QTableWidgetItem, QToolButton, QWidget

from slipstream_app.models.telemetry import DRAFTER, MODEL, NGRAM, RoundPoint
from slipstream_app.numbers import share_text
from slipstream_app.theme import Theme
from slipstream_app.widgets.flowed import flowed
from slipstream_app.widgets.panel import Panel, wrapped

LETTER_COLOURS = {DRAFTER: "draft", NGRAM: "ngram", MODEL: "model"}
_HEIGHT = 215


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
        rows = [(str(position), share_text(share)) for position, share in enumerate(shares, 1)]
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
        value = painter.fontMetrics().horizontalAdvance(share_text(1)) + 8
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
            painter.drawText(cell, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, share_text(share))


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
        said = ", ".join(f"{names[letter]} {share_text(share)}" for letter, share in self._shares.items())
        rows = [
            (str(len(rounds) - index), names[point.letter], str(point.drafted), str(point.accepted))
            for index, point in enumerate(reversed(rounds))
        ]
        self.describe(said or self.tr("No round yet"), rows)
        self.picture.update()

    def names(self) -> dict[str, str]:
        return {DRAFTER: self.tr("drafter"), NGRAM: self.tr("n-gram"), MODEL: self.tr("model alone")}

    def _legend(self) -> list[tuple[str, str]]:
        """Colours of the theme, and words."""
        names = self.names()
        told = {letter: share_text(share) for letter, share in self._shares.items()}
        return [
            (colour, f"{letter} {names[letter]} {told.get(letter, '')}".rstrip())
            for letter, colour in LETTER_COLOURS.items()
        ]

    def paint(self, painter: QPainter, area: QRectF) -> None:
        painter.setFont(self.theme.font(0.85))
        metrics = painter.fontMetrics()
        line = metrics.height()
        legend = self._legend()
        places = flowed((metrics.horizontalAdvance(text) for _, text in legend), int(area.width()), 12)
        below = (places[-1][1] + 1) * line
        for (colour, text), (x, number) in zip(legend, places, strict=True):
            painter.setPen(self.theme.color(colour))
            place = QRectF(area.left() + x, area.bottom() - below + number * line, area.width() - x, line)
            fitting = metrics.elidedText(text, Qt.TextElideMode.ElideRight, int(place.width()))
            painter.drawText(place, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, fitting)
        cell = QRectF(0, 0, line * 0.95, line * 1.3)
        cells = area.adjusted(0, 0, 0, -below - 6)
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
