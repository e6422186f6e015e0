"""Race: plain against drafted decoding on the loaded pair, with the verdict whether they said the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from PySide6.QtCore import QElapsedTimer, QSize, Qt, QTimer, Slot
from PySide6.QtGui import QGuiApplication, QHideEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QFileDialog,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QProgressBar,
    QScrollArea,
    QSizePolicy,
    QSpinBox,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from slipstream.errors import SlipstreamError
from slipstream.events import Loading, Status
from slipstream.measure import report
from slipstream.measure.prompts import DEFAULT, Question
from slipstream.measure.race import Arm
from slipstream.measure.verdict import Verdict
from slipstream.types import Mode, Options
from slipstream_app.bridge.pair import BUILT_IN
from slipstream_app.models.power import on_battery
from slipstream_app.models.race import ArmProgress, ArmState, RacePlan, RaceResult, RaceRunner, Replay
from slipstream_app.screens.base import AppContext, Screen
from slipstream_app.theme import XS, L, M, S
from slipstream_app.widgets.banner import Banner, Kind
from slipstream_app.widgets.panel import Panel, Words, button, set_role, wrapped
from slipstream_app.widgets.race_arm import RaceArm

REPAINT_MS = 50
MAX_TOKENS, TRIALS = 128, 3
ARM_WIDTH = 250  # at least, for one arm beside another
COLOURS = {
    Mode.BASELINE: "plain",
    Mode.LOOKUP: "ngram",
    Mode.DSPARK: "draft",
    Mode.DFLASH: "accent",
    Mode.MTP: "draft",
    Mode.AUTO: "ok",
}
OWN = "own"


class RaceScreen(Screen):
    NAME: ClassVar[str] = "race"

    def __init__(self, app: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(app, parent)
        self.result: RaceResult | None = None
        self.replay: Replay | None = None
        self._marks: list[str] = []
        self._others = 0  # requests that were not the race's while it ran
        self._outcome = ""  # of the race that ended without a verdict
        self._may_disturb = False  # the user wants it although clients are connected
        self.cards: dict[Mode, RaceArm] = {}
        self.arm_buttons: dict[Mode, QToolButton] = {}
        self.runner = RaceRunner(lambda job: app.session.put(job, "race"), self)
        self.runner.progressed.connect(self._on_progress)
        self.runner.finished.connect(self._on_finished)
        self.runner.failed.connect(self._on_failed)
        self.runner.stopped.connect(self._on_stopped)
        self._paint = QTimer(self, singleShot=True, interval=REPAINT_MS)
        self._paint.timeout.connect(self._show_progress)
        self._play = QTimer(self, interval=REPAINT_MS)
        self._play.timeout.connect(self._on_play)
        self._clock = QElapsedTimer()

        column = QVBoxLayout()
        column.setContentsMargins(L, M, L, L)
        column.setSpacing(M)
        column.addWidget(self._setup_panel())
        column.addWidget(self._notice_panel())
        column.addWidget(self._verdict_panel())
        self._grid = QGridLayout()
        self._grid.setSpacing(M)
        column.addLayout(self._grid, 1)
        column.addStretch(0)
        for panel in (self.setup_panel, self.notice_panel, self.verdict_panel):
            panel.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        inside = QWidget()
        inside.setLayout(column)
        area = QScrollArea()
        area.setWidget(inside)
        area.setWidgetResizable(True)
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(area)

        app.bus.status_changed.connect(self._on_status)
        app.bus.opened.connect(self._on_opened)
        app.bus.server_changed.connect(self._tend)
        self._offer_arms()

    @property
    def title(self) -> str:
        return self.tr("Race")

    # What it is made of.

    def _setup_panel(self) -> QWidget:
        self.prompt = QComboBox()
        self.prompt.setAccessibleName(self.tr("Prompt"))
        names = {"code": self.tr("Code"), "maths": self.tr("Maths"), "chat": self.tr("Chat")}
        for question in DEFAULT:
            self.prompt.addItem(names.get(question.kind, question.kind), (question,))
        self.prompt.addItem(self.tr("All three"), DEFAULT)
        self.prompt.addItem(self.tr("My own…"), OWN)
        self.prompt.currentIndexChanged.connect(self._on_prompt)
        self.own = QPlainTextEdit()
        self.own.setPlaceholderText(self.tr("What every arm is asked"))
        self.own.setAccessibleName(self.tr("Your own prompt"))
        self.own.setTabChangesFocus(True)
        self.own.setFixedHeight(self.app.theme.px(64))
        self.own.textChanged.connect(self._tend)
        self.own.hide()
        self.tokens = _spin(1, 8192, MAX_TOKENS, self.tr("Tokens of each answer"))
        self.trials = _spin(1, 20, TRIALS, self.tr("Rounds of the race"))
        self.seed = _spin(0, 2**31 - 1, 0, self.tr("Seed"))
        self.temperature = QDoubleSpinBox()
        self.temperature.setRange(0.0, 2.0)
        self.temperature.setSingleStep(0.1)
        self.temperature.setAccessibleName(self.tr("Temperature"))
        self.temperature.valueChanged.connect(self._on_temperature)
        self.seed.setEnabled(False)
        self.thinking = QCheckBox(self.tr("Thinking"))
        self.start = button(self.tr("Start"), "primary")
        self.start.clicked.connect(self.toggle)
        self._fields = QGridLayout()
        self._fields.setHorizontalSpacing(M)
        self._fields.setVerticalSpacing(XS)
        self._named: list[tuple[QLabel, QWidget]] = []
        for name, widget in (
            (self.tr("Prompt"), self.prompt),
            (self.tr("Tokens"), self.tokens),
            (self.tr("Temperature"), self.temperature),
            (self.tr("Seed"), self.seed),
            (self.tr("Rounds"), self.trials),
        ):
            label = Words(self.app.theme, name, "muted", scale=0.9)
            label.setBuddy(widget)
            self._named.append((label, widget))
        self._arm_row = QHBoxLayout()
        self._arm_row.setSpacing(XS)
        self._arm_row.addWidget(Words(self.app.theme, self.tr("Arms"), "muted", scale=0.9))
        self._arm_row.addStretch(1)
        self._arm_row.addWidget(self.thinking)
        self._arm_row.addWidget(self.start)
        self.order = Words(self.app.theme, "", "muted", scale=0.9)
        self.setup_panel = Panel(self.app.theme)
        self.setup_panel.body.addLayout(self._fields)
        self.setup_panel.body.addWidget(self.own)
        self.setup_panel.body.addLayout(self._arm_row)
        self.setup_panel.body.addWidget(self.order)
        return self.setup_panel

    def _notice_panel(self) -> QWidget:
        """One sentence of why it cannot start, or should not, with what to do about it."""
        self.notice = wrapped(self.app.theme)
        self.first = button("")
        self.second = button("")
        self.first.clicked.connect(self._on_first)
        self.second.clicked.connect(self._on_second)
        self._first: Callable[[], object] | None = None
        self._second: Callable[[], object] | None = None
        row = QHBoxLayout()
        row.addWidget(self.notice, 1)
        row.addWidget(self.first)
        row.addWidget(self.second)
        self.notice_panel = Panel(self.app.theme)
        self.notice_panel.body.addLayout(row)
        self.progress = QProgressBar()
        self.progress.setTextVisible(False)
        self.progress.setFixedHeight(6)
        self.progress.setAccessibleName(self.tr("Runs done"))
        self.progress.hide()
        self.notice_panel.body.addWidget(self.progress)
        return self.notice_panel

    def _verdict_panel(self) -> QWidget:
        self.grade = Words(self.app.theme, "", scale=1.25, bold=True)
        self.sentence = wrapped(self.app.theme)
        self.marked = wrapped(self.app.theme, "", "warn")
        self.replay_button = button(self.tr("Replay side by side"))
        self.copy = button(self.tr("Copy report"))
        self.save = button(self.tr("Save…"), name=self.tr("Save the report"))
        self.use = button(self.tr("Use the winner"), "primary")
        self.replay_button.clicked.connect(self.play)
        self.copy.clicked.connect(self._on_copy)
        self.save.clicked.connect(self._on_save)
        self.use.clicked.connect(self.use_winner)
        row = QHBoxLayout()
        row.setSpacing(S)
        for widget in (self.replay_button, self.copy, self.save):
            row.addWidget(widget)
        row.addStretch(1)
        row.addWidget(self.use)
        self.verdict_panel = Panel(self.app.theme)
        for widget in (self.grade, self.sentence, self.marked):
            self.verdict_panel.body.addWidget(widget)
        self.verdict_panel.body.addLayout(row)
        self.verdict_panel.hide()
        return self.verdict_panel

    def _offer_arms(self) -> None:
        """A button for each mode the loaded pair has. What was chosen stays chosen where it still exists."""
        info = self.app.session.info
        if info is not None:
            modes = (Mode.BASELINE, *info.drafters, Mode.LOOKUP)
            if tuple(self.arm_buttons) != modes:
                off = {mode for mode, made in self.arm_buttons.items() if not made.isChecked()}
                for made in self.arm_buttons.values():
                    made.deleteLater()
                self.arm_buttons = {}
                for mode in modes:
                    made = QToolButton()
                    made.setText(self.arm_name(mode))
                    made.setCheckable(True)
                    made.setProperty("role", "flat")
                    made.setAccessibleName(self.tr("Arm: {0}").format(self.arm_name(mode)))
                    is_extra = mode is Mode.LOOKUP and len(modes) > 2
                    made.setChecked(mode not in off and not (is_extra and mode not in off and not off))
                    if mode is Mode.BASELINE:
                        made.setChecked(True)
                        made.setEnabled(False)
                        made.setToolTip(self.tr("Plain decoding is what the others are compared with."))
                    made.toggled.connect(self._on_arm)
                    self.arm_buttons[mode] = made
                    self._arm_row.insertWidget(len(self.arm_buttons), made)
        self._lay_cards()
        self._tend()

    def arm_name(self, mode: Mode) -> str:
        names = {
            Mode.BASELINE: self.tr("Plain"),
            Mode.DSPARK: "DSpark",
            Mode.DFLASH: "DFlash",
            Mode.MTP: "MTP",
            Mode.LOOKUP: self.tr("Lookup"),
            Mode.AUTO: self.tr("Auto"),
        }
        return names.get(mode, mode.value)

    @property
    def arms(self) -> tuple[Mode, ...]:
        return tuple(mode for mode, made in self.arm_buttons.items() if made.isChecked())

    def _lay_cards(self) -> None:
        """A card for each chosen arm, beside each other where there is room."""
        if tuple(self.cards) != self.arms:
            for card in self.cards.values():
                self._grid.removeWidget(card)
                card.hide()
                card.deleteLater()
            self.cards = {
                mode: RaceArm(self.app.theme, self.arm_name(mode), COLOURS.get(mode, "model")) for mode in self.arms
            }
        wide = max(1, (self.width() - 2 * L) // self.app.theme.px(ARM_WIDTH))
        count = max(1, len(self.cards))
        per_row = min(wide, count)
        if count == 4 and per_row == 3:
            per_row = 2
        for column in range(self._grid.columnCount()):
            self._grid.setColumnStretch(column, 1 if column < per_row else 0)
        for number, card in enumerate(self.cards.values()):
            self._grid.addWidget(card, *divmod(number, per_row))
        per_line = 5 if self.width() > self.app.theme.px(620) else 3
        for number, (label, widget) in enumerate(self._named):
            row, column = divmod(number, per_line)
            self._fields.addWidget(label, 2 * row, column)
            self._fields.addWidget(widget, 2 * row + 1, column)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay_cards()

    def minimumSizeHint(self) -> QSize:
        return QSize(360, 240)

    # What can be done now.

    def commands(self) -> Mapping[str, Callable[[], object]]:
        return {"race.toggle": self.toggle} if self.runner.is_running or self.start.isEnabled() else {}

    @Slot()
    def _tend(self, *_: object) -> None:
        """Words and switches for the state it is in."""
        running, info = self.runner.is_running, self.app.session.info
        self.start.setText(self.tr("Stop") if running else self.tr("Start"))
        set_role(self.start, "" if running else "primary")
        setup = (self.prompt, self.own, self.tokens, self.trials, self.temperature, self.thinking)
        for widget in setup:
            widget.setEnabled(not running)
        self.seed.setEnabled(not running and self.temperature.value() > 0)
        for mode, made in self.arm_buttons.items():
            made.setEnabled(not running and mode is not Mode.BASELINE)
        self.order.setText(
            self.tr("Interleaved: the order rotates, so no arm always runs on a warmer machine. One warm-up each.")
        )
        self.progress.setVisible(running)
        clients = self.app.server.clients
        can_start = False
        if running:
            self._show_progress()
        elif info is None and isinstance(self.app.session.status, Loading):
            self._notify(self.tr("The model is loading."))
        elif info is None:
            load = (self.tr("Load the built-in pair"), lambda: self.app.session.load(BUILT_IN))
            choose = (self.tr("Choose a pair…"), lambda: self.app.navigator.go("models"))
            self._notify(self.tr("No model is loaded."), load, choose)
        elif len(self.arms) < 2:
            words = self.tr("A race needs two arms: choose one beside plain.")
            if not info.drafters:
                words = self.tr("This pair has no drafter. Lookup can race against plain, or get a drafter for it.")
            self._notify(words, (self.tr("Get a drafter…"), lambda: self.app.navigator.go("models")))
        elif clients and not self._may_disturb:
            self._notify(
                self.tr("%n client(s) are being answered: results would be disturbed.", "", clients),
                (self.tr("Stop the server"), self.app.server.stop),
                (self.tr("Run anyway (marked)"), self._run_anyway),
            )
        elif self.prompt.currentData() == OWN and not self.own.toPlainText().strip():
            self._notify(self.tr("Write what every arm is to be asked."))
        else:
            can_start = True
            battery = self.tr("On battery: speeds may be lower, and the report will say so.") if on_battery() else ""
            self._notify(self._outcome or battery)
        self.start.setEnabled(running or can_start)
        self.commands_changed.emit()

    def _notify(
        self,
        words: str,
        first: tuple[str, Callable[[], object]] | None = None,
        second: tuple[str, Callable[[], object]] | None = None,
    ) -> None:
        self.notice.say(words)
        self._first, self._second = first and first[1], second and second[1]
        for made, choice in ((self.first, first), (self.second, second)):
            made.setVisible(choice is not None)
            if choice is not None:
                made.setText(choice[0])
        self.notice_panel.setVisible(bool(words))

    @Slot()
    def _on_first(self) -> None:
        if self._first is not None:
            self._first()
            self._tend()

    @Slot()
    def _on_second(self) -> None:
        if self._second is not None:
            self._second()

    def _run_anyway(self) -> None:
        self._may_disturb = True
        self._tend()
        self.toggle()

    # Running.

    @Slot()
    def toggle(self) -> None:
        """Start, or stop what runs."""
        if self.runner.is_running:
            self.runner.stop()
            return
        self._tend()  # a client may have come since
        info = self.app.session.info
        if info is None or not self.start.isEnabled():
            return
        self._end_replay()
        self.result = None
        self._outcome = ""
        self.verdict_panel.hide()
        self._marks = []
        self._others = 0
        if clients := self.app.server.clients:
            self._marks.append(f"{clients} clients were connected")  # the report is in English
        if on_battery():
            self._marks.append("this machine ran on its battery")
        for card in self.cards.values():
            card.show_text("")
            card.badge.say("")
            card.against.hide()
            card.speed.set("–")
        self.runner.start(self.plan(), info)
        self._tend()

    def plan(self) -> RacePlan:
        asked = self.prompt.currentData()
        questions = (Question("own", self.own.toPlainText().strip()),) if asked == OWN else tuple(asked)
        options = Options(
            temperature=round(self.temperature.value(), 2), seed=self.seed.value(), max_tokens=self.tokens.value()
        )
        return RacePlan(questions, self.arms, options, self.trials.value(), self.thinking.isChecked())

    @Slot(int, str, object)
    def _on_opened(self, job: int, source: str, request: object) -> None:
        if self.runner.is_running and source != "race":
            self._others += 1

    @Slot()
    def _on_progress(self) -> None:
        if self.isVisible() and not self._paint.isActive():
            self._paint.start()

    @Slot()
    def _show_progress(self) -> None:
        runner = self.runner
        if not runner.is_running:
            return
        trial = self.tr("warm-up") if runner.trial < 0 else self.tr("round {0}").format(runner.trial + 1)
        done = min(runner.done + 1, runner.total)
        words = self.tr("Run {0} of {1}, {2}").format(done, runner.total, trial)
        if runner.done == runner.total:
            words = self.tr("Comparing what they said…")
        self._notify(words)
        self.progress.setRange(0, runner.total)
        self.progress.setValue(runner.done)
        for arm in runner.arms:
            card = self.cards[arm.mode]
            card.show_text(arm.text)
            card.state.say(self._state_words(arm))
            if arm.tps is not None:
                card.speed.set(f"{arm.tps:.1f}", is_stale=arm.state is not ArmState.ENDED)

    def _state_words(self, arm: ArmProgress) -> str:
        return {
            ArmState.WAITING: self.tr("Waiting for its turn"),
            ArmState.READING: self.tr("Reading the prompt"),
            ArmState.WRITING: self.tr("{0} tokens").format(arm.tokens),
            ArmState.ENDED: self.tr("{0} tokens, done").format(arm.tokens),
        }[arm.state]

    @Slot(object)
    def _on_failed(self, error: SlipstreamError) -> None:
        self._paint.stop()
        self._may_disturb = False
        self._outcome = self.tr("The race ended: {0}").format(error.message)
        self._tend()

    @Slot()
    def _on_stopped(self) -> None:
        self._paint.stop()
        self._may_disturb = False
        self._outcome = self.tr("Stopped. Nothing is concluded from part of a race.")
        self._tend()

    # The verdict.

    @Slot(object)
    def _on_finished(self, result: RaceResult) -> None:
        self._paint.stop()
        self._may_disturb = False
        if self._others:
            self._marks.append(f"{self._others} other requests ran during the race")
        self.result = replace(result, plan=replace(result.plan, marks=tuple(self._marks)))
        self.replay = Replay(self.result.last_trial)
        for run in self.result.last_trial:
            self.cards[run.mode].show_text(run.answer.text)
        for arm in result.race.arms:
            self._show_arm(self.cards[arm.mode], arm)
        self._show_verdict(self.result)
        self._remember(self.result)
        self._tend()

    def _remember(self, result: RaceResult) -> None:
        """For the list of pairs: what the fastest arm gained here."""
        choice = self.app.session.choice
        winner = next((arm for arm in result.race.arms if arm.mode is result.winner), None)
        if choice is not None and winner is not None and winner.speedup is not None:
            self.app.settings.remember(f"speedup/{choice.title}", f"{winner.speedup.median:.2f}×")

    def _show_arm(self, card: RaceArm, arm: Arm) -> None:
        assert self.result is not None
        card.speed.set(f"{arm.tps.median:.1f}")
        card.state.say(
            self.tr("{0} tokens per round, {1} tok/s").format(f"{arm.tokens_per_round:.2f}", report.spread(arm.tps))
        )
        card.against.setVisible(arm.speedup is not None)
        if arm.speedup is not None:
            card.against.set(f"{arm.speedup.median:.2f}× ({report.spread(arm.speedup)})")
        is_winner = self.result.winner is arm.mode
        card.badge.say(self.tr("Fastest") if is_winner else self._grade_word(arm), _role(arm.verdict))

    def _grade_word(self, arm: Arm) -> str:
        if arm.mode is Mode.BASELINE:
            return "" if arm.verdict is Verdict.IDENTICAL else self.tr("Does not repeat itself")
        return self._grade(arm.verdict)

    def _grade(self, verdict: Verdict) -> str:
        return {
            Verdict.IDENTICAL: self.tr("Identical"),
            Verdict.TIE: self.tr("Numeric tie"),
            Verdict.DIFFERENT: self.tr("Different"),
        }[verdict]

    def _show_verdict(self, result: RaceResult) -> None:
        race = result.race
        self.grade.say(self._verdict_title(result), _role(race.verdict))
        self.sentence.say(self._verdict_words(result))
        marks = "; ".join(result.plan.marks)
        self.marked.say(self.tr("Marked: {0}.").format(marks) if marks else "")
        self.marked.setVisible(bool(marks))
        winner = result.winner
        self.use.setVisible(winner is not None)
        if winner is not None:
            self.use.setText(self.tr("Use {0}").format(self.arm_name(winner)))
        self.verdict_panel.show()

    def _verdict_title(self, result: RaceResult) -> str:
        race = result.race
        if race.verdict is not Verdict.IDENTICAL:
            return self._grade(race.verdict)
        tokens = sum(len(run.answer.tokens) for run in result.last_trial if run.mode is Mode.BASELINE)
        pairs = [1 for arm in race.arms for _ in arm.comparisons if arm.mode is not Mode.BASELINE]
        return self.tr("Identical output, {0} tokens, {1} of {1} comparisons").format(tokens, len(pairs))

    def _verdict_words(self, result: RaceResult) -> str:
        race = result.race
        where = "; ".join(report.differences(race))
        if race.repeats is Verdict.DIFFERENT:
            words = self.tr(
                "Plain decoding does not repeat itself on this machine, so no arm can be held to it and no speed-up is "
                "claimed. {0}"
            )
            return words.format(where)
        if race.verdict is Verdict.DIFFERENT:
            return self.tr("An arm said something else, so no speed-up is claimed. Please report this. {0}").format(
                where
            )
        speeds = [
            f"{self.arm_name(arm.mode)} {arm.speedup.median:.2f}× ({report.spread(arm.speedup)})"
            for arm in race.arms
            if arm.speedup is not None
        ]
        if race.verdict is Verdict.TIE:
            where = self.tr("Where they part, the two best choices were closer than rounding: {0}.").format(where)
            return f"{' · '.join(speeds)}\n{where}"
        return " · ".join(speeds)

    # The replay.

    @Slot()
    def play(self) -> None:
        """The last round's runs at their recorded pace, all at once."""
        if self.replay is None or self.runner.is_running:
            return
        if self._play.isActive():
            self._end_replay()
            return
        if self.app.settings.flag("appearance/reduce_motion"):
            self._show_replay(self.replay.seconds)
            return
        self._clock.start()
        self.replay_button.setText(self.tr("Stop the replay"))
        self._play.start()
        self._on_play()

    @Slot()
    def _on_play(self) -> None:
        assert self.replay is not None
        seconds = self._clock.elapsed() / 1000
        self._show_replay(seconds)
        if seconds >= self.replay.seconds:
            self._end_replay()

    def _show_replay(self, seconds: float) -> None:
        assert self.replay is not None
        for run, (text, tokens) in zip(self.replay.runs, self.replay.at(seconds), strict=True):
            card = self.cards[run.mode]
            card.show_text(text)
            shown = min(seconds, run.steps[-1].at_s if run.steps else 0.0)
            card.state.say(self.tr("{0} tokens after {1} s").format(tokens, f"{shown:.1f}"))
        self._outcome = self.tr("Replay of separate runs: they did not run at the same time.")
        self._notify(self._outcome)

    def _end_replay(self) -> None:
        if self._play.isActive():
            self._play.stop()
            assert self.replay is not None
            self._show_replay(self.replay.seconds)
        self.replay_button.setText(self.tr("Replay side by side"))

    # The report, and the winner.

    def report_text(self, *, as_json: bool) -> str:
        assert self.result is not None
        plan, write = self.result.plan, report.as_json_text if as_json else report.as_markdown
        return write(self.result.race, self.result.info, plan.options, plan.marks)

    @Slot()
    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(self.report_text(as_json=False))
        self.app.banners.show(Banner("race.report", Kind.INFO, self.tr("The report was copied, as Markdown.")))

    @Slot()
    def _on_save(self) -> None:
        kinds = self.tr("Markdown (*.md);;JSON (*.json)")
        file, _ = QFileDialog.getSaveFileName(self, self.tr("Save the report"), "race.md", kinds)
        if file:
            self.save_to(Path(file))

    def save_to(self, file: Path) -> None:
        try:
            file.write_text(self.report_text(as_json=file.suffix == ".json"), encoding="utf-8")
        except OSError as error:
            words = self.tr("{0} could not be written: {1}").format(file.name, error.strerror or str(error))
            self.app.banners.show(Banner("race.report", Kind.ERROR, words))
        else:
            self.app.banners.show(Banner("race.report", Kind.INFO, self.tr("Saved to {0}").format(file)))

    @Slot()
    def use_winner(self) -> None:
        """New chats draft with it. A drafter that Auto would not take first is loaded alone."""
        winner = self.result.winner if self.result is not None else None
        info, choice = self.app.session.info, self.app.session.choice
        if winner is None or info is None or choice is None:
            return
        settings = self.app.settings
        settings.set("performance/mode", winner.value if winner in (Mode.LOOKUP, Mode.BASELINE) else "auto")
        is_second = winner in info.drafters and info.drafters[0] is not winner
        if is_second and choice.target is None:
            from slipstream.store import demo  # it imports MLX, which is loaded by now, on the engine's thread

            folder = str(demo.drafters()[winner])
            title = f"{choice.title.partition(' + ')[0]} + {self.arm_name(winner)}"
            self.app.session.load(replace(choice, title=title, drafters=(folder,)))
        words = self.tr("New chats use {0}.").format(self.arm_name(winner))
        if is_second and choice.target is not None:
            words = self.tr("Choose {0} as this pair's drafter.").format(self.arm_name(winner))
            self.app.navigator.go("models")
        self.app.banners.show(Banner("race.winner", Kind.INFO, words))

    # The rest.

    @Slot(object)
    def _on_status(self, status: Status) -> None:
        self._offer_arms()

    @Slot()
    def _on_arm(self) -> None:
        self._end_replay()
        self.verdict_panel.hide()
        self.result = self.replay = None
        self._outcome = ""
        self._lay_cards()
        self._tend()

    @Slot()
    def _on_prompt(self) -> None:
        self.own.setVisible(self.prompt.currentData() == OWN)
        self._tend()

    @Slot()
    def _on_temperature(self) -> None:
        self.seed.setEnabled(self.temperature.value() > 0)

    def visited(self, argument: object) -> None:
        """`argument`: a prompt to race with."""
        if isinstance(argument, str) and argument and not self.runner.is_running:
            self.own.setPlainText(argument)
            self.prompt.setCurrentIndex(self.prompt.count() - 1)
        self._tend()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._tend()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._end_replay()
        self._paint.stop()

    def left(self) -> None:
        self._end_replay()
        self._paint.stop()

    def closing(self) -> None:
        self._end_replay()
        self.runner.close()


def _spin(low: int, high: int, value: int, name: str) -> QSpinBox:
    made = QSpinBox()
    made.setRange(low, high)
    made.setValue(value)
    made.setAccessibleName(name)
    return made


def _role(verdict: Verdict) -> str:
    return {Verdict.IDENTICAL: "ok", Verdict.TIE: "warn", Verdict.DIFFERENT: "bad"}[verdict]
