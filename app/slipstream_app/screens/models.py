"""Models: pairs on this machine and those that could be had, whether they fit, downloads, and deleting."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import ClassVar

from PySide6.QtCore import QSize, Qt, QTimer, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices, QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QSlider,
    QSplitter,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from slipstream.errors import SlipstreamError
from slipstream.store.curves import curves_of
from slipstream_app.models.pairs import (
    CONTEXTS,
    DownloadState,
    FitWord,
    OpenStore,
    PairFit,
    PairRow,
    PairTable,
    RemovalPlan,
    Shelf,
)
from slipstream_app.models.store import open_store
from slipstream_app.models.training import Training, Wanted
from slipstream_app.models.training_forecast import USUAL, Forecast, forecast
from slipstream_app.models.work import Work
from slipstream_app.screens.base import AppContext, Screen
from slipstream_app.screens.models_downloads import ModelDownloads
from slipstream_app.theme import L, M, S
from slipstream_app.widgets.banner import Banner, Kind
from slipstream_app.widgets.pair_details import PairDetails
from slipstream_app.widgets.pair_table import PairView
from slipstream_app.widgets.panel import Words, button, wrapped
from slipstream_app.widgets.sections import Sections
from slipstream_app.widgets.training_page import TrainingPage

DEFAULT_CONTEXT = CONTEXTS.index(32768)
FIT_DELAY_MS = 150  # after the slider's last move
ON_MAC, SUGGESTED, DOWNLOADS, TRAINING = range(4)


class ModelsScreen(Screen):
    NAME: ClassVar[str] = "models"
    _download_moved = Signal(object)  # DownloadState, from the store's thread

    def __init__(self, app: AppContext, parent: QWidget | None = None, *, open_: OpenStore = open_store) -> None:
        super().__init__(app, parent)
        self._work = Work(self)
        self._store = open_(self._download_moved.emit)
        self._look_number = 0
        self._fit_number = 0
        self.table = PairTable(self)
        self.fetching = ModelDownloads(app.theme, app.banners, self._store, self.table, self._on_trouble, self)
        self.downloads = self.fetching.page
        self._download_moved.connect(self.fetching.show_state)
        self.fetching.changed.connect(self._on_downloads)
        self.fetching.arrived.connect(self.look)
        self._fit_timer = QTimer(self, singleShot=True, interval=FIT_DELAY_MS)
        self._fit_timer.timeout.connect(self._ask_fits)

        names = (self.tr("On this machine"), self.tr("Suggested"), self.tr("Downloads"), self.tr("Training"))
        self.sections = Sections(self.tr("Shelf"), names)
        self.sections.chosen.connect(self._on_section)
        self.search = QLineEdit()
        self.search.setPlaceholderText(self.tr("Search"))
        self.search.setAccessibleName(self.tr("Search pairs"))
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self._filter)
        self.fits_only = QCheckBox(self.tr("Fits only"))
        self.fits_only.toggled.connect(self._filter)
        self.add = button(self.tr("Add a folder…"))
        self.add.clicked.connect(self._on_add)
        bar = QHBoxLayout()
        bar.setSpacing(S)
        bar.addWidget(self.sections)
        bar.addStretch(1)
        for widget in (self.search, self.fits_only, self.add):
            bar.addWidget(widget)
        self.search.setMaximumWidth(app.theme.px(220))
        self.pages = QStackedWidget()
        self.pages.addWidget(self._pairs_page())
        self.pages.addWidget(self.downloads)
        self.pages.addWidget(self._training_page())
        column = QVBoxLayout(self)
        column.setContentsMargins(L, M, L, M)
        column.setSpacing(M)
        column.addLayout(bar)
        column.addWidget(self.pages, 1)
        self.setAcceptDrops(True)
        app.bus.status_changed.connect(self._on_status)
        self.table.take_loaded(app.session.choice)
        self._show_row()

    @property
    def title(self) -> str:
        return self.tr("Models")

    # The pages.

    def _pairs_page(self) -> QWidget:
        theme = self.app.theme
        self.view = PairView(theme, self.table, self.tr("Pairs"))
        self.view.selectionModel().currentRowChanged.connect(self._on_row)
        self.view.doubleClicked.connect(self._on_double)
        self.table.modelReset.connect(self._on_reset)
        self.view.hide()
        self.nothing = wrapped(theme, self.tr("Looking for models on this machine…"), "muted")
        self.nothing.setAlignment(Qt.AlignmentFlag.AlignCenter)
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
        top = QWidget()
        upper = QVBoxLayout(top)
        upper.setContentsMargins(0, 0, 0, 0)
        upper.addLayout(row)
        upper.addWidget(self.nothing, 1)
        upper.addWidget(self.view, 1)
        split = QSplitter(Qt.Orientation.Vertical)
        split.addWidget(top)
        split.addWidget(self._details())
        split.setStretchFactor(0, 3)
        split.setStretchFactor(1, 2)
        split.setSizes([360, 240])
        split.setChildrenCollapsible(False)
        self._on_context_words()
        return split

    def _details(self) -> QWidget:
        self.details = made = PairDetails(self.app.theme)
        made.check.clicked.connect(self._on_check)
        made.load.clicked.connect(self._on_load)
        made.get.clicked.connect(self._on_get)
        made.reveal.clicked.connect(self._on_reveal)
        made.race.clicked.connect(partial(self.app.navigator.go, "race"))
        made.calibrate.clicked.connect(partial(self.app.navigator.go, "telemetry", "calibrate"))
        made.make.clicked.connect(self._on_make)
        made.delete.clicked.connect(self._on_delete)
        made.removal.kept.connect(self._on_keep)
        made.removal.agreed.connect(self._on_remove)
        made.hide()
        return made

    def _training_page(self) -> QWidget:
        self.training = made = TrainingPage(self.app.theme, self.app.trainings)
        made.load_asked.connect(self._on_load_made)
        self.app.trainings.made.connect(self.look)
        return made

    # Looking.

    def visited(self, argument: object) -> None:
        """`argument`: a section's name, words to search for, or both as {"shelf": …, "words": …}."""
        shelves = {"suggested": SUGGESTED, "downloads": DOWNLOADS, "training": TRAINING}
        if isinstance(argument, Mapping):
            self.sections.choose(shelves[str(argument["shelf"])])
            self.search.setText(str(argument["words"]))
        elif isinstance(argument, str) and argument in shelves:
            self.sections.choose(shelves[argument])
        elif isinstance(argument, str) and argument:
            self.search.setText(argument)
        self.look()

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

        self._work.do(work, then, self._on_trouble, "slipstream-look")

    def _show_found(self, rows: tuple[PairRow, ...], unfinished: tuple[DownloadState, ...]) -> None:
        self.table.take(rows)
        for state in unfinished:
            if state.repo not in self.downloads.cards:  # one of an earlier run; a moving one is known already
                self.fetching.show_state(state)
        best = {row.title: self.app.speedups.best(row.title) for row in rows}
        self.table.take_speeds({title: f"{ratio:.2f}×" for title, ratio in best.items() if ratio is not None})
        self._ask_fits()

    @Slot()
    def _ask_fits(self) -> None:
        self._fit_number += 1
        number, context = self._fit_number, CONTEXTS[self.context.value()]
        kv_bits = int(self.app.settings.text("performance/kv_bits"))
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
                self._show_row()

        self._work.do(work, then, self._on_trouble, "slipstream-fit")

    def _on_trouble(self, error: SlipstreamError) -> None:
        self.app.banners.show(Banner("models", Kind.ERROR, error.message))

    @Slot()
    def _filter(self, *_: object) -> None:
        shelf = Shelf.SUGGESTED if self.sections.index == SUGGESTED else Shelf.ON_MAC
        self.table.filter(shelf, self.search.text(), fits_only=self.fits_only.isChecked())

    @Slot()
    def _on_reset(self) -> None:
        is_empty = self.table.rowCount() == 0
        self.nothing.setVisible(is_empty)
        self.view.setVisible(not is_empty)
        if is_empty:
            words = self.tr("No pair matches.")
            if not self.search.text() and not self.fits_only.isChecked():
                words = self.tr("Nothing was found on this machine. Look under Suggested, or add a folder.")
            self.nothing.say(words)
        else:
            self.view.selectRow(0)
        self._show_row()

    @Slot(int)
    def _on_section(self, index: int) -> None:
        is_shelf = index in (ON_MAC, SUGGESTED)
        self.pages.setCurrentIndex(0 if is_shelf else index - 1)
        for widget in (self.search, self.fits_only, self.add):
            widget.setVisible(is_shelf)
        if is_shelf:
            self._filter()

    @Slot(int)
    def _on_context(self, _: int) -> None:
        self._on_context_words()
        self._fit_timer.start()

    def _on_context_words(self) -> None:
        context = CONTEXTS[self.context.value()]
        self.context_words.say(self.tr("{0} tokens").format(f"{context:,}"))

    # One pair.

    @property
    def chosen(self) -> PairRow | None:
        index = self.view.currentIndex()
        return self.table.row(index.row()) if index.isValid() and index.row() < self.table.rowCount() else None

    @Slot()
    def _on_row(self, *_: object) -> None:
        self.details.removal.show_plan(None)
        self._show_row()

    def _show_row(self) -> None:
        row = self.chosen
        self.details.setVisible(row is not None)
        if row is None:
            return
        self.details.show_row(
            row,
            self.table.fit_of(row),
            CONTEXTS[self.context.value()],
            is_loaded=self.table.is_loaded(row),
            can_get=any(not self.downloads.is_moving(half.repo) for half in row.missing),
        )

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
            self.app.session.unload()
        else:
            self.app.session.load(row.choice)

    @Slot()
    def _on_get(self) -> None:
        row = self.chosen
        for half in row.missing if row is not None else ():
            self.fetching.start(half)
        self.sections.choose(DOWNLOADS)

    @Slot()
    def _on_downloads(self) -> None:
        moving = self.downloads.moving
        self.sections.rename(DOWNLOADS, self.tr("Downloads ({0})").format(moving) if moving else self.tr("Downloads"))
        self._show_row()

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
        self._on_trouble(error)

    @Slot()
    def _on_reveal(self) -> None:
        row = self.chosen
        if row is not None and row.folder is not None:
            folder = row.folder if row.folder.is_dir() else row.folder.parent
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))

    @Slot(object)
    def _on_status(self, status: object) -> None:
        self.table.take_loaded(self.app.session.choice)
        self._show_row()

    # Drafters made here.

    @Slot()
    def _on_make(self) -> None:
        row = self.chosen
        if row is None:
            return
        session = self.app.session
        info = session.info if self.table.is_loaded(row) else None

        def ask(conversations: int) -> Forecast:
            found = None if info is None else curves_of(info)
            return forecast(self._store.target_numbers(row), None if found is None else found.curves, conversations)

        self.sections.choose(TRAINING)
        self.training.propose(Wanted(row.target_title, row.choice.target, USUAL), ask)

    @Slot(object)
    def _on_load_made(self, training: Training) -> None:
        self.app.session.load(training.choice)

    # Deleting.

    @Slot()
    def _on_delete(self) -> None:
        row = self.chosen
        if row is not None:
            self._work.do(lambda: self._store.plan_removal(row), partial(self._show_removal, row.key), self._on_trouble)

    def _show_removal(self, key: str, plan: RemovalPlan) -> None:
        if self.chosen is None or self.chosen.key != key:
            return  # another row was chosen meanwhile
        self.details.removal.show_plan(plan)
        self._show_row()

    @Slot()
    def _on_keep(self) -> None:
        self.details.removal.show_plan(None)
        self._show_row()

    @Slot(object)
    def _on_remove(self, plan: RemovalPlan) -> None:
        self._show_row()
        self._work.do(lambda: self._store.remove(plan), partial(self._removed, plan.title), self._on_trouble)

    def _removed(self, title: str, where: str) -> None:
        self.app.banners.show(Banner("models", Kind.INFO, f"{title}: {where}"))
        self.look()

    # Folders.

    @Slot()
    def _on_add(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, self.tr("A folder with models"))
        if folder:
            self.add_folder(Path(folder))

    def add_folder(self, folder: Path) -> None:
        """It is looked through where it is; nothing is copied."""
        self._work.do(lambda: self._store.add_folder(folder), lambda _: self.look(), self._on_trouble)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if any(Path(url.toLocalFile()).is_dir() for url in event.mimeData().urls() if url.isLocalFile()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        for url in event.mimeData().urls():
            if url.isLocalFile() and (folder := Path(url.toLocalFile())).is_dir():
                self.add_folder(folder)
        event.acceptProposedAction()

    # The rest.

    def minimumSizeHint(self) -> QSize:
        return QSize(360, 240)

    def left(self) -> None:
        self._fit_timer.stop()
        shown = self.app.banners.current
        if shown is not None and shown.key == "models" and shown.kind is Kind.ERROR:
            self.app.banners.dismiss("models")  # elsewhere it would seem to be about that screen

    def closing(self) -> None:
        self._fit_timer.stop()
        self._store.close()
