"""Pairs on this machine and whether they fit, for menus: read when somebody is about to open one."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from slipstream.errors import SlipstreamError
from slipstream_app.bridge.pair import PairChoice
from slipstream_app.models.pairs import FitWord, OpenStore, PairRow, Shelf, Store
from slipstream_app.models.store import open_store
from slipstream_app.models.work import Work
from slipstream_app.settings import Settings

CONTEXT = 32768  # tokens at which a pair must fit, or as many as it takes


class OnDisk(QObject):
    """Without a parent, so that a look that is under way keeps it alive."""

    changed = Signal()

    def __init__(self, settings: Settings, *, open_: OpenStore = open_store) -> None:
        super().__init__()
        self._settings = settings
        self._open_store = open_
        self._work = Work(self)
        self._is_looking = False
        self.pairs: tuple[PairChoice, ...] = ()  # complete ones
        self.fits: dict[PairChoice, FitWord] = {}

    @Slot()
    def look(self) -> None:
        """Off this thread; `changed` where something is different."""
        if self._is_looking:
            return
        self._is_looking = True
        open_, kv_bits = self._open_store, int(self._settings.text("performance/kv_bits"))

        def work() -> dict[PairChoice, FitWord]:
            store = open_(lambda _: None)
            try:
                rows = [row for row in store.pairs() if row.shelf is Shelf.ON_MAC and row.is_ready]
                return {row.choice: _fit(store, row, kv_bits) for row in rows}
            finally:
                store.close()

        self._work.do(work, self._take, self._give_up, "slipstream-look")

    def _take(self, found: dict[PairChoice, FitWord]) -> None:
        self._is_looking = False
        if found != self.fits:
            self.pairs, self.fits = tuple(found), found
            self.changed.emit()

    def _give_up(self, _: SlipstreamError) -> None:
        self._is_looking = False


def _fit(store: Store, row: PairRow, kv_bits: int) -> FitWord:
    try:
        return store.fit(row, CONTEXT, kv_bits).word
    except SlipstreamError:
        return FitWord.UNKNOWN
