"""Race: plain against drafted decoding on the loaded pair, with the verdict whether they said the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar

from PySide6.QtCore import QSize, QTimer, Slot
from PySide6.QtGui import QHideEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QGridLayout, QSizePolicy, QVBoxLayout, QWidget

from slipstream.errors import SlipstreamError
from slipstream.events import Empty, Loading, Status
from slipstream.store import machine
from slipstream.types import Mode
from slipstream_app.bridge.watched import CLIENT
from slipstream_app.models.conditions import Conditions
from slipstream_app.models.conditions import read as read_conditions
from slipstream_app.models.race import RacePlan, RaceResult, RaceRunner, Replay
from slipstream_app.models.race_marks import Cause, Mark
from slipstream_app.models.race_player import RacePlayer
from slipstream_app.models.work import Work
from slipstream_app.numbers import span_text
from slipstream_app.screens.base import AppContext, Screen
from slipstream_app.screens.race_gate import Beside, RaceGate
from slipstream_app.screens.race_outcome import RaceOutcome
from slipstream_app.theme import L, M
from slipstream_app.widgets.announcing import announce
from slipstream_app.widgets.notice import Notice, Remedy
from slipstream_app.widgets.race_arm import RaceArm
from slipstream_app.widgets.race_setup import RaceSetup
from slipstream_app.widgets.race_verdict import ROLES, RaceVerdict
from slipstream_app.widgets.scrolling import Scrolling

REPAINT_MS = 50
ARM_WIDTH = 250  # at least, for one arm beside another


class RaceScreen(Screen):
    NAME: ClassVar[str] = "race"

    def __init__(self, app: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(app, parent)
        self._marks: list[Mark] = []
        self._others = 0  # requests that were not the race's while it ran
        self._said = ""  # of the race that ended without a verdict
        self._work = Work(self)
        self._is_paused = False  # whether clients wait while it runs
        self.cards: dict[Mode, RaceArm] = {}
        self.runner = RaceRunner(lambda job: app.session.put(job, "race"), self)
        self.runner.progressed.connect(self._on_progress)
        self.runner.finished.connect(self._on_finished)
        self.runner.failed.connect(self._on_failed)
        self.runner.stopped.connect(self._on_stopped)
        self._paint = QTimer(self, singleShot=True, interval=REPAINT_MS)
        self._paint.timeout.connect(self._show_progress)
        self.player = RacePlayer(self)
        self.player.stood_at.connect(self._show_replay)
        self.player.ended.connect(self._on_replayed)

        self.setup = RaceSetup(app.theme)
        self.setup.changed.connect(self._tend)
        self.setup.arms_changed.connect(self._on_arm)
        self.setup.start_asked.connect(self.toggle)
        self.notice = Notice(app.theme)
        self.gate = RaceGate(app, self.setup, self.notice, self)
        self.gate.chosen.connect(self.toggle)
        self.gate.stale.connect(self._tend)
        self.verdict = RaceVerdict(app.theme)
        self.verdict.replay_asked.connect(self.play)
        self.outcome = RaceOutcome(app, self)
        self.verdict.copy_asked.connect(self.outcome.copy)
        self.verdict.save_asked.connect(self.outcome.save)
        self.verdict.use_asked.connect(self.outcome.use_winner)
        self._lay_out()

        app.bus.status_changed.connect(self._on_status)
        app.bus.opened.connect(self._on_opened)
        app.bus.server_changed.connect(self._tend)
        app.bus.pause_changed.connect(self._on_pause)
        app.requests.changed.connect(self._on_progress)
        self._offer_arms()

    @property
    def result(self) -> RaceResult | None:
        """Of the last race, where it came to one."""
        return self.outcome.result

    @property
    def title(self) -> str:
        return self.tr("Race")

    # What it is made of.

    def _lay_out(self) -> None:
        column = QVBoxLayout()
        column.setContentsMargins(L, M, L, L)
        column.setSpacing(M)
        for panel in (self.setup, self.notice, self.verdict):
            column.addWidget(panel)
            panel.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self._grid = QGridLayout()
        self._grid.setSpacing(M)
        column.addLayout(self._grid, 1)
        column.addStretch(0)
        inside = QWidget()
        inside.setLayout(column)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(Scrolling(inside, self.title, margin=L))

    def _offer_arms(self) -> None:
        info = self.app.session.info
        if info is not None:
            self.setup.offer(info)
        self._lay_cards()
        self._tend()

    def _lay_cards(self) -> None:
        """A card for each chosen arm, beside each other where there is room."""
        arms = self.setup.arms
        if tuple(self.cards) != arms:
            for card in self.cards.values():
                self._grid.removeWidget(card)
                card.hide()
                card.deleteLater()
            self.cards = {mode: RaceArm(self.app.theme, mode) for mode in arms}
            for card in self.cards.values():  # columns are as wide as each other, whatever is written in them
                card.setSizePolicy(QSizePolicy.Policy.Ignored, card.sizePolicy().verticalPolicy())
        wide = max(1, (self.width() - 2 * L) // self.app.theme.px(ARM_WIDTH))
        count = max(1, len(self.cards))
        per_row = min(wide, count)
        if count == 4 and per_row == 3:
            per_row = 2
        for column in range(self._grid.columnCount()):
            self._grid.setColumnStretch(column, 1 if column < per_row else 0)
        for number, card in enumerate(self.cards.values()):
            self._grid.addWidget(card, *divmod(number, per_row))
        self.setup.fit(self.width())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay_cards()

    def minimumSizeHint(self) -> QSize:
        return QSize(360, 240)

    # What can be done now.

    def commands(self) -> Mapping[str, Callable[[], object]]:
        can_toggle = self.runner.is_running or self.setup.start.isEnabled()
        return {"race.toggle": self.toggle} if can_toggle else {}

    @Slot()
    def _tend(self, *_: object) -> None:
        """Words and switches for the state it is in."""
        is_running = self.runner.is_running
        self.setup.set_running(is_running)
        if is_running:
            self._show_progress()
        else:
            self.notice.hide_progress()
        self.setup.start.setEnabled(is_running or self.gate.is_open(self._said))
        self.commands_changed.emit()

    # Running.

    @Slot()
    def toggle(self) -> None:
        """Start, or stop what runs."""
        if self.runner.is_running:
            self.runner.stop()
            return
        self._tend()  # a client may have come since
        info = self.app.session.info
        if info is None or not self.setup.start.isEnabled():
            self.gate.beside = Beside.ASK  # the answer was for a race that begins now
            return
        plan = self.plan()
        self.player.stop()
        self.outcome.result = None
        self._said = ""
        self.verdict.hide()
        self._marks = []
        self._others = 0
        self._is_paused = self.gate.beside is Beside.PAUSE
        if not self._is_paused and (clients := self.gate.clients):
            self._marks.append(Mark(Cause.CLIENTS, clients))
        if (state := machine.busy()) is not None:  # heat and power are looked at while it runs
            self._marks.append(Mark(Cause.BUSY, detail=state))
        for card in self.cards.values():
            card.clear()
        # The race's own thread lets the clients go on: nothing that befalls the window can leave them waiting.
        go_on = self.app.session.pause_clients() if self._is_paused else _nothing
        try:
            self.runner.start(plan, info, go_on)
        except RuntimeError:  # no thread to be had
            go_on()
            raise
        self._tend()

    def plan(self) -> RacePlan:
        return self.setup.plan()

    @Slot(int, str, object)
    def _on_opened(self, job: int, source: str, request: object) -> None:
        waits = self._is_paused and source == CLIENT
        if self.runner.is_measuring and source != "race" and not waits:
            self._others += 1

    @Slot()
    def _on_pause(self) -> None:
        """Somebody may have let the clients go on before the end."""
        if self._is_paused and self.runner.is_measuring and not self.app.session.are_clients_paused:
            self._is_paused = False
            self._marks.append(Mark(Cause.RESUMED))
        self._on_progress()

    @Slot()
    def _on_progress(self, *_: object) -> None:
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
        if (left_s := runner.left_s) is not None:
            words = self.tr("{0}, about {1} left").format(words, span_text(left_s))
        if runner.done == runner.total:
            words = self.tr("Comparing what they said…")
        paused = self._paused_words(words)
        if paused:
            self.notice.say(paused, Remedy(self.tr("Let them go on"), self.app.session.resume_clients))
        else:
            self.notice.say(words)
        self.notice.show_progress(runner.done, runner.total)
        for arm in runner.arms:
            self.cards[arm.mode].show_progress(arm)

    def _paused_words(self, words: str) -> str:
        """`words`, and how many requests wait; none where no client is paused."""
        session = self.app.session
        if not (self._is_paused and self.runner.is_measuring):
            return ""
        answering = self.app.server.clients - session.paused_requests
        if self.runner.done == 0 and answering > 0 and all(arm.run == 0 for arm in self.runner.arms):
            words = self.tr("It begins when %n answer(s) to clients have ended.", "", answering)
        paused = self.tr("Clients are paused: %n of their requests wait.", "", session.paused_requests)
        return f"{words}\n{paused}"

    @Slot(object)
    def _on_failed(self, error: SlipstreamError) -> None:
        self._end_without_verdict(self.tr("The race ended: {0}").format(error.message))

    @Slot()
    def _on_stopped(self) -> None:
        self._end_without_verdict(self.tr("Stopped. Nothing is concluded from part of a race."))

    def _end_without_verdict(self, words: str) -> None:
        self._paint.stop()
        self.gate.beside = Beside.ASK
        self._said = words
        announce(self.notice, words)
        self._tend()

    # The verdict.

    @Slot(object)
    def _on_finished(self, result: RaceResult) -> None:
        self._paint.stop()
        self.gate.beside = Beside.ASK
        if self._others:
            self._marks.append(Mark(Cause.OTHERS, self._others))
        marks = (*self._marks, *result.disturbances)
        result = replace(result, plan=replace(result.plan, marks=marks))
        self.player.replay = Replay(result.last_trial)
        for run in result.last_trial:
            self.cards[run.mode].show_text(run.answer.text)
        for arm in result.race.arms:
            badge = self.verdict.badge(arm, is_winner=result.winner is arm.mode)
            self.cards[arm.mode].show_arm(arm, badge, ROLES[arm.verdict])
        self.verdict.show_result(result)
        announce(self.verdict, self.tr("Race finished: {0}").format(self.verdict.grade.text()))
        self.outcome.take(result)
        self._tend()

    # The replay.

    @Slot()
    def play(self) -> None:
        """The last round's runs at their recorded pace, all at once; again, to end it."""
        if self.runner.is_running:
            return
        if self.player.is_playing:
            self.player.stop()
        elif self.player.start(at_once=self.app.settings.flag("appearance/reduce_motion")):
            self.verdict.set_replaying(True)

    @Slot(float)
    def _show_replay(self, seconds: float) -> None:
        for run, text, tokens in self.player.at(seconds):
            shown = min(seconds, run.steps[-1].at_s if run.steps else 0.0)
            self.cards[run.mode].show_replay(text, tokens, shown)
        self._said = self.tr("Replay of separate runs: they did not run at the same time.")
        self.notice.say(self._said)

    @Slot()
    def _on_replayed(self) -> None:
        self.verdict.set_replaying(False)
        self._tend()  # its sentence stood where it is said why a race may not begin

    # The rest.

    @Slot(object)
    def _on_status(self, status: Status) -> None:
        if isinstance(status, Loading | Empty) and self.runner.is_running:
            self.runner.stop()  # the next run would be another pair's
        self._offer_arms()

    @Slot()
    def _on_arm(self) -> None:
        self.player.stop()
        self.verdict.hide()
        self.outcome.result = self.player.replay = None
        self._said = ""
        self._lay_cards()
        self._tend()

    def visited(self, argument: object) -> None:
        """`argument`: a prompt to race with."""
        if isinstance(argument, str) and argument and not self.runner.is_running:
            self.setup.ask(argument)
        self._tend()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._tend()
        self._work.do(read_conditions, self._on_conditions, lambda _: None, "slipstream-conditions")

    def _on_conditions(self, found: Conditions) -> None:
        self.setup.show_power(found)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._stop_timers()

    def left(self) -> None:
        self._stop_timers()

    def _stop_timers(self) -> None:
        self.player.stop()
        self._paint.stop()
        self.gate.rest()

    def closing(self) -> None:
        self._stop_timers()
        self.runner.close()


def _nothing() -> None:
    pass
