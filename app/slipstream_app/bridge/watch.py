"""Watches the engine: says when it stands still, and when it has had nothing to do for long. No timer while idle."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from slipstream.events import Ready, Status, Working
from slipstream_app.bridge.bus import Bus

STALLED_AFTER_S = 30.0
LOOK_MS = 2000
LONGEST_MS = 2**31 - 1  # of a timer of Qt's: 24 days


class Watch(QObject):
    stalled = Signal(int)  # seconds without a sign of life, while something is to be done; again at each look
    moved = Signal()  # after `stalled`
    idle = Signal()  # nothing was asked for as long as the model is kept

    def __init__(
        self,
        bus: Bus,
        parent: QObject | None = None,
        *,
        stalled_after_s: float = STALLED_AFTER_S,
        look_ms: int = LOOK_MS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(parent)
        self._clock = clock
        self._stalled_after_s = stalled_after_s
        self._moved_s = clock()
        self._is_stalled = False
        self._minutes = 0
        self._is_pinned = False
        self._held: tuple[float | None] | None = None  # a client's own idle time; None: none said any
        self._look = QTimer(self, interval=look_ms)
        self._look.timeout.connect(self._on_look)
        self._idle = QTimer(self, singleShot=True)
        self._idle.timeout.connect(self.idle)
        self._is_ready = False
        bus.status_changed.connect(self._on_status)
        bus.said.connect(self._on_said)
        bus.opened.connect(self._on_opened)
        bus.hold_wanted.connect(self.hold)

    def keep(self, minutes: int, *, is_pinned: bool = False) -> None:
        """How long the loaded model stays while nothing is asked. 0: it stays. A pin is stronger than any client."""
        if (minutes, is_pinned) != (self._minutes, self._is_pinned):
            self._minutes, self._is_pinned = minutes, is_pinned
            self._tend_idle()

    @Slot(object)
    def hold(self, idle_s: float | None) -> None:
        """A client says how long it stays after its answer. Holds until the next request. None: for ever."""
        self._held = (idle_s,)
        self._tend_idle()

    @Slot(int, str, object)
    def _on_opened(self, job: int, source: str, request: object) -> None:
        self._held = None

    @Slot(object)
    def _on_status(self, status: Status) -> None:
        self._sign_of_life()
        self._is_ready = isinstance(status, Ready)
        if isinstance(status, Working):
            self._look.start()
        else:
            self._look.stop()
        self._tend_idle()

    @Slot(int, object)
    def _on_said(self, job: int, event: object) -> None:
        self._sign_of_life()

    @Slot()
    def _on_look(self) -> None:
        seconds = self._clock() - self._moved_s
        if seconds >= self._stalled_after_s:
            self._is_stalled = True
            self.stalled.emit(int(seconds))

    def _sign_of_life(self) -> None:
        self._moved_s = self._clock()
        if self._is_stalled:
            self._is_stalled = False
            self.moved.emit()

    def _tend_idle(self) -> None:
        idle_s = self._idle_s
        if self._is_ready and idle_s is not None:
            self._idle.start(min(round(idle_s * 1000), LONGEST_MS))
        else:
            self._idle.stop()

    @property
    def _idle_s(self) -> float | None:
        """None: it stays."""
        if self._is_pinned:
            return None
        if self._held is not None:
            return self._held[0]
        return 60.0 * self._minutes or None
