"""The first start: this Mac, a pair, ready. Any step can be left; the built-in pair works offline."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import (
    QButtonGroup,
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QRadioButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from slipstream.errors import SlipstreamError
from slipstream.store.paths import data_dir
from slipstream_app.bridge.pair import BUILT_IN, PairChoice
from slipstream_app.mac import machine
from slipstream_app.models.on_disk import CONTEXT
from slipstream_app.models.pairs import CONTEXTS, FitWord, OpenStore, PairFit, PairRow
from slipstream_app.models.store import open_store
from slipstream_app.models.suggest import Size, Suggestion, Sure, found_here, suggested
from slipstream_app.models.work import Work
from slipstream_app.numbers import context_text, number_text, size_text
from slipstream_app.screens.base import AppContext, Screen
from slipstream_app.screens.onboarding_ready import ReadyCard
from slipstream_app.theme import XL, L, M, S
from slipstream_app.widgets.panel import Words, wrapped

GB = 1e9
MOST_WIDE = 1000  # pixels of the page; on a wide window it stands in the middle


class OnboardingScreen(Screen):
    """Three cards side by side, or below each other when the window is narrow."""

    NAME = "onboarding"

    def __init__(self, app: AppContext, parent: QWidget | None = None, *, open_: OpenStore = open_store) -> None:
        super().__init__(app, parent)
        self._open_store = open_
        self._work = Work(self)
        self._has_looked = False
        self._machine = machine(data_dir())
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
        self._notes: list[QWidget] = []  # under a choice each
        self._row = QHBoxLayout()
        self._row.setSpacing(L)
        self._row.addWidget(self._machine_card(), 1)
        self._row.addWidget(self._pair_card(), 1)
        self._row.addWidget(self._ready_card(), 1)
        self.chat = QPushButton(self.tr("Start chatting"))
        self.chat.setProperty("role", "primary")
        self.race = QPushButton(self.tr("See the race"))
        self.agent = QPushButton(self.tr("Connect an agent"))
        self._lay_out()
        self.chat.clicked.connect(self._on_chat)
        self.race.clicked.connect(self._on_race)
        self.agent.clicked.connect(self._on_agent)
        app.theme.changed.connect(self._on_theme)
        self._on_theme()

    def _lay_out(self) -> None:
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
        column.addLayout(buttons)
        column.addSpacing(M)
        column.addLayout(self._row)
        column.addStretch(1)
        area = QScrollArea(widgetResizable=True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        page.setMaximumWidth(self.app.theme.px(MOST_WIDE))
        area.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        area.setAccessibleName(self.title)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(page)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(area)

    @property
    def title(self) -> str:
        return self.tr("Welcome")

    def visited(self, argument: object) -> None:
        if not self._has_looked:
            self._has_looked = True
            self._look()

    def left(self) -> None:
        self.ready.rest()

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
        found = self._machine
        card, column = self._card(1, self.tr("This Mac") if "macOS" in found.system else self.tr("This computer"))
        for words in (
            found.chip,
            self.tr("{0} GB of memory, {1} GB for models").format(
                number_text(found.memory_bytes / GB, 0), number_text(found.gpu_bytes / GB, 0)
            ),
            found.system,
            self.tr("{0} GB free on disk").format(number_text(found.disk_free_bytes / GB, 0)),
        ):
            column.addWidget(QLabel(words, wordWrap=True))
        column.addStretch(1)
        return card

    def _pair_card(self) -> QFrame:
        card, column = self._card(2, self.tr("Pick a pair"))
        self.choices = QButtonGroup(self)
        self.choices.idClicked.connect(self._on_choice)
        self._offers: list[PairRow | Suggestion | None] = []
        self._list = QVBoxLayout()
        self._list.setSpacing(S)
        column.addLayout(self._list)
        self._offer(None, BUILT_IN.title, self.tr("Small, built in, works without a network"))
        self.choices.button(0).setChecked(True)
        self.looking = Words(self.app.theme, self.tr("Looking for more…"), "muted")
        column.addWidget(self.looking)
        column.addStretch(1)
        self.use = QPushButton()
        self.use.setProperty("role", "primary")
        self.use.clicked.connect(self._on_use)
        self.use.hide()
        self.more = QPushButton(self.tr("More models…"))
        self.more.clicked.connect(self._on_more)
        row = QHBoxLayout()
        row.setSpacing(S)
        row.addWidget(self.use)
        row.addWidget(self.more)
        row.addStretch(1)
        column.addLayout(row)
        self.own = QPushButton(self.tr("Use models I already have…"))
        self.own.clicked.connect(self._on_own)
        column.addWidget(self.own, 0, Qt.AlignmentFlag.AlignLeft)
        return card

    def _offer(self, what: PairRow | Suggestion | None, title: str, note: str) -> None:
        """None: the built-in pair."""
        choice = QRadioButton(title)
        self.choices.addButton(choice, len(self._offers))
        self._offers.append(what)
        self._list.addWidget(choice)
        words = wrapped(self.app.theme, note, "muted")
        self._notes.append(words)
        self._indent(words)
        self._list.addWidget(words)

    def _withdraw(self) -> None:
        """All offers but the built-in pair."""
        self.choices.button(0).setChecked(True)
        self.use.hide()
        while self._list.count() > 2:
            widget = self._list.takeAt(2).widget()
            if isinstance(widget, QRadioButton):
                self.choices.removeButton(widget)
            widget.deleteLater()
        del self._offers[1:], self._notes[1:]

    def _look(self, folder: Path | None = None) -> None:
        """What is on this machine, in `folder` too, and what would fit it."""
        store = self._open_store(lambda _: None)

        kv_bits = int(self.app.settings.text("performance/kv_bits"))

        def fit(row: PairRow) -> PairFit:
            try:
                return store.fit(row, CONTEXT, kv_bits)
            except SlipstreamError:
                return PairFit(FitWord.UNKNOWN)

        def work() -> tuple[list[PairRow], dict[str, PairFit]]:
            try:
                if folder is not None:
                    store.add_folder(folder)
                rows = list(store.pairs())
                return rows, {row.key: fit(row) for row in rows}
            finally:
                store.close()

        def complain(error: SlipstreamError) -> None:
            self.looking.setVisible(folder is not None)
            self.looking.say(error.message, "bad")

        self._work.do(work, self._show_pairs, complain, "slipstream-look")

    def _show_pairs(self, found: tuple[list[PairRow], dict[str, PairFit]]) -> None:
        rows, fits = found
        self.looking.hide()
        self._withdraw()
        for row in found_here(rows):
            size = "" if row.bytes is None else size_text(row.bytes)
            facts = [fact for fact in (size, self._fit_words(row, fits[row.key])) if fact]
            self._offer(row, row.title, self.tr("Found on this machine, no download. {0}").format(", ".join(facts)))
        names = {Size.FAST: self.tr("Fast"), Size.BALANCED: self.tr("Balanced"), Size.LARGE: self.tr("Large")}
        for one in suggested(rows, fits, self._machine.gpu_bytes):
            words = {
                Sure.EXACT: self.tr("{0}: {1} to download"),
                Sure.ABOUT: self.tr("{0}: about {1} to download"),
                Sure.AT_LEAST: self.tr("{0}: at least {1} to download"),
            }
            note = words[one.sure].format(names[one.size], size_text(one.bytes))
            self._offer(one, one.row.title, ", ".join((note, self._fit_words(one.row, fits[one.row.key]))))

    def _fit_words(self, row: PairRow, fit: PairFit) -> str:
        """Whether it fits at the usual context, or how far it does."""
        context = min(CONTEXT, row.context or CONTEXT)
        match fit.word:
            case FitWord.UNKNOWN:
                return self.tr("how much context fits is known once it is here")
            case FitWord.FITS:
                words = self.tr("fits at {0}").format(context_text(context))
            case FitWord.TIGHT:
                words = self.tr("tight at {0}").format(context_text(context))
            case _ if fit.longest_context >= CONTEXTS[0]:
                words = self.tr("fits up to {0}").format(context_text(fit.longest_context))
            case _:
                words = self.tr("too large")
        return self.tr("{0} (drafter not counted)").format(words) if fit.lacks_drafter else words

    @Slot(int)
    def _on_choice(self, number: int) -> None:
        match self._offers[number]:
            case Suggestion():
                self.use.setText(self.tr("Download…"))
            case _:
                self.use.setText(self.tr("Load"))
        self.use.setVisible(self._chosen() != self.app.session.choice)

    def _chosen(self) -> PairChoice:
        what = self._offers[self.choices.checkedId()]
        return BUILT_IN if what is None else what.row.choice if isinstance(what, Suggestion) else what.choice

    @Slot()
    def _on_use(self) -> None:
        match self._offers[self.choices.checkedId()]:
            case Suggestion(row):
                self.app.navigator.go("models", {"shelf": "suggested", "words": row.title})
            case _:
                self.app.session.load(self._chosen())
                self.use.hide()

    def _ready_card(self) -> QFrame:
        card, column = self._card(3, self.tr("Ready"))
        self.ready = ReadyCard(self.app)
        column.addWidget(self.ready, 1)
        return card

    # What happens.

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
    def _on_own(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, self.tr("A folder with models"))
        if folder:
            self.looking.say(self.tr("Looking for more…"), "muted")
            self.looking.show()
            self._look(Path(folder))

    @Slot()
    def _on_more(self) -> None:
        self.app.navigator.go("models")

    @Slot()
    def _on_theme(self) -> None:
        theme = self.app.theme
        self.heading.setFont(theme.font(1.8, bold=True))
        for label in self._titles:
            label.setFont(theme.font(1.1, bold=True))
        for words in self._notes:
            self._indent(words)

    def _indent(self, words: QWidget) -> None:
        """Under the words of its button: right of the mark and of what the style sheet leaves between them."""
        words.setContentsMargins(self.app.theme.px(14) + 2 + S, 0, 0, S)
