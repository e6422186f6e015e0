"""One arm of a race: what it says and how fast, live or played again."""

from __future__ import annotations

from PySide6.QtCore import QSize, Slot
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QWidget

from slipstream.measure.race import Arm, Spread
from slipstream.types import Mode
from slipstream_app.models.race import ArmProgress, ArmState
from slipstream_app.numbers import number_text
from slipstream_app.strings import mark, shown
from slipstream_app.theme import M, Theme
from slipstream_app.widgets.panel import Figure, Panel, Words, wrapped

COLOURS = {
    Mode.BASELINE: "plain",
    Mode.LOOKUP: "ngram",
    Mode.DSPARK: "draft",
    Mode.DFLASH: "second",
    Mode.MTP: "warn",
    Mode.AUTO: "ok",
}
NAMES = {
    Mode.BASELINE: mark("RaceArm", "Plain"),
    Mode.DSPARK: "DSpark",
    Mode.DFLASH: "DFlash",
    Mode.MTP: "MTP",
    Mode.LOOKUP: mark("RaceArm", "Lookup"),
    Mode.AUTO: mark("RaceArm", "Auto"),
}


def arm_name(mode: Mode) -> str:
    return shown("RaceArm", NAMES.get(mode, mode.value))


def speedup_text(speedup: Spread) -> str:
    """With its spread; a single run has none, and is said to be one."""
    if speedup.low < speedup.high:
        return f"{number_text(speedup.median, 2)}× ({_spread(speedup)})"
    return shown("RaceArm", mark("RaceArm", "{0}×, one round")).format(number_text(speedup.median, 2))


def _spread(values: Spread) -> str:
    return f"{number_text(values.low, 2)}–{number_text(values.high, 2)}"


class RaceArm(Panel):
    def __init__(self, theme: Theme, mode: Mode, parent: QWidget | None = None) -> None:
        name = arm_name(mode)
        super().__init__(theme, name, parent)
        self.colour = COLOURS.get(mode, "model")
        self.badge = Words(theme, "", "ok", bold=True)
        self.head.addWidget(self.badge)
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setUndoRedoEnabled(False)
        self.text.setFrameShape(QPlainTextEdit.Shape.NoFrame)
        self.text.setAccessibleName(self.tr("{0}: its answer").format(name))
        self.text.setTabChangesFocus(True)
        self.text.document().setDocumentMargin(0)
        self.speed = Figure(theme, self.tr("tok/s"), "0000.0")
        self.against = Figure(theme, self.tr("against plain"), "00.00× (00.00–00.00)")
        self.against.hide()
        self.state = wrapped(theme, "", "muted")
        foot = QHBoxLayout()
        foot.setSpacing(M)
        foot.addWidget(self.speed)
        foot.addWidget(self.against)
        foot.addStretch(1)
        self.body.addWidget(self.text, 1)
        self.body.addWidget(self.state)
        self.body.addLayout(foot)
        self._shown = ""
        theme.resized.connect(self._on_resized)
        self._on_resized()
        self.recolour()

    def sizeHint(self) -> QSize:
        return QSize(self.theme.px(260), self.theme.px(250))

    def minimumSizeHint(self) -> QSize:
        return QSize(self.theme.px(200), self.theme.px(210))

    def show_text(self, text: str) -> None:
        """Appends where `text` goes on from what stands there."""
        if text == self._shown:
            return
        if self._shown and text.startswith(self._shown):
            cursor = QTextCursor(self.text.document())
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText(text[len(self._shown) :])
        else:
            self.text.setPlainText(text)
        self._shown = text
        bar = self.text.verticalScrollBar()
        bar.setValue(bar.maximum())

    @property
    def shown(self) -> str:
        return self._shown

    def clear(self) -> None:
        self.show_text("")
        self.badge.say("")
        self.against.hide()
        self.speed.set("–")

    def show_progress(self, arm: ArmProgress) -> None:
        self.show_text(arm.text)
        self.state.say(
            {
                ArmState.WAITING: self.tr("Waiting for its turn"),
                ArmState.READING: self.tr("Reading the prompt"),
                ArmState.WRITING: self.tr("%Ln token(s)", None, arm.tokens),
                ArmState.ENDED: self.tr("%Ln token(s), done", None, arm.tokens),
            }[arm.state]
        )
        if arm.tps is not None:
            self.speed.set(number_text(arm.tps), is_stale=arm.state is not ArmState.ENDED)

    def show_arm(self, arm: Arm, badge: str, role: str) -> None:
        """The race is over."""
        self.speed.set(number_text(arm.tps.median))
        per_round = number_text(arm.tokens_per_round, 2)
        is_spread = arm.tps.low < arm.tps.high
        words = self.tr("{0} tokens per round, {1} tok/s") if is_spread else self.tr("{0} tokens per round")
        self.state.say(words.format(per_round, _spread(arm.tps)))
        self.against.setVisible(arm.speedup is not None)
        if arm.speedup is not None:
            self.against.set(speedup_text(arm.speedup))
        self.badge.say(badge, role)

    def show_replay(self, text: str, tokens: int, seconds: float) -> None:
        self.show_text(text)
        self.state.say(self.tr("%Ln token(s) after {0} s", None, tokens).format(number_text(seconds)))

    @Slot()
    def _on_resized(self) -> None:
        self.text.setFont(self.theme.code_font(0.9))

    def recolour(self) -> None:
        """A line in the arm's colour, so that three of them are told apart at a glance; the name says it too."""
        self.setStyleSheet(f"RaceArm {{ border-top: 3px solid {self.theme.css(self.colour)}; }}")
