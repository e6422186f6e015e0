"""Drafters in the making, and the offer to make one for a model."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QWidget

from slipstream.errors import SlipstreamError
from slipstream_app.models.training import Training, Wanted
from slipstream_app.models.training_forecast import Forecast
from slipstream_app.models.training_progress import Stage
from slipstream_app.models.trainings import Trainings
from slipstream_app.models.work import Work
from slipstream_app.theme import Theme
from slipstream_app.widgets.scrolling import CardColumn
from slipstream_app.widgets.training_card import TrainingCard
from slipstream_app.widgets.training_offer import TrainingOffer

AskForecast = Callable[[int], Forecast]  # for so many conversations; off the main thread, may raise SlipstreamError


class TrainingPage(CardColumn):
    load_asked = Signal(object)  # Training, whose drafter is to be loaded

    def __init__(self, theme: Theme, trainings: Trainings, parent: QWidget | None = None) -> None:
        nothing = self.tr("No drafter is being made. Choose a model under On this machine, then Make a drafter.")
        super().__init__(theme, self.tr("Drafters in the making"), nothing, parent)
        self._theme = theme
        self._trainings = trainings
        self._work = Work(self)
        self._ask: AskForecast | None = None
        self._ask_number = 0
        self._wanted: Wanted | None = None
        self.offer: TrainingOffer | None = None
        self.cards: dict[str, TrainingCard] = {}
        trainings.changed.connect(self._on_trainings)
        self._on_trainings()

    def propose(self, wanted: Wanted, ask: AskForecast) -> None:
        """Offer to make it; where it is being made already, that is shown."""
        self.withdraw()
        card = self.cards.get(wanted.key)
        if card is not None and card.training.stage is not Stage.DONE:
            self.ensureWidgetVisible(card)
            return
        self._wanted, self._ask = wanted, ask
        self.offer = TrainingOffer(self._theme, wanted.title)
        self.offer.show_others(
            ends=any(training.has_process for training in self._trainings.all),
            deletes=None if card is None else card.training.work,
        )
        self.offer.asked.connect(self._on_ask)
        self.offer.agreed.connect(self._on_agreed)
        self.offer.declined.connect(self.withdraw)
        self.put(self.offer, is_first=True)
        self._on_ask(self.offer.conversations)

    @Slot()
    def withdraw(self) -> None:
        self._ask_number += 1
        if self.offer is not None:
            self.take(self.offer)
            self.offer = None

    @Slot(int)
    def _on_ask(self, conversations: int) -> None:
        self._ask_number += 1
        number, ask = self._ask_number, self._ask
        assert ask is not None

        def then(found: Forecast) -> None:
            if number == self._ask_number and self.offer is not None:
                self.offer.show_forecast(found)

        def or_else(error: SlipstreamError) -> None:
            if number == self._ask_number and self.offer is not None:
                self.offer.show_trouble(error.message)

        self._work.do(lambda: ask(conversations), then, or_else, "slipstream-forecast")

    @Slot(int, bool)
    def _on_agreed(self, conversations: int, anyway: bool) -> None:
        wanted = self._wanted
        assert wanted is not None
        self.withdraw()
        if (old := self.cards.get(wanted.key)) is not None:
            self._trainings.drop(old.training)
        made = Wanted(wanted.title, wanted.model, conversations, anyway, wanted.extra)
        self._trainings.start(self._trainings.open(made))

    @Slot()
    def _on_trainings(self) -> None:
        now = {training.key: training for training in self._trainings.all}
        for key, card in list(self.cards.items()):
            if now.get(key) is not card.training:
                del self.cards[key]
                self.take(card)
        for key, training in now.items():
            if key not in self.cards:
                card = self.cards[key] = TrainingCard(self._theme, training)
                card.start_asked.connect(self._on_start_asked)
                card.cancelled.connect(self._on_cancelled)
                card.load_asked.connect(self.load_asked)
                self.put(card)

    @Slot(object, bool)
    def _on_start_asked(self, training: Training, anyway: bool) -> None:
        self._trainings.start(training, anyway=anyway)

    @Slot(object)
    def _on_cancelled(self, training: Training) -> None:
        self._trainings.drop(training)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        for card in self.cards.values():
            card.fit(self.viewport().width())
