"""What a race showed: whether every arm said the same, and how much faster each was."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QWidget

from slipstream.measure import report
from slipstream.measure.race import Arm
from slipstream.measure.verdict import Verdict
from slipstream.types import Mode
from slipstream_app.models.race import RaceResult
from slipstream_app.models.race_marks import Cause, Mark
from slipstream_app.theme import S, Theme
from slipstream_app.widgets.panel import Panel, Words, button, wrapped
from slipstream_app.widgets.race_arm import arm_name, speedup_text

ROLES = {Verdict.IDENTICAL: "ok", Verdict.TIE: "warn", Verdict.DIFFERENT: "bad"}


class RaceVerdict(Panel):
    replay_asked = Signal()
    copy_asked = Signal()
    save_asked = Signal()
    use_asked = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, "", parent)
        self.grade = Words(theme, "", scale=1.25, bold=True)
        self.sentence = wrapped(theme)
        self.marked = wrapped(theme, "", "warn")
        self.replay = button("")
        self.copy = button(self.tr("Copy report"))
        self.save = button(self.tr("Save…"), name=self.tr("Save the report"))
        self.use = button(self.tr("Use the winner"), "primary")
        self.replay.clicked.connect(self.replay_asked)
        self.copy.clicked.connect(self.copy_asked)
        self.save.clicked.connect(self.save_asked)
        self.use.clicked.connect(self.use_asked)
        row = QHBoxLayout()
        row.setSpacing(S)
        for widget in (self.replay, self.copy, self.save):
            row.addWidget(widget)
        row.addStretch(1)
        row.addWidget(self.use)
        for widget in (self.grade, self.sentence, self.marked):
            self.body.addWidget(widget)
        self.body.addLayout(row)
        self.set_replaying(False)
        self.hide()

    def show_result(self, result: RaceResult) -> None:
        self.grade.say(self._title(result), ROLES[result.race.verdict])
        self.sentence.say(self._words(result))
        marks = "; ".join(self._mark(one) for one in result.plan.marks)
        self.marked.say(self.tr("Marked: {0}.").format(marks) if marks else "")
        self.marked.setVisible(bool(marks))
        winner = result.winner
        self.use.setVisible(winner is not None)
        if winner is not None:
            self.use.setText(self.tr("Use {0}").format(arm_name(winner)))
        self.show()

    def set_replaying(self, is_replaying: bool) -> None:
        self.replay.setText(self.tr("Stop the replay") if is_replaying else self.tr("Replay side by side"))

    def badge(self, arm: Arm, *, is_winner: bool) -> str:
        """A word or two for an arm's own card."""
        if is_winner:
            return self.tr("Fastest")
        if arm.mode is Mode.BASELINE:
            return "" if arm.verdict is Verdict.IDENTICAL else self.tr("Does not repeat itself")
        return self._word(arm.verdict)

    def _mark(self, mark: Mark) -> str:
        """As the report says it, in the window's language."""
        count = mark.count
        return {
            Cause.CLIENTS: self.tr("%n client(s) were connected", None, count),
            Cause.RESUMED: self.tr("clients that were paused were let go on before its end"),
            Cause.OTHERS: self.tr("%n other request(s) ran during the race", None, count),
            Cause.BUSY: self.tr("this machine was {0} when the race began").format(mark.detail),
            Cause.BATTERY: self.tr("this machine ran on its battery"),
            Cause.LOW_POWER: self.tr("this machine was in its low power mode"),
            Cause.HOT: self.tr("this machine was hot"),
            Cause.REPEATED: self.tr("%n run(s) were repeated, as heat or power changed meanwhile", None, count),
        }[mark.cause]

    def _word(self, verdict: Verdict) -> str:
        return {
            Verdict.IDENTICAL: self.tr("Identical"),
            Verdict.TIE: self.tr("Numeric tie"),
            Verdict.DIFFERENT: self.tr("Different"),
        }[verdict]

    def _title(self, result: RaceResult) -> str:
        race = result.race
        if race.verdict is not Verdict.IDENTICAL:
            return self._word(race.verdict)
        tokens = sum(len(run.answer.tokens) for run in result.last_trial if run.mode is Mode.BASELINE)
        count = sum(len(arm.comparisons) for arm in race.arms if arm.mode is not Mode.BASELINE)
        return self.tr("Identical output, %Ln token(s), {0} of {0} comparisons", None, tokens).format(count)

    def _words(self, result: RaceResult) -> str:
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
        speeds = [f"{arm_name(arm.mode)} {speedup_text(arm.speedup)}" for arm in race.arms if arm.speedup is not None]
        if race.verdict is Verdict.TIE:
            where = self.tr("Where they part, the two best choices were closer than rounding: {0}.").format(where)
            return f"{' · '.join(speeds)}\n{where}"
        return " · ".join(speeds)
