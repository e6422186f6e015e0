"""The sidebar's footer: what the engine is doing, how fast, and how much of the drafts is kept. 4 times a second."""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize, Qt, QTimer, Slot
from PySide6.QtGui import QHideEvent, QPainter, QPaintEvent, QShowEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from slipstream_app.models.activity import BUSY, Activity, Doing
from slipstream_app.models.telemetry import Telemetry
from slipstream_app.numbers import number_text, share_text
from slipstream_app.theme import M, S, Theme

REFRESH_MS = 250


COLOR = {
    Doing.NOTHING: "muted",
    Doing.LOADING: "warn",
    Doing.READY: "ok",
    Doing.READING: "accent",
    Doing.GENERATING: "accent",
    Doing.MEASURING: "accent",
    Doing.STOPPED: "bad",
}


class Footer(QWidget):
    """Paints itself; its timer runs only while the engine works and the footer can be seen."""

    def __init__(self, theme: Theme, activity: Activity, telemetry: Telemetry, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._telemetry = telemetry
        self._activity = activity
        self._speed = ""
        self._share = ""
        self._timer = QTimer(self, interval=REFRESH_MS)
        self._timer.timeout.connect(self.refresh)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(self.tr("Engine"))
        activity.changed.connect(self._on_activity)
        theme.changed.connect(self._on_theme)
        self.refresh()

    @property
    def doing(self) -> Doing:
        return self._activity.doing

    @property
    def speed(self) -> str:
        """As shown."""
        return self._speed

    @property
    def share(self) -> str:
        """Of drafts that were kept; while clients are paused, that they are."""
        return self._share

    def word(self) -> str:
        return {
            Doing.NOTHING: self.tr("Off"),
            Doing.LOADING: self.tr("Loading"),
            Doing.READY: self.tr("Ready"),
            Doing.READING: self.tr("Reading"),
            Doing.GENERATING: self.tr("Generating"),
            Doing.MEASURING: self.tr("Measuring"),
            Doing.STOPPED: self.tr("Crashed"),
        }[self.doing]

    @Slot()
    def refresh(self) -> None:
        tps = self._telemetry.live_tps()
        share = self._telemetry.figures().accepted_share
        self._speed = "" if tps is None else self.tr("{0} tok/s").format(number_text(tps))
        self._share = "" if share is None else self.tr("{0} accepted").format(share_text(share))
        if self._activity.are_clients_paused:
            self._share = self.tr("Clients paused")
        lines = [self.word(), *(words for words in (self._speed, self._share) if words)]
        self.setAccessibleDescription(", ".join(lines))
        self.setToolTip("\n".join(lines))
        self.update()

    @Slot()
    def _on_activity(self) -> None:
        self._tend()
        self.refresh()

    def _tend(self) -> None:
        if self.doing in BUSY and self.isVisible():
            if not self._timer.isActive():
                self._timer.start()
        else:
            self._timer.stop()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._tend()
        self.refresh()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._tend()

    def sizeHint(self) -> QSize:
        return QSize(self._theme.px(160), self._theme.px(78))

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = self._theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(0, 0, self.width(), 1, theme.color("border"))
        is_narrow = bool(self.property("narrow"))
        dot = theme.px(9)
        line = theme.px(19)
        top = theme.px(M)
        left = (self.width() - dot) // 2 if is_narrow else M + S // 2
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color(COLOR[self.doing]))
        where = QRect(left, top + (line - dot) // 2, dot, dot)
        # The state has a shape of its own too, for those who do not tell the colours apart.
        if self.doing in (Doing.NOTHING, Doing.LOADING):
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(theme.color(COLOR[self.doing]))
            painter.drawEllipse(where.adjusted(1, 1, -1, -1))
        elif self.doing is Doing.STOPPED:
            painter.drawRect(where)
        else:
            painter.drawEllipse(where)
        if is_narrow:
            painter.setFont(theme.font(0.8))
            painter.setPen(theme.color("muted"))
            number = self._speed.split(" ")[0]
            painter.drawText(QRect(0, top + line, self.width(), line), Qt.AlignmentFlag.AlignHCenter, number)
            return
        x = where.right() + S + 1
        rows = ((self.word(), "text", 1.0), (self._speed, "text", 1.0), (self._share, "muted", 0.9))
        for number, (words, color, scale) in enumerate(rows):
            painter.setFont(theme.font(scale, bold=number == 0))
            painter.setPen(theme.color(color))
            rect = QRect(x, top + number * line, self.width() - x, line)
            painter.drawText(rect, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, words)

    @Slot()
    def _on_theme(self) -> None:
        self.updateGeometry()
        self.update()
