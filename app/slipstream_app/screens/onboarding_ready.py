"""The first start's last card: the pair is loaded, how much faster it is here, and what its passes cost."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from slipstream.events import Event, Faulted, Loading, Ready, Status, Working
from slipstream.types import Mode
from slipstream_app.models.calibrating import Phase
from slipstream_app.models.self_test import Kind, SelfTest
from slipstream_app.numbers import number_text, part_text
from slipstream_app.screens.base import AppContext
from slipstream_app.theme import S
from slipstream_app.widgets.load_bar import LoadBar
from slipstream_app.widgets.panel import unbroken, wrapped


class ReadyCard(QWidget):
    """Nothing is measured before somebody asks for it, and all of it can be skipped."""

    def __init__(self, app: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._app = app
        self.test: SelfTest | None = None
        self._is_calibrating = False
        self.state = QLabel(wordWrap=True)
        self.bar = LoadBar()
        self.cancel = QPushButton(self.tr("Cancel"))
        self.cancel.setAccessibleName(self.tr("Cancel loading"))
        self.result = QLabel(wordWrap=True)
        self.result.setTextFormat(Qt.TextFormat.PlainText)
        self.costs = wrapped(app.theme, "", "muted")
        self.measure = QPushButton(self.tr("Measure it here"))
        self.skip = QPushButton(self.tr("Skip, measure later"))
        row = QHBoxLayout()
        row.setSpacing(S)
        for one in (self.cancel, self.measure, self.skip):
            row.addWidget(one)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(S)
        for widget in (self.state, self.bar, self.result, self.costs):
            column.addWidget(widget)
        column.addStretch(1)
        column.addLayout(row)
        self.measure.clicked.connect(self.run_test)
        self.skip.clicked.connect(self._on_skip)
        self.cancel.clicked.connect(app.session.unload)
        app.bus.status_changed.connect(self._on_status)
        app.bus.said.connect(self._on_said)
        app.calibrating.changed.connect(self._on_calibrating)
        self._on_status(app.session.status)

    @Slot()
    def run_test(self) -> None:
        """64 tokens of each kind of text, plainly and with drafts, as every answer is made; then a calibration."""
        self.test = SelfTest(self._app.session)
        self.result.setText(self.tr("Measuring: the same answers, plainly and with drafts…"))
        self.costs.say("")
        self._tend()

    def rest(self) -> None:
        """Nobody looks any more."""
        if self.test is not None:
            self.test.cancel()
        if self._is_calibrating:
            self._app.calibrating.stop()

    @Slot(int, object)
    def _on_said(self, number: int, event: Event) -> None:
        test = self.test
        if test is None or not test.take(number, event):
            return
        self.test = None
        choice = self._app.session.choice
        if choice is not None and test.speedup is not None and test.is_same:
            self._app.speedups.record(choice.title, {Mode.AUTO.value: test.speedup})
        self.result.setText(unbroken(self._words(test)))
        if test.speedup is not None:
            self._is_calibrating = True
            self._app.calibrating.attend()
            self._app.calibrating.start()
        self._tend()

    def _words(self, test: SelfTest) -> str:
        if test.error:
            return self.tr("It could not be measured: {0}").format(test.error)
        if test.speedup is None:
            return self.tr("Not measured.")
        gained = test.speedups
        speed = self.tr("Measured here: {0}× as fast on code, {1}× on prose; plain decoding has {2} tok/s.").format(
            number_text(gained[Kind.CODE]), number_text(gained[Kind.PROSE]), number_text(test.plain)
        )
        if test.is_same:
            return speed + " " + self.tr("With and without drafts the answers are the same, token for token.")
        return self.tr("The answers differ. Run a race to see where and why.")

    @Slot()
    def _on_calibrating(self) -> None:
        """What passes cost here: from it Auto knows what pays."""
        now = self._app.calibrating
        if self._is_calibrating:
            done = self.tr("Measuring what its passes cost here: {0} of {1}").format(now.done, now.total or "…")
            words = {
                Phase.RUNNING: done,
                Phase.REFUSED: self.tr("This machine is {0}: measure later, in Settings.").format(now.why),
                Phase.FAILED: self.tr("What its passes cost could not be measured: {0}").format(now.why),
                Phase.MEASURED: self.tr("What its passes cost here is known now, so Auto chooses well at once."),
            }
            self.costs.say(words.get(now.phase, ""))
            self._is_calibrating = now.phase is Phase.RUNNING
        self._tend()

    @Slot()
    def _on_skip(self) -> None:
        self.rest()

    @Slot(object)
    def _on_status(self, status: Status) -> None:
        match status:
            case Loading(name, done, total) if total:
                self.state.setText(self.tr("Loading {0}: {1}").format(name, part_text(done, total)))
            case Loading(name):
                self.state.setText(self.tr("Loading {0}…").format(name))
            case Ready(info) | Working(info):
                self.state.setText(self.tr("{0} is loaded.").format(info.name))
            case Faulted(error):
                self.state.setText(error.message)
            case _:
                self.state.setText(self.tr("No model is loaded yet."))
        self.bar.show_status(status)
        self.cancel.setVisible(isinstance(status, Loading))
        self._tend()

    def _tend(self) -> None:
        is_measuring = self.test is not None or self._is_calibrating
        self.measure.setVisible(not is_measuring)
        self.measure.setEnabled(self._app.session.info is not None)
        self.skip.setVisible(is_measuring)
