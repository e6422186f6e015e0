"""The downloads, moving and waiting, one card each."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from slipstream_app.models.pairs import DownloadState
from slipstream_app.theme import Theme
from slipstream_app.widgets.download_card import DownloadCard
from slipstream_app.widgets.scrolling import CardColumn


class DownloadList(CardColumn):
    pause_asked = Signal(str)  # repository
    resume_asked = Signal(str)
    page_asked = Signal(str)  # address
    discard_asked = Signal(str)  # repository
    token_given = Signal(str, str)  # repository, token

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        nothing = self.tr("Nothing is being downloaded. Choose a pair under Suggested.")
        super().__init__(theme, self.tr("Downloads"), nothing, parent)
        self._theme = theme
        self.cards: dict[str, DownloadCard] = {}

    @property
    def moving(self) -> int:
        return sum(card.is_moving for card in self.cards.values())

    def is_moving(self, repo: str) -> bool:
        card = self.cards.get(repo)
        return card is not None and card.is_moving

    def show_state(self, state: DownloadState) -> DownloadCard:
        card = self.cards.get(state.repo)
        if card is None:
            card = self.cards[state.repo] = DownloadCard(self._theme, state)
            card.pause_asked.connect(self.pause_asked)
            card.resume_asked.connect(self.resume_asked)
            card.page_asked.connect(self.page_asked)
            card.token_given.connect(self.token_given)
            card.discard_asked.connect(self.discard_asked)
            self.put(card)
        card.show_state(state)
        return card

    def drop(self, repo: str) -> None:
        card = self.cards.pop(repo, None)
        if card is not None:
            self.take(card)
