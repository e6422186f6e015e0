"""Models: pairs on this machine and those that could be had, their downloads, and drafters in the making."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from PySide6.QtCore import QSize, Signal, Slot
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QCheckBox, QFileDialog, QHBoxLayout, QLineEdit, QStackedWidget, QVBoxLayout, QWidget

from slipstream.store.curves import curves_of
from slipstream_app.models.pairs import DownloadState, OpenStore, PairRow, Shelf
from slipstream_app.models.store import open_store
from slipstream_app.models.training import Training, Wanted
from slipstream_app.models.training_forecast import USUAL, Forecast, forecast
from slipstream_app.models.work import Work
from slipstream_app.screens.base import AppContext, Screen
from slipstream_app.screens.models_downloads import ModelDownloads
from slipstream_app.screens.models_pairs import ModelPairs
from slipstream_app.theme import L, M, S
from slipstream_app.widgets.banner import Kind
from slipstream_app.widgets.panel import button
from slipstream_app.widgets.sections import Sections
from slipstream_app.widgets.training_page import TrainingPage

ON_MAC, SUGGESTED, DOWNLOADS, TRAINING = range(4)


class ModelsScreen(Screen):
    NAME: ClassVar[str] = "models"
    _download_moved = Signal(object)  # DownloadState, from the store's thread

    def __init__(self, app: AppContext, parent: QWidget | None = None, *, open_: OpenStore = open_store) -> None:
        super().__init__(app, parent)
        self._work = Work(self)
        self._store = open_(self._download_moved.emit)
        self.pairs = ModelPairs(app, self._store, self._is_fetched)
        self.table = self.pairs.table
        self.fetching = ModelDownloads(app.theme, app.banners, self._store, self.table, self.pairs.complain, self)
        self.downloads = self.fetching.page
        self._download_moved.connect(self.fetching.show_state)
        self.fetching.changed.connect(self._on_downloads)
        self.fetching.arrived.connect(self.pairs.look)
        self.fetching.finished.connect(self.news)
        self.pairs.unfinished_found.connect(self._on_unfinished)
        self.pairs.get_asked.connect(self._on_get)
        self.pairs.suggested_asked.connect(self._on_suggested)
        self.pairs.folder_asked.connect(self._on_add)
        self.pairs.make_asked.connect(self._on_make)
        self.training = TrainingPage(app.theme, app.trainings)
        self.training.load_asked.connect(self._on_load_made)
        app.trainings.made.connect(self.pairs.look)
        self.pages = QStackedWidget()
        for page in (self.pairs, self.downloads, self.training):
            self.pages.addWidget(page)
        column = QVBoxLayout(self)
        column.setContentsMargins(L, M, L, M)
        column.setSpacing(M)
        column.addLayout(self._bar())
        column.addWidget(self.pages, 1)
        self.setAcceptDrops(True)

    def _bar(self) -> QHBoxLayout:
        names = (self.tr("On this machine"), self.tr("Suggested"), self.tr("Downloads"), self.tr("Training"))
        self.sections = Sections(self.tr("Shelf"), names)
        self.sections.chosen.connect(self._on_section)
        self.search = QLineEdit()
        self.search.setPlaceholderText(self.tr("Search"))
        self.search.setAccessibleName(self.tr("Search pairs"))
        self.search.setClearButtonEnabled(True)
        self.search.setMaximumWidth(self.app.theme.px(220))
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
        return bar

    @property
    def title(self) -> str:
        return self.tr("Models")

    # The sections.

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
        self.pairs.look()

    @Slot()
    def _filter(self, *_: object) -> None:
        shelf = Shelf.SUGGESTED if self.sections.index == SUGGESTED else Shelf.ON_MAC
        self.pairs.filter(shelf, self.search.text(), fits_only=self.fits_only.isChecked())

    @Slot(int)
    def _on_section(self, index: int) -> None:
        is_shelf = index in (ON_MAC, SUGGESTED)
        self.pages.setCurrentIndex(0 if is_shelf else index - 1)
        for widget in (self.search, self.fits_only, self.add):
            widget.setVisible(is_shelf)
        if is_shelf:
            self._filter()

    @Slot()
    def _on_suggested(self) -> None:
        self.sections.choose(SUGGESTED)

    # Downloads.

    def _is_fetched(self, repo: str) -> bool:
        return self.downloads.is_moving(repo)

    @Slot(object)
    def _on_get(self, row: PairRow) -> None:
        for half in row.missing:
            self.fetching.start(half)
        self.sections.choose(DOWNLOADS)

    @Slot(object)
    def _on_unfinished(self, states: tuple[DownloadState, ...]) -> None:
        for state in states:
            if state.repo not in self.downloads.cards:  # one of an earlier run; a moving one is known already
                self.fetching.show_state(state)

    @Slot()
    def _on_downloads(self) -> None:
        moving = self.downloads.moving
        self.sections.rename(DOWNLOADS, self.tr("Downloads ({0})").format(moving) if moving else self.tr("Downloads"))
        self.pairs.show_row()

    # Drafters made here.

    @Slot(object)
    def _on_make(self, row: PairRow) -> None:
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

    # Folders.

    @Slot()
    def _on_add(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, self.tr("A folder with models"))
        if folder:
            self.add_folder(Path(folder))

    def add_folder(self, folder: Path) -> None:
        """It is looked through where it is; nothing is copied."""
        self._work.do(lambda: self._store.add_folder(folder), lambda _: self.pairs.look(), self.pairs.complain)

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
        self.pairs.rest()
        shown = self.app.banners.current
        if shown is not None and shown.key == "models" and shown.kind is Kind.ERROR:
            self.app.banners.dismiss("models")  # elsewhere it would seem to be about that screen

    def closing(self) -> None:
        self.pairs.rest()
        self._store.close()
