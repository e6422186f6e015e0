"""The downloads, moving and waiting, one card each."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QScrollArea, QVBoxLayout, QWidget

from slipstream_app.models.pairs import DownloadState
from slipstream_app.theme import M, Theme
from slipstream_app.widgets.download_card import DownloadCard
from slipstream_app.widgets.panel import wrapped


class DownloadList(QScrollArea):
    pause_asked = Signal(str)  # repository
    resume_asked = Signal(str)
    page_asked = Signal(str)  # address
    discard_asked = Signal(str)  # repository
    token_given = Signal(str, str)  # repository, token

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.cards: dict[str, DownloadCard] = {}
        self.nothing = wrapped(theme, self.tr("Nothing is being downloaded. Choose a pair under Suggested."), "muted")
        self.nothing.setAlignment(Qt.AlignmentFlag.AlignCenter)
        inside = QWidget()
        self._column = QVBoxLayout(inside)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(M)
        self._column.addWidget(self.nothing)
        self._column.addStretch(1)
        self.setWidget(inside)
        self.setWidgetResizable(True)
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(self.tr("Downloads"))

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
            self._column.insertWidget(self._column.count() - 1, card)
        card.show_state(state)
        self.nothing.hide()
        return card

    def drop(self, repo: str) -> None:
        card = self.cards.pop(repo, None)
        if card is not None:
            self._column.removeWidget(card)
            card.deleteLater()
        self.nothing.setVisible(not self.cards)
