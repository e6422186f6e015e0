"""A race played again: the runs of its last round at their recorded pace, all at once."""

from __future__ import annotations

from PySide6.QtCore import QElapsedTimer, QObject, QTimer, Signal, Slot

from slipstream.measure.race import Run
from slipstream_app.models.race import Replay

FRAME_MS = 50


class RacePlayer(QObject):
    """Plays `replay`, which is None while there is nothing to play."""

    stood_at = Signal(float)  # seconds since the first tokens; the last one is the end
    ended = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.replay: Replay | None = None
        self._clock = QElapsedTimer()
        self._timer = QTimer(self, interval=FRAME_MS)
        self._timer.timeout.connect(self._on_frame)

    @property
    def is_playing(self) -> bool:
        return self._timer.isActive()

    def at(self, seconds: float) -> list[tuple[Run, str, int]]:
        """Each run, its text and its token count by then."""
        if self.replay is None:
            return []
        return [(run, *said) for run, said in zip(self.replay.runs, self.replay.at(seconds), strict=True)]

    def start(self, *, at_once: bool) -> bool:
        """`at_once`: nothing moves, only the end is shown. False when nothing plays now."""
        if self.replay is None:
            return False
        if at_once:
            self.stood_at.emit(self.replay.seconds)
            return False
        self._clock.start()
        self._timer.start()
        self._on_frame()
        return self.is_playing

    def stop(self) -> None:
        """At its end, whatever was missing."""
        if self.is_playing:
            self._timer.stop()
            if self.replay is not None:
                self.stood_at.emit(self.replay.seconds)
            self.ended.emit()

    @Slot()
    def _on_frame(self) -> None:
        seconds = self._clock.elapsed() / 1000
        self.stood_at.emit(seconds)
        if self.replay is None or seconds >= self.replay.seconds:
            self.stop()
