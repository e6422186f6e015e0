"""The first start: this Mac, a pair, ready. Any step can be left; the built-in pair works offline."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import (
    QButtonGroup,
    QFrame,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QRadioButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from slipstream.events import Delta, Done, Event, Failed, Faulted, Loading, Ready, Status, Timings, Working
from slipstream.jobs import Job
from slipstream.store.paths import data_dir
from slipstream.types import Chat, Mode, Options, Request
from slipstream_app.bridge.pair import BUILT_IN
from slipstream_app.mac import machine
from slipstream_app.screens.base import AppContext, Screen
from slipstream_app.theme import XL, L, M, S

TEST_TOKENS = 64
GB = 1e9
# A draft is easiest to guess right where the text is code.
TEST_PROMPT = "Write a Python function that returns the n-th Fibonacci number, with a docstring."


class OnboardingScreen(Screen):
    """Three cards side by side, or below each other when the window is narrow."""

    NAME = "onboarding"

    def __init__(self, app: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(app, parent)
        self._test: SelfTest | None = None
        self.heading = QLabel(self.tr("Welcome to Slipstream"))
        self.lead = QLabel(
            self.tr(
                "A small drafter guesses the next words, the model checks them all at once. "
                "The answer stays the same, only sooner."
            ),
            wordWrap=True,
        )
        self.lead.setProperty("role", "muted")
        self._titles: list[QLabel] = []
        self._row = QHBoxLayout()
        self._row.setSpacing(L)
        self._row.addWidget(self._machine_card(), 1)
        self._row.addWidget(self._pair_card(), 1)
        self._row.addWidget(self._ready_card(), 1)
        self.chat = QPushButton(self.tr("Start chatting"))
        self.chat.setProperty("role", "primary")
        self.race = QPushButton(self.tr("See the race"))
        self.agent = QPushButton(self.tr("Connect an agent"))
        buttons = QHBoxLayout()
        buttons.setSpacing(M)
        for button in (self.chat, self.race, self.agent):
            buttons.addWidget(button)
        buttons.addStretch(1)
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(2 * XL, 2 * XL, 2 * XL, XL)
        column.setSpacing(L)
        column.addWidget(self.heading)
        column.addWidget(self.lead)
        column.addSpacing(M)
        column.addLayout(self._row)
        column.addSpacing(M)
        column.addLayout(buttons)
        column.addStretch(1)
        area = QScrollArea(widgetResizable=True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidget(page)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(area)
        self.chat.clicked.connect(self._on_chat)
        self.race.clicked.connect(self._on_race)
        self.agent.clicked.connect(self._on_agent)
        self.measure.clicked.connect(self.run_test)
        self.skip.clicked.connect(self._on_skip)
        app.bus.status_changed.connect(self._on_status)
        app.bus.said.connect(self._on_said)
        app.theme.changed.connect(self._on_theme)
        self._on_theme()
        self._on_status(app.session.status)

    @property
    def title(self) -> str:
        return self.tr("Welcome")

    def left(self) -> None:
        if self._test is not None:
            self._test.cancel()

    # The cards.

    def _card(self, number: int, title: str) -> tuple[QFrame, QVBoxLayout]:
        card = QFrame()
        card.setProperty("role", "card")
        column = QVBoxLayout(card)
        column.setContentsMargins(L, L, L, L)
        column.setSpacing(S)
        label = QLabel(f"{number}   {title}")
        self._titles.append(label)
        column.addWidget(label)
        return card, column

    def _machine_card(self) -> QFrame:
        found = machine(data_dir())
        card, column = self._card(1, self.tr("This Mac") if "macOS" in found.system else self.tr("This computer"))
        for words in (
            found.chip,
            self.tr("{0} GB of memory, {1} GB for models").format(
                f"{found.memory_bytes / GB:.0f}", f"{found.gpu_bytes / GB:.0f}"
            ),
            found.system,
            self.tr("{0} GB free on disk").format(f"{found.disk_free_bytes / GB:.0f}"),
        ):
            column.addWidget(QLabel(words, wordWrap=True))
        column.addStretch(1)
        return card

    def _pair_card(self) -> QFrame:
        card, column = self._card(2, self.tr("Pick a pair"))
        self.choices = QButtonGroup(self)
        built_in = QRadioButton(BUILT_IN.title)
        built_in.setChecked(True)
        self.choices.addButton(built_in)
        column.addWidget(built_in)
        note = QLabel(self.tr("Small, built in, works without a network"), wordWrap=True)
        note.setProperty("role", "muted")
        column.addWidget(note)
        column.addStretch(1)
        self.more = QPushButton(self.tr("More models…"))
        self.more.clicked.connect(self._on_more)
        column.addWidget(self.more, 0, Qt.AlignmentFlag.AlignLeft)
        return card

    def _ready_card(self) -> QFrame:
        card, column = self._card(3, self.tr("Ready"))
        self.state = QLabel(wordWrap=True)
        self.bar = QProgressBar(textVisible=False)
        self.bar.setRange(0, 0)
        self.bar.setAccessibleName(self.tr("Loading"))
        self.result = QLabel(wordWrap=True)
        self.result.setTextFormat(Qt.TextFormat.PlainText)
        self.measure = QPushButton(self.tr("Measure it here"))
        self.skip = QPushButton(self.tr("Skip, measure later"))
        row = QHBoxLayout()
        row.setSpacing(S)
        row.addWidget(self.measure)
        row.addWidget(self.skip)
        row.addStretch(1)
        for widget in (self.state, self.bar, self.result):
            column.addWidget(widget)
        column.addStretch(1)
        column.addLayout(row)
        self.skip.hide()
        return card

    # The self-test.

    @Slot()
    def run_test(self) -> None:
        """64 tokens plainly and 64 with drafts, by the same road as every answer."""
        self._test = SelfTest(self.app)
        self.result.setText(self.tr("Measuring: the same answer twice, plainly and with drafts…"))
        self._tend()

    @Slot(int, object)
    def _on_said(self, number: int, event: Event) -> None:
        test = self._test
        if test is None or not test.take(number, event):
            return
        self._test = None
        self.result.setText(self._words(test))
        self._tend()

    def _words(self, test: SelfTest) -> str:
        if test.error:
            return self.tr("It could not be measured: {0}").format(test.error)
        if test.speedup is None:
            return self.tr("Not measured.")
        speed = self.tr("Measured here on code: {0}× as fast, {1} against {2} tok/s.").format(
            f"{test.speedup:.1f}", f"{test.fast:.1f}", f"{test.plain:.1f}"
        )
        if test.is_same:
            return speed + " " + self.tr("Both answers are the same, token for token.")
        return self.tr("The two answers differ. Run a race to see where and why.")

    # What happens.

    @Slot(object)
    def _on_status(self, status: Status) -> None:
        match status:
            case Loading(name):
                self.state.setText(self.tr("Loading {0}…").format(name))
            case Ready(info) | Working(info):
                self.state.setText(self.tr("{0} is loaded.").format(info.name))
            case Faulted(error):
                self.state.setText(error.message)
            case _:
                self.state.setText(self.tr("No model is loaded yet."))
        self.bar.setVisible(isinstance(status, Loading))
        self._tend()

    def _tend(self) -> None:
        is_loaded = self.app.session.info is not None or isinstance(self.app.session.status, Working)
        self.measure.setVisible(self._test is None)
        self.measure.setEnabled(is_loaded)
        self.skip.setVisible(self._test is not None)

    @Slot()
    def _on_skip(self) -> None:
        if self._test is not None:
            self._test.cancel()

    @Slot()
    def _on_chat(self) -> None:
        self.app.navigator.go("chat")

    @Slot()
    def _on_race(self) -> None:
        self.app.navigator.go("race")

    @Slot()
    def _on_agent(self) -> None:
        self.app.navigator.go("server")

    @Slot()
    def _on_more(self) -> None:
        self.app.navigator.go("models")

    @Slot()
    def _on_theme(self) -> None:
        theme = self.app.theme
        self.heading.setFont(theme.font(1.8, bold=True))
        for label in self._titles:
            label.setFont(theme.font(1.1, bold=True))


class SelfTest:
    """The same request plainly, then with drafts. Not on the main thread's time: it only listens."""

    def __init__(self, app: AppContext) -> None:
        self._session = app.session
        self._modes = [Mode.BASELINE, Mode.AUTO]
        self._job: Job | None = None
        self._tokens: list[list[int]] = []
        self._timings: list[Timings] = []
        self._is_cancelled = False
        self.error = ""
        self._next()

    def take(self, number: int, event: Event) -> bool:
        """True when the test is over."""
        if self._job is None or number != self._job.number:
            return False
        match event:
            case Delta(tokens=tokens):
                self._tokens[-1].extend(tokens)
            case Failed(error):
                self.error = error.message
                return True
            case Done(timings=timings):
                self._timings.append(timings)
                if self._is_cancelled or not self._modes:
                    return True
                self._next()
            case _:
                pass
        return False

    def cancel(self) -> None:
        self._is_cancelled = True
        if self._job is not None:
            self._job.cancel()

    @property
    def speedup(self) -> float | None:
        if self._is_cancelled or len(self._timings) < 2 or not self.plain:
            return None
        return self.fast / self.plain

    @property
    def plain(self) -> float:
        return self._timings[0].decode_tps

    @property
    def fast(self) -> float:
        return self._timings[1].decode_tps

    @property
    def is_same(self) -> bool:
        return self._tokens[0] == self._tokens[1]

    def _next(self) -> None:
        messages: Sequence[dict[str, str]] = ({"role": "user", "content": TEST_PROMPT},)
        options = Options(max_tokens=TEST_TOKENS, mode=self._modes.pop(0), ignore_eos=True)
        self._tokens.append([])
        self._job = self._session.submit(Request(Chat(tuple(messages)), options), source="self-test")
