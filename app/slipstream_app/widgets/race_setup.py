"""What a race asks, how long, how often, and which arms take part."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QSpinBox,
    QToolButton,
    QWidget,
)

from slipstream.measure.prompts import DEFAULT, Question
from slipstream.types import Mode, ModelInfo, Options
from slipstream_app.models.conditions import Conditions
from slipstream_app.models.race import RacePlan
from slipstream_app.theme import XS, M, S, Theme
from slipstream_app.widgets.panel import Panel, Words, button, set_role, wrapped
from slipstream_app.widgets.race_arm import arm_name

MAX_TOKENS, TRIALS = 128, 3
WIDE = 620  # from here on all fields stand in one line
OWN = "own"
EXTRA = (Mode.LOOKUP, Mode.AUTO)  # offered, and not chosen where a network drafts


class RaceSetup(Panel):
    changed = Signal()
    arms_changed = Signal()
    start_asked = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, "", parent)
        self.arm_buttons: dict[Mode, QToolButton] = {}
        self._is_running = False
        self._make_fields()
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
            label = Words(theme, name, "muted", scale=0.9)
            label.setBuddy(widget)
            self._named.append((label, widget))
        self.start = button(self.tr("Start"), "primary")
        self.start.clicked.connect(self.start_asked)
        self._arm_row = QHBoxLayout()
        self._arm_row.setSpacing(XS)
        arms = Words(theme, self.tr("Arms"), "muted", scale=0.9)
        arms.setContentsMargins(0, 0, S, 0)
        self._arm_row.addWidget(arms)
        self._arm_row.addStretch(1)
        self._arm_row.addWidget(self.thinking)
        self._arm_row.addSpacing(M)
        self._arm_row.addWidget(self.start)
        order = self.tr("Interleaved: the order rotates, so no arm always runs on a warmer machine. One warm-up each.")
        self.body.addLayout(self._fields)
        self.body.addWidget(self.own)
        self.body.addLayout(self._arm_row)
        self.body.addWidget(Words(theme, order, "muted", scale=0.9))
        self.power = wrapped(theme, "", "warn")
        self.power.hide()
        self.body.addWidget(self.power)

    def _make_fields(self) -> None:
        self.prompt = QComboBox()
        self.prompt.setAccessibleName(self.tr("Prompt"))
        names = {"code": self.tr("Code"), "maths": self.tr("Maths"), "chat": self.tr("Chat")}
        for question in DEFAULT:
            self.prompt.addItem(names.get(question.kind, question.kind), (question,))
            self.prompt.setItemData(self.prompt.count() - 1, question.text, Qt.ItemDataRole.ToolTipRole)
        self.prompt.addItem(self.tr("All three"), DEFAULT)
        self.prompt.addItem(self.tr("My own…"), OWN)
        self.prompt.currentIndexChanged.connect(self._on_prompt)
        self.own = QPlainTextEdit()
        self.own.setProperty("role", "field")
        self.own.setPlaceholderText(self.tr("What every arm is asked"))
        self.own.setAccessibleName(self.tr("Your own prompt"))
        self.own.setTabChangesFocus(True)
        self.own.setFixedHeight(self.theme.px(64))
        self.own.textChanged.connect(self.changed)
        self.own.hide()
        self.tokens = _spin(1, 8192, MAX_TOKENS, self.tr("Tokens of each answer"))
        self.trials = _spin(1, 20, TRIALS, self.tr("Rounds of the race"))
        self.seed = _spin(0, 2**31 - 1, 0, self.tr("Seed"))
        self.seed.setEnabled(False)
        self.temperature = QDoubleSpinBox()
        self.temperature.setRange(0.0, 2.0)
        self.temperature.setSingleStep(0.1)
        self.temperature.setAccessibleName(self.tr("Temperature"))
        self.temperature.valueChanged.connect(self._tend_seed)
        self.thinking = QCheckBox(self.tr("Thinking"))

    # The arms.

    def offer(self, info: ModelInfo) -> None:
        """A button for each mode the pair has. What was chosen stays chosen where it still exists."""
        modes = (Mode.BASELINE, *info.drafters, *EXTRA)
        if tuple(self.arm_buttons) == modes:
            return
        before = {mode: made.isChecked() for mode, made in self.arm_buttons.items()}
        for made in self.arm_buttons.values():
            made.deleteLater()
        self.arm_buttons = {}
        for mode in modes:
            made = QToolButton()
            made.setText(arm_name(mode))
            made.setCheckable(True)
            made.setProperty("role", "flat")
            made.setAccessibleName(self.tr("Arm: {0}").format(arm_name(mode)))
            by_itself = mode not in EXTRA or (mode is Mode.LOOKUP and not info.drafters)
            made.setChecked(before.get(mode, by_itself))
            if mode is Mode.BASELINE:
                made.setChecked(True)
                made.setEnabled(False)
                made.setToolTip(self.tr("Plain decoding is what the others are compared with."))
            elif mode is Mode.AUTO:
                made.setToolTip(self.tr("Chooses drafter and length each round, by what was kept and what it took."))
            made.toggled.connect(self.arms_changed)
            self.arm_buttons[mode] = made
            self._arm_row.insertWidget(len(self.arm_buttons), made)

    @property
    def arms(self) -> tuple[Mode, ...]:
        return tuple(mode for mode, made in self.arm_buttons.items() if made.isChecked())

    # What is asked.

    @property
    def lacks_words(self) -> bool:
        """The user's own prompt was chosen and not written yet."""
        return self.prompt.currentData() == OWN and not self.own.toPlainText().strip()

    def ask(self, words: str) -> None:
        """Race with these words."""
        self.own.setPlainText(words)
        self.prompt.setCurrentIndex(self.prompt.count() - 1)

    def plan(self) -> RacePlan:
        asked = self.prompt.currentData()
        questions = (Question("own", self.own.toPlainText().strip()),) if asked == OWN else tuple(asked)
        options = Options(
            temperature=round(self.temperature.value(), 2), seed=self.seed.value(), max_tokens=self.tokens.value()
        )
        return RacePlan(questions, self.arms, options, self.trials.value(), self.thinking.isChecked())

    # Its state.

    def show_power(self, found: Conditions) -> None:
        """Warns of what slows every run, and is in the report then."""
        words = ""
        if found.low_power:
            words = self.tr("⚠ Low power mode: speeds are lower, and the report will say so.")
        elif found.on_battery:
            words = self.tr("⚠ On battery: speeds may be lower, and the report will say so.")
        self.power.say(words)
        self.power.setVisible(bool(words))

    def set_running(self, is_running: bool) -> None:
        """Nothing can be changed while a race runs; the start button stops it."""
        self._is_running = is_running
        self.start.setText(self.tr("Stop") if is_running else self.tr("Start"))
        set_role(self.start, "" if is_running else "primary")
        for widget in (self.prompt, self.own, self.tokens, self.trials, self.temperature, self.thinking):
            widget.setEnabled(not is_running)
        for mode, made in self.arm_buttons.items():
            made.setEnabled(not is_running and mode is not Mode.BASELINE)
        self._tend_seed()

    def fit(self, width: int) -> None:
        per_line = 5 if width > self.theme.px(WIDE) else 3
        for number, (label, widget) in enumerate(self._named):
            row, column = divmod(number, per_line)
            self._fields.addWidget(label, 2 * row, column)
            self._fields.addWidget(widget, 2 * row + 1, column)

    @Slot()
    def _tend_seed(self) -> None:
        """Without a temperature nothing is drawn."""
        self.seed.setEnabled(not self._is_running and self.temperature.value() > 0)

    @Slot()
    def _on_prompt(self) -> None:
        self.own.setVisible(self.prompt.currentData() == OWN)
        self.prompt.setToolTip(str(self.prompt.currentData(Qt.ItemDataRole.ToolTipRole) or ""))
        self.changed.emit()


def _spin(low: int, high: int, value: int, name: str) -> QSpinBox:
    made = QSpinBox()
    made.setRange(low, high)
    made.setValue(value)
    made.setAccessibleName(name)
    made.setAlignment(Qt.AlignmentFlag.AlignLeft)
    return made
