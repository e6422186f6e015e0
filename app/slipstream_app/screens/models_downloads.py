"""The Models screen's downloads: begun, shown, gone on with, discarded, and what is said beside them."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices

from slipstream.errors import SlipstreamError
from slipstream_app.models.pairs import DownloadState, Fetch, Missing, PairTable, Store
from slipstream_app.models.work import Work
from slipstream_app.numbers import size_text
from slipstream_app.theme import Theme
from slipstream_app.widgets.banner import Banner, Banners, Kind
from slipstream_app.widgets.download_card import DownloadCard
from slipstream_app.widgets.download_list import DownloadList


class ModelDownloads(QObject):
    changed = Signal()  # one began, ended or was paused
    arrived = Signal()  # something else lies on the disk now
    finished = Signal()  # one is whole

    def __init__(
        self,
        theme: Theme,
        banners: Banners,
        store: Store,
        table: PairTable,
        complain: Callable[[SlipstreamError], object],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._banners = banners
        self._store = store
        self._table = table
        self._complain = complain
        self._work = Work(self)
        self._wanted: dict[str, Missing] = {}
        self.page = DownloadList(theme)
        self.page.pause_asked.connect(store.pause)
        self.page.resume_asked.connect(self._on_resume)
        self.page.page_asked.connect(self._on_page)
        self.page.token_given.connect(self._on_token)
        self.page.discard_asked.connect(self._on_discard)

    def start(self, half: Missing) -> None:
        self._wanted[half.repo] = half
        try:
            self._store.start(half)
        except SlipstreamError as error:
            self._complain(error)

    @Slot(object)
    def show_state(self, state: DownloadState) -> None:
        card = self.page.show_state(state)
        if state.is_full:
            self._name_largest(card)
        if state.is_offline:
            self._banners.show(Banner("models.offline", Kind.WARNING, self.tr("Downloads need a connection.")))
        elif state.fetch is Fetch.RUNNING:
            self._banners.dismiss("models.offline")
        self.changed.emit()
        if state.is_over:
            self.arrived.emit()
            self.finished.emit()

    def _name_largest(self, card: DownloadCard) -> None:
        """What could make room, where a disk is full."""
        rows = [row for row in self._table.everything if row.is_removable and row.bytes]
        largest = sorted(rows, key=lambda row: -(row.bytes or 0))[:3]
        if largest:
            named = ", ".join(f"{row.title} ({size_text(row.bytes or 0)})" for row in largest)
            card.words.say(self.tr("{0} The largest pairs here: {1}.").format(card.words.text(), named))

    @Slot(str)
    def _on_discard(self, repo: str) -> None:
        def then(_: None) -> None:
            self.page.drop(repo)
            self.arrived.emit()

        self._work.do(lambda: self._store.discard(repo), then, self._complain)

    @Slot(str)
    def _on_resume(self, repo: str) -> None:
        self.start(self._wanted.get(repo, Missing(repo, None)))

    @Slot(str, str)
    def _on_token(self, repo: str, token: str) -> None:
        self._work.do(lambda: self._store.save_token(token), lambda _: self._on_resume(repo), self._complain)

    @Slot(str)
    def _on_page(self, address: str) -> None:
        QDesktopServices.openUrl(QUrl(address))
