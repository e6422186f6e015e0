"""Model > Drafter: who drafts from the next answer on, and the other drafters there are for the loaded model."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QMenu

from slipstream.types import Mode
from slipstream_app.bridge.pair import PairChoice
from slipstream_app.models.drafting import KEY
from slipstream_app.models.pairs import OpenStore, PairRow, Shelf
from slipstream_app.models.store import open_store
from slipstream_app.models.work import Work
from slipstream_app.screens.base import AppContext
from slipstream_app.settings_table import BY_KEY
from slipstream_app.settings_table import CONTEXT as SETTINGS
from slipstream_app.strings import shown


class DrafterMenu(QMenu):
    """Filled when it is opened. `look` finds what lies on the disk, and is to be called a moment before that."""

    def __init__(self, app: AppContext, parent: QMenu, *, open_: OpenStore = open_store) -> None:
        super().__init__(parent)
        self.setTitle(self.tr("Drafter"))
        self._app = app
        self._open_store = open_
        self._work = Work(self)
        self._found: tuple[PairChoice, ...] = ()  # pairs on this machine
        self.aboutToShow.connect(self.fill)
        self.triggered.connect(self._on_triggered)
        parent.aboutToShow.connect(self.look)
        self.fill()

    @Slot()
    def look(self) -> None:
        """Which pairs there are, read from the disk off this thread."""
        if self._app.session.choice is None:
            return
        open_ = self._open_store

        def work() -> list[PairRow]:
            store = open_(lambda _: None)
            try:
                return list(store.pairs())
            finally:
                store.close()

        self._work.do(work, self._take, lambda _: None, "slipstream-look")

    def _take(self, rows: list[PairRow]) -> None:
        here = [row for row in rows if row.shelf is Shelf.ON_MAC and row.is_ready]
        found = tuple(row.choice for row in here if row.choice.drafters != ())
        if found != self._found:  # else an open menu stays as it is
            self._found = found
            self.fill()

    @Slot()
    def fill(self) -> None:
        drafting = self._app.drafting
        self.clear()
        group = QActionGroup(self)
        words = BY_KEY[KEY].choices
        for mode in drafting.offered:
            action = self.addAction(shown(SETTINGS, words[mode.value]))
            action.setCheckable(True)
            action.setChecked(mode is drafting.active)
            action.setData(mode.value)
            group.addAction(action)
        if others := self._others():
            self.addSeparator()
            for choice in others:
                self.addAction(self.tr("Load {0}").format(choice.title)).setData(choice)
        if self._app.session.choice is not None:
            self.addSeparator()
            self.addAction(self.tr("More drafters…"))

    def _others(self) -> list[PairChoice]:
        """The loaded model with other drafters."""
        loaded = self._app.session.choice
        if loaded is None:
            return []
        return [choice for choice in self._found if choice.target == loaded.target and choice != loaded]

    @Slot(QAction)
    def _on_triggered(self, action: QAction) -> None:
        loaded = self._app.session.choice
        match action.data():
            case str() as mode:
                self._app.drafting.choose(Mode(mode))
            case PairChoice() as choice:
                self._app.session.load(choice)
            case _ if loaded is not None:
                self._app.navigator.go("models", loaded.title.partition(" + ")[0])
            case _:
                pass
