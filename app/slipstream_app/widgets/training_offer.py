"""What making a drafter would take and bring, before it begins, and the button that begins it."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QWidget

from slipstream_app.models.training_forecast import AMOUNTS, USUAL, Forecast
from slipstream_app.numbers import GAP, count_text, number_text, size_text, span_text
from slipstream_app.theme import L, S, Theme
from slipstream_app.widgets.panel import Figure, Panel, Words, button, wrapped


class TrainingOffer(Panel):
    asked = Signal(int)  # conversations: what would it take?
    agreed = Signal(int, bool)  # conversations, and whether although it would gain little
    declined = Signal()

    def __init__(self, theme: Theme, title: str, parent: QWidget | None = None) -> None:
        super().__init__(theme, self.tr("Make a drafter for {0}").format(title), parent)
        about = self.tr(
            "The model writes conversations, and a small network learns from them to guess what it says next. "
            "Nothing leaves this machine, and the model's answers stay the same."
        )
        self.about = wrapped(theme, about, "muted")
        self.amount = QComboBox()
        self.amount.setAccessibleName(self.tr("How thorough"))
        names = (self.tr("Short"), self.tr("Usual"), self.tr("Thorough"))
        for name, count in zip(names, AMOUNTS, strict=True):
            self.amount.addItem(self.tr("{0}: {1} conversations").format(name, count_text(count)), count)
        self.amount.setCurrentIndex(AMOUNTS.index(USUAL))
        self.amount.currentIndexChanged.connect(self._on_amount)
        self.time = Figure(theme, self.tr("time, about"), "00.0 h")
        self.energy = Figure(theme, self.tr("energy, about"), "0000 Wh")
        self.per_round = Figure(theme, self.tr("tokens per round"), "00.00")
        self.gain = Figure(theme, self.tr("of plain decoding's speed"), "00.00×")
        figures = QHBoxLayout()
        figures.setSpacing(L)
        for figure in (self.time, self.energy, self.per_round, self.gain):
            figures.addWidget(figure)
        figures.addStretch(1)
        self.memory = wrapped(theme)
        self.memory.hide()
        self.others = wrapped(theme)
        self.others.hide()
        self.words = wrapped(theme, self.tr("Working out what it would take…"), "muted")
        self.start = button(self.tr("Start"), "primary", name=self.tr("Start making the drafter"))
        self.anyway = button(self.tr("Make it anyway"))
        self.decline = button(self.tr("Not now"))
        self.start.clicked.connect(self._on_start)
        self.anyway.clicked.connect(self._on_anyway)
        self.decline.clicked.connect(self.declined)
        row = QHBoxLayout()
        row.setSpacing(S)
        row.addWidget(Words(theme, self.tr("How thorough"), "muted"))
        row.addWidget(self.amount)
        row.addStretch(1)
        for widget in (self.decline, self.anyway, self.start):
            row.addWidget(widget)
        self.body.addWidget(self.about)
        self.body.addLayout(figures)
        self.body.addWidget(self.words)
        self.body.addWidget(self.memory)
        self.body.addWidget(self.others)
        self.body.addLayout(row)
        self._offer(None)

    @property
    def conversations(self) -> int:
        return int(self.amount.currentData())

    def show_others(self, *, ends: bool, deletes: Path | None) -> None:
        """What a start would do to others: one that is being made, and what an earlier one of this model wrote."""
        words: list[str] = []
        if ends:
            words.append(self.tr("The drafter that is being made ends after its step, and can be continued later."))
        if deletes is not None:
            said = self.tr("What the earlier one wrote on the way is deleted ({0}); a finished drafter stays.")
            words.append(said.format(deletes))
        self.others.say(" ".join(words), "warn")
        self.others.setVisible(bool(words))

    def show_forecast(self, found: Forecast) -> None:
        made = found.estimate
        self._show_memory(found)
        self.time.set(span_text(found.seconds))
        self.energy.set(f"{number_text(made.watt_hours, 0)}{GAP}Wh")
        self.per_round.set(number_text(made.per_round, 2))
        self.gain.set(f"{number_text(made.gain, 2)}×")
        if made.is_worth_it:
            basis = (
                self.tr("Worked out from what was measured with this model here.")
                if found.is_measured
                else self.tr("An estimate by this machine's kind; a loaded model that was calibrated is judged better.")
            )
            parts = self.tr("{0} of writing, then {1} of training; it can be paused.").format(
                span_text(made.writing_s), span_text(made.training_s)
            )
            self.words.say(f"{parts} {basis}", "muted")
        else:
            words = self.tr("It would make this model {0} times as fast: {1}. n-gram lookup costs nothing.")
            self.words.say(words.format(number_text(made.gain, 2), made.reason), "warn")
        self._offer(made.is_worth_it)
        if found.fits is False:
            self.start.setEnabled(False)
            self.anyway.setEnabled(False)

    def _show_memory(self, found: Forecast) -> None:
        needed, held, limit = (size_text(number) for number in (found.needed, found.held, found.limit))
        if found.fits is False:
            words = self.tr("It cannot be made here: the model unpacked alone takes {0}, and a model may take {1}.")
            self.memory.say(words.format(needed, limit), "bad")
        else:
            words = self.tr("Training loads the model once more, unpacked: at least {0} beside {1} here, of {2}.")
            is_tight = found.needed + found.held > found.limit
            if is_tight:
                words += " " + self.tr("Unload the chat's model first.")
            self.memory.say(words.format(needed, held, limit), "warn" if is_tight else "muted")
        self.memory.show()

    def show_trouble(self, sentence: str) -> None:
        self.words.say(sentence, "bad")
        self._offer(None)

    def _offer(self, is_worth_it: bool | None) -> None:
        """None: it is not known whether it is."""
        self.start.setVisible(is_worth_it is not False)
        self.start.setEnabled(is_worth_it is not None)
        self.anyway.setEnabled(True)
        self.anyway.setVisible(is_worth_it is False)

    @Slot()
    def _on_amount(self) -> None:
        self.start.setEnabled(False)
        self.anyway.setEnabled(False)
        self.asked.emit(self.conversations)

    @Slot()
    def _on_start(self) -> None:
        self.agreed.emit(self.conversations, False)

    @Slot()
    def _on_anyway(self) -> None:
        self.agreed.emit(self.conversations, True)
