"""Whether a newer Slipstream is out: looked up when the user asks, and once a day for those who switched that on."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QObject, Signal, Slot

import slipstream
from slipstream.errors import SlipstreamError
from slipstream.store import releases
from slipstream.store.releases import Channel, Release
from slipstream_app.models.work import Work
from slipstream_app.settings import Settings

EVERY_S = 24 * 3600


class UpdateCheck(QObject):
    """No timer: it is reminded (`tend`) when the app starts and when its window is opened."""

    changed = Signal()  # what follows is different

    def __init__(
        self,
        settings: Settings,
        parent: QObject | None = None,
        *,
        ask: Callable[[Channel], Release | None] = releases.newest,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(parent)
        self._settings = settings
        self._ask = ask
        self._clock = clock
        self._work = Work(self)
        self.is_asking = False
        self.newer: Release | None = None
        self.error = ""  # of the last look
        settings.changed.connect(self._on_setting)

    @property
    def checked_s(self) -> float:
        """When the feed was last read; 0: never."""
        try:
            return float(str(self._settings.recall("updates_checked_s", 0) or 0))
        except ValueError:
            return 0.0

    def tend(self) -> None:
        """Look if it is time and allowed."""
        since_s = self._clock() - self.checked_s
        if self._settings.flag("updates/check") and not 0 <= since_s < EVERY_S:
            self.look()

    def look(self) -> None:
        """Now, as the user asks for it."""
        if not self.is_asking:
            self.is_asking = True
            self.changed.emit()
            channel = Channel(self._settings.text("updates/channel"))
            self._work.do(
                lambda: self._ask(channel),
                lambda release: self._on_answer(release, channel),
                self._on_trouble,
                "slipstream-updates",
            )

    @Slot(str)
    def _on_setting(self, key: str) -> None:
        """Another channel has another newest release; nobody is asked before it is time."""
        if key == "updates/channel":
            self._settings.remember("updates_checked_s", 0)
            self.newer = None
            self.error = ""
            self.changed.emit()

    def _on_answer(self, release: Release | None, channel: Channel) -> None:
        if channel != self._settings.text("updates/channel"):  # changed meanwhile
            self._end("")
            return
        self._settings.remember("updates_checked_s", self._clock())
        is_newer = release is not None and release.is_newer_than(slipstream.__version__)
        self.newer = release if is_newer else None
        self._end("")

    def _on_trouble(self, error: SlipstreamError) -> None:
        self._end(error.message)

    def _end(self, error: str) -> None:
        self.is_asking, self.error = False, error
        self.changed.emit()
