"""A drafter in the making: how far it is, its picture, and pause, continue, cancel."""

from __future__ import annotations

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QProgressBar, QWidget

from slipstream_app.models.training import Training
from slipstream_app.models.training_progress import AT_PAUSE, MOVING, Stage
from slipstream_app.numbers import count_text, number_text, share_text, size_text
from slipstream_app.theme import L, M, Theme
from slipstream_app.widgets.panel import Figure, Panel, button, wrapped
from slipstream_app.widgets.training_charts import AcceptanceChart, LossChart

SURE_MS = 8000  # for the second press of Cancel


class TrainingCard(Panel):
    start_asked = Signal(object, bool)  # Training that is to begin or go on, and whether although it would gain little
    cancelled = Signal(object)  # Training: it and what it wrote are to go
    load_asked = Signal(object)  # Training, whose drafter is there

    def __init__(self, theme: Theme, training: Training, parent: QWidget | None = None) -> None:
        title = self.tr("A drafter for {0}").format(training.wanted.title)
        super().__init__(theme, title, parent)
        self.training = training
        self._sure_stage: Stage | None = None  # in which Cancel was pressed once
        self._sure = QTimer(self, singleShot=True, interval=SURE_MS)
        self._sure.timeout.connect(self._on_unsure)
        name = training.wanted.title
        self.load = button(self.tr("Load"), "primary", name=self.tr("Load {0} with its new drafter").format(name))
        self.anyway = button(self.tr("Make it anyway"))
        self.switch = button("")
        self.cancel = button("", name=self.tr("Cancel the drafter for {0}").format(name))
        self.load.clicked.connect(self._on_load)
        self.anyway.clicked.connect(self._on_anyway)
        self.switch.clicked.connect(self._on_switch)
        self.cancel.clicked.connect(self._on_cancel)
        for widget in (self.load, self.anyway, self.switch, self.cancel):
            self.head.addWidget(widget)
        self.words = wrapped(theme)
        self.words.setAccessibleName(self.tr("How far it is"))
        self.goes = wrapped(theme)  # what would be deleted
        self.goes.hide()
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setFixedHeight(8)
        self.bar.setRange(0, 1000)
        self.bar.setAccessibleName(title)
        self.tokens = Figure(theme, self.tr("tokens written"), "000,000,000")
        self.step = Figure(theme, self.tr("step"), "000,000")
        self.loss = Figure(theme, self.tr("loss"), "00.000")
        self.per_round = Figure(theme, self.tr("tokens per round"), "00.00")
        figures = QHBoxLayout()
        figures.setSpacing(L)
        for figure in (self.tokens, self.step, self.loss, self.per_round):
            figures.addWidget(figure)
        figures.addStretch(1)
        self.positions = AcceptanceChart(theme)
        self.losses = LossChart(theme)
        self._charts = QGridLayout()
        self._charts.setSpacing(M)
        self.body.addWidget(self.words)
        self.body.addWidget(self.goes)
        self.body.addWidget(self.bar)
        self.body.addLayout(figures)
        self.body.addLayout(self._charts)
        self.fit(1000)
        training.changed.connect(self.refresh)
        self.refresh()

    def fit(self, width: int) -> None:
        """The charts side by side where there is room."""
        is_narrow = width < self.theme.px(680)
        for number, chart in enumerate((self.positions, self.losses)):
            self._charts.addWidget(chart, *((number, 0) if is_narrow else (0, number)))

    @Slot()
    def refresh(self) -> None:
        training, made = self.training, self.training.progress
        stage = training.stage
        self.words.say(self._sentence(), _ROLES.get(stage, ""))
        self.bar.setVisible(stage in MOVING or stage in AT_PAUSE)
        is_waiting = stage in (Stage.STARTING, Stage.JUDGING)
        self.bar.setRange(0, 0 if is_waiting else 1000)
        share = made.share if made.loss else made.shard / made.shards if made.shards else 0.0
        self.bar.setValue(round(1000 * share))
        self.tokens.set(count_text(made.tokens) if made.tokens else "–")
        self.step.set(count_text(made.step) if made.loss else "–")
        self.loss.set(number_text(made.loss[-1][1], 3) if made.loss else "–")
        self.per_round.set(number_text(made.per_round, 2) if made.per_round else "–")
        self.positions.show_figures(made.by_position)
        self.losses.show_points(made.loss)
        self.load.setVisible(stage is Stage.DONE)
        self.anyway.setVisible(stage is Stage.REFUSED)
        self.switch.setVisible(stage in (*AT_PAUSE, Stage.HALTED, Stage.FAILED) or training.can_pause)
        self.switch.setText(
            self.tr("Pause")
            if training.can_pause
            else self.tr("Try again")
            if stage is Stage.FAILED
            else self.tr("Continue")
        )
        self.switch.setAccessibleName(f"{self.switch.text()}: {training.wanted.title}")
        if stage is not self._sure_stage:
            self._sure.stop()
            self._sure_stage = None
        self._tend_cancel()

    def _tend_cancel(self) -> None:
        is_sure = self._sure_stage is not None
        over = self.training.stage in (Stage.DONE, Stage.REFUSED)
        asks = self.tr("Close") if over else self.tr("Cancel…")
        self.cancel.setText(self.tr("Really delete") if is_sure else asks)
        self.goes.setVisible(is_sure)

    def _sentence(self) -> str:
        training, made = self.training, self.training.progress
        percent = share_text(made.share)
        mean = number_text(sum(made.worth.values()) / len(made.worth), 2) if made.worth else "–"
        if training.is_stopping:
            return self.tr("It ends after this step, and can be continued from there.")
        begun = self.tr("The drafter learns: {0} done.").format(percent)
        return {
            Stage.WAITING: self.tr("It begins when the one that is being made has ended its step."),
            Stage.STARTING: self.tr("The model is loaded, then writes its first conversations."),
            Stage.WRITING: self.tr("The model writes conversations: part {0} of {1} is done.").format(
                made.shard, made.shards
            ),
            Stage.FITTING: begun if made.loss else self.tr("The conversations are written. Training begins."),
            Stage.JUDGING: self.tr("It is judged by conversations that it has not seen."),
            Stage.PAUSING: self.tr("Pauses after this part, and goes on from there; the model stays in memory."),
            Stage.PAUSED: self.tr("Paused. Continue goes on from here; the model stays in memory."),
            Stage.HALTED: self.tr("Not running. Continue goes on from the last step that was saved."),
            Stage.REFUSED: self.tr("Not made: {0}.").format(training.why),
            Stage.FAILED: self.tr("It failed: {0}").format(training.why),
            Stage.DONE: self.tr(
                "Done: {0} tokens per round on conversations that it has not seen. "
                "It is listed under On this machine. Race it to see what it gains."
            ).format(mean),
        }[training.stage]

    @Slot()
    def _on_switch(self) -> None:
        if self.training.can_pause:
            self.training.pause()
        else:
            self.start_asked.emit(self.training, False)

    @Slot()
    def _on_anyway(self) -> None:
        self.start_asked.emit(self.training, True)

    @Slot()
    def _on_load(self) -> None:
        self.load_asked.emit(self.training)

    @Slot()
    def _on_cancel(self) -> None:
        """At the second press, where something would be deleted; what that is stands there meanwhile."""
        count, size = self.training.leftovers()
        is_over = self.training.stage in (Stage.DONE, Stage.REFUSED)
        if self._sure_stage is not None or (is_over and not count):
            self.cancelled.emit(self.training)
            return
        if self.training.stage is Stage.DONE:
            words = self.tr("The drafter stays. The conversations are deleted: %n file(s) ({0}) in {1}.", "", count)
        else:
            words = self.tr(
                "What it has learned so far is deleted, with the conversations: %n file(s) ({0}) in {1}.", "", count
            )
        self.goes.say(words.format(size_text(size), self.training.work), "warn")
        self._sure_stage = self.training.stage
        self._sure.start()
        self._tend_cancel()

    @Slot()
    def _on_unsure(self) -> None:
        self._sure_stage = None
        self._tend_cancel()


_ROLES = {Stage.REFUSED: "warn", Stage.FAILED: "bad", Stage.DONE: "ok"}
