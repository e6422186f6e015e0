"""The Models screen's pairs: the table of a shelf at a chosen context, and what can be done with the chosen one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import Qt, QTimer, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QHBoxLayout, QSlider, QVBoxLayout, QWidget

from slipstream.errors import SlipstreamError
from slipstream.types import Mode
from slipstream_app.bridge.pair import PairChoice
from slipstream_app.models.drafter_options import Value, of_loaded, of_row
from slipstream_app.models.pairs import (
    CONTEXTS,
    DownloadState,
    FitWord,
    PairFit,
    PairRow,
    PairTable,
    RemovalPlan,
    Shelf,
    Store,
)
from slipstream_app.models.work import Work
from slipstream_app.numbers import count_text, number_text
from slipstream_app.screens.base import AppContext
from slipstream_app.theme import S
from slipstream_app.widgets.banner import Banner, Kind
from slipstream_app.widgets.divided import Divided
from slipstream_app.widgets.pair_details import PairDetails
from slipstream_app.widgets.pair_table import PairView
from slipstream_app.widgets.panel import Words, button, wrapped

DEFAULT_CONTEXT = CONTEXTS.index(32768)
FIT_DELAY_MS = 150  # after the slider's last move


class ModelPairs(Divided):
    get_asked = Signal(object)  # PairRow, whose missing halves are wanted
    make_asked = Signal(object)  # PairRow, for whose model a drafter is wanted
    suggested_asked = Signal()
    folder_asked = Signal()
    unfinished_found = Signal(object)  # DownloadStates of earlier runs

    def __init__(
        self, app: AppContext, store: Store, is_fetched: Callable[[str], bool], parent: QWidget | None = None
    ) -> None:
        """`is_fetched`: whether this repository is being downloaded already."""
        super().__init__(parent)
        self._app = app
        self._store = store
        self._is_fetched = is_fetched
        self._work = Work(self)
        self._look_number = 0
        self._fit_number = 0
        self._is_filtered = False
        self._drafter_of = ""  # key of the row whose drafters are shown
        self._fit_timer = QTimer(self, singleShot=True, interval=FIT_DELAY_MS)
        self._fit_timer.timeout.connect(self._ask_fits)
        self.table = PairTable(self)
        self.addWidget(self._shelf())
        self.addWidget(self._details())
        app.bus.status_changed.connect(self._on_status)
        app.keep_alive.changed.connect(self._on_keep_alive)
        app.acceptances.changed.connect(self._show_drafters)
        app.drafting.changed.connect(self._show_drafters)
        self.table.take_loaded(app.session.choice)
        self._on_context_words()
        self.show_row()

    def _shelf(self) -> QWidget:
        theme = self._app.theme
        self.view = PairView(theme, self.table, self.tr("Pairs"))
        self.view.selectionModel().currentRowChanged.connect(self._on_row)
        self.view.doubleClicked.connect(self._on_double)
        self.table.modelReset.connect(self._on_reset)
        self.view.hide()
        self.nothing = wrapped(theme, self.tr("Looking for models on this machine…"), "muted")
        self.nothing.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.suggest = button(self.tr("See what is suggested"), "primary")
        self.suggest.clicked.connect(self.suggested_asked)
        self.add = button(self.tr("Add a folder…"))
        self.add.clicked.connect(self.folder_asked)
        ways = QHBoxLayout()
        ways.addStretch(1)
        for widget in (self.suggest, self.add):
            widget.hide()
            ways.addWidget(widget)
        ways.addStretch(1)
        self._blank = QWidget()
        middle = QVBoxLayout(self._blank)
        middle.addStretch(1)
        middle.addWidget(self.nothing)
        middle.addLayout(ways)
        middle.addStretch(1)
        self.context = QSlider(Qt.Orientation.Horizontal)
        self.context.setRange(0, len(CONTEXTS) - 1)
        self.context.setValue(DEFAULT_CONTEXT)
        self.context.setPageStep(1)
        self.context.setTickPosition(QSlider.TickPosition.TicksBelow)
        self.context.setAccessibleName(self.tr("Context that must fit"))
        self.context.setMaximumWidth(theme.px(260))
        self.context.valueChanged.connect(self._on_context)
        self.context_words = Words(theme)
        row = QHBoxLayout()
        row.setSpacing(S)
        row.addWidget(Words(theme, self.tr("Context"), "muted"))
        row.addWidget(self.context, 1)
        row.addWidget(self.context_words)
        row.addStretch(1)
        made = QWidget()
        column = QVBoxLayout(made)
        column.setContentsMargins(0, 0, 0, 0)
        column.addLayout(row)
        column.addWidget(self._blank, 1)
        column.addWidget(self.view, 1)
        return made

    def _details(self) -> QWidget:
        self.details = made = PairDetails(self._app.theme)
        made.check.clicked.connect(self._on_check)
        made.load.clicked.connect(self._on_load)
        made.get.clicked.connect(self._on_get)
        made.reveal.clicked.connect(self._on_reveal)
        made.race.clicked.connect(partial(self._app.navigator.go, "race"))
        made.calibrate.clicked.connect(partial(self._app.navigator.go, "telemetry", "calibrate"))
        made.make.clicked.connect(self._on_make)
        made.delete.clicked.connect(self._on_delete)
        made.drafters.chosen.connect(self._on_drafter)
        made.keep.chosen.connect(self._on_keep_chosen)
        made.removal.kept.connect(self._on_keep)
        made.removal.agreed.connect(self._on_remove)
        made.hide()
        return made

    def whole_heights(self) -> tuple[int, int] | None:
        """The table without the blank beneath its last row, and the details."""
        if self.details.isHidden() or self.view.isHidden():
            return None
        return self.view.y() + self.view.whole_height, self.details.whole_height(self.width())

    # Looking.

    @Slot()
    def look(self) -> None:
        """Read anew what is on the disk. An answer that a later question overtook is dropped."""
        self._look_number += 1
        number = self._look_number

        def work() -> tuple[tuple[PairRow, ...], tuple[DownloadState, ...]]:
            return tuple(self._store.pairs()), tuple(self._store.unfinished())

        def then(found: tuple[tuple[PairRow, ...], tuple[DownloadState, ...]]) -> None:
            if number == self._look_number:
                self._show_found(*found)

        self._work.do(work, then, self.complain, "slipstream-look")

    def _show_found(self, rows: tuple[PairRow, ...], unfinished: tuple[DownloadState, ...]) -> None:
        self.table.take(rows)
        self.unfinished_found.emit(unfinished)
        best = {row.title: self._app.speedups.best(row.title) for row in rows}
        known = {title: f"{number_text(ratio, 2)}×" for title, ratio in best.items() if ratio is not None}
        self.table.take_speeds(known)
        self._on_keep_alive()
        self._ask_fits()

    @Slot()
    def _ask_fits(self) -> None:
        self._fit_number += 1
        number, context = self._fit_number, CONTEXTS[self.context.value()]
        kv_bits = int(self._app.settings.text("performance/kv_bits"))
        rows = self.table.everything

        def work() -> dict[str, PairFit]:
            fits: dict[str, PairFit] = {}
            for row in rows:
                try:
                    fits[row.key] = self._store.fit(row, context, kv_bits)
                except SlipstreamError:
                    fits[row.key] = PairFit(FitWord.UNKNOWN)  # the row's own state says what is wrong with it
            return fits

        def then(fits: dict[str, PairFit]) -> None:
            if number == self._fit_number:
                self.table.take_fits(fits)
                self.show_row()

        self._work.do(work, then, self.complain, "slipstream-fit")

    def complain(self, error: SlipstreamError) -> None:
        self._app.banners.show(Banner("models", Kind.ERROR, error.message))

    def filter(self, shelf: Shelf, words: str, *, fits_only: bool) -> None:
        self._is_filtered = bool(words) or fits_only
        self.table.filter(shelf, words, fits_only=fits_only)

    @Slot()
    def _on_reset(self) -> None:
        is_empty = self.table.rowCount() == 0
        self._blank.setVisible(is_empty)
        self.view.setVisible(not is_empty)
        if is_empty:
            words = self.tr("No pair matches.")
            if not self._is_filtered:
                words = self.tr("Nothing was found on this machine. Look under Suggested, or add a folder.")
            self.nothing.say(words)
        for way in (self.suggest, self.add):
            way.setVisible(is_empty and not self._is_filtered)
        if not is_empty:
            self.view.selectRow(0)
        self.show_row()

    @Slot(int)
    def _on_context(self, _: int) -> None:
        self._on_context_words()
        self._fit_timer.start()

    def _on_context_words(self) -> None:
        context = CONTEXTS[self.context.value()]
        self.context_words.say(self.tr("{0} tokens").format(count_text(context)))

    def rest(self) -> None:
        """Nobody looks any more."""
        self._fit_timer.stop()

    # One pair.

    @property
    def chosen(self) -> PairRow | None:
        index = self.view.currentIndex()
        return self.table.row(index.row()) if index.isValid() and index.row() < self.table.rowCount() else None

    @Slot()
    def _on_row(self, *_: object) -> None:
        self.details.removal.show_plan(None)
        self.show_row()

    @Slot()
    def show_row(self) -> None:
        """The chosen one, as it is now."""
        row = self.chosen
        self.details.setVisible(row is not None)
        if row is None:
            return
        self.details.show_row(
            row,
            self.table.fit_of(row),
            CONTEXTS[self.context.value()],
            self._app.speedups.by_mode(row.title),
            is_loaded=self.table.is_loaded(row),
            can_get=any(not self._is_fetched(half.repo) for half in row.missing),
        )
        self._show_drafters()
        self.details.keep.show_value(self._app.keep_alive.own(row.choice), self._app.keep_alive.usual)
        self.divide()

    @Slot()
    def _show_drafters(self) -> None:
        """Of the loaded pair, who drafts its next answers; of another, what it could be loaded with."""
        row, app = self.chosen, self._app
        loaded = app.session.choice
        if row is None:
            return
        if loaded is not None and app.session.info is not None and self.table.is_loaded(row):
            options, current = of_loaded(loaded, app.drafting, app.acceptances), app.drafting.active
            self.details.drafters.show_options(options, current)
        else:
            options = of_row(row, self.table.everything, app.acceptances)
            kept = self.details.drafters.value
            is_kept = self._drafter_of == row.key and any(option.value == kept for option in options)
            self.details.drafters.show_options(options, kept if is_kept else row.choice)
        self._drafter_of = row.key

    @Slot(object)
    def _on_drafter(self, value: Value) -> None:
        """Another choice of the loaded pair holds at once; of others, when it is loaded."""
        if isinstance(value, Mode):
            self._app.drafting.choose(value)

    @Slot()
    def _on_double(self, *_: object) -> None:
        if self.details.load.isVisible() and self.chosen is not None and not self.table.is_loaded(self.chosen):
            self._on_load()

    @Slot()
    def _on_load(self) -> None:
        row = self.chosen
        if row is None:
            return
        if self.table.is_loaded(row):
            self._app.session.unload()
        else:
            wanted = self.details.drafters.value
            choice = wanted if isinstance(wanted, PairChoice) else row.choice
            self._app.session.load(choice)
            if (number := self.table.number_with(choice)) is not None:
                self.view.selectRow(number)  # another pair's drafter was chosen: that is the one to watch

    @Slot()
    def _on_get(self) -> None:
        if self.chosen is not None:
            self.get_asked.emit(self.chosen)

    @Slot()
    def _on_make(self) -> None:
        if self.chosen is not None:
            self.make_asked.emit(self.chosen)

    @Slot()
    def _on_check(self) -> None:
        """Reads a few kilobytes from the hub: the model's layout, from which its memory follows."""
        row = self.chosen
        if row is not None:
            self.details.check.setEnabled(False)
            self._work.do(lambda: self._store.look_up(row), self._checked, self._not_checked)

    def _checked(self, _: None) -> None:
        self.details.check.setEnabled(True)
        self._ask_fits()

    def _not_checked(self, error: SlipstreamError) -> None:
        self.details.check.setEnabled(True)
        self.complain(error)

    @Slot()
    def _on_reveal(self) -> None:
        row = self.chosen
        if row is not None and row.folder is not None:
            folder = row.folder if row.folder.is_dir() else row.folder.parent
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))

    @Slot(object)
    def _on_status(self, status: object) -> None:
        self.table.take_loaded(self._app.session.choice)
        self.show_row()

    # How long it stays.

    @Slot(object)
    def _on_keep_chosen(self, minutes: int | None) -> None:
        if self.chosen is not None:
            self._app.keep_alive.set(self.chosen.choice, minutes)

    @Slot()
    def _on_keep_alive(self) -> None:
        keep_alive = self._app.keep_alive
        rows = [row for row in self.table.everything if row.shelf is Shelf.ON_MAC and not row.problem]
        pinned = frozenset(row.key for row in rows if keep_alive.is_pinned(row.choice))
        self.table.take_stays({row.key: keep_alive.minutes(row.choice) for row in rows}, pinned)
        self.show_row()

    # Deleting.

    @Slot()
    def _on_delete(self) -> None:
        row = self.chosen
        if row is not None:
            self._work.do(lambda: self._store.plan_removal(row), partial(self._show_removal, row.key), self.complain)

    def _show_removal(self, key: str, plan: RemovalPlan) -> None:
        if self.chosen is None or self.chosen.key != key:
            return  # another row was chosen meanwhile
        self.details.removal.show_plan(plan)
        self.show_row()

    @Slot()
    def _on_keep(self) -> None:
        self.details.removal.show_plan(None)
        self.show_row()

    @Slot(object)
    def _on_remove(self, plan: RemovalPlan) -> None:
        self.show_row()
        self._work.do(lambda: self._store.remove(plan), partial(self._removed, plan.title), self.complain)

    def _removed(self, title: str, where: str) -> None:
        self._app.banners.show(Banner("models", Kind.INFO, f"{title}: {where}"))
        self.look()
