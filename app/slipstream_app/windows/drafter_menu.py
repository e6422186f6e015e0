"""Model > Drafter: who drafts from the next answer on, and the other drafters there are for the loaded model."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QMenu

from slipstream.types import Mode
from slipstream_app.bridge.pair import PairChoice
from slipstream_app.models.drafting import KEY
from slipstream_app.models.on_disk import OnDisk
from slipstream_app.screens.base import AppContext
from slipstream_app.setting import CONTEXT as SETTINGS
from slipstream_app.settings_table import BY_KEY
from slipstream_app.strings import shown


class DrafterMenu(QMenu):
    """Filled when it is opened."""

    def __init__(self, app: AppContext, on_disk: OnDisk, parent: QMenu) -> None:
        super().__init__(parent)
        self.setTitle(self.tr("Drafter"))
        self._app = app
        self._on_disk = on_disk
        self._group = QActionGroup(self)  # one is checked
        self.aboutToShow.connect(self.fill)
        self.triggered.connect(self._on_triggered)
        parent.aboutToShow.connect(on_disk.look)  # it takes a moment, in which the pointer gets here
        on_disk.changed.connect(self.fill)
        self.fill()

    @Slot()
    def fill(self) -> None:
        drafting = self._app.drafting
        self.clear()
        words = BY_KEY[KEY].choices
        for mode in drafting.offered:
            action = self.addAction(shown(SETTINGS, words[mode.value]))
            action.setCheckable(True)
            action.setChecked(mode is drafting.active)
            action.setData(mode.value)
            self._group.addAction(action)
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
        found = (choice for choice in self._on_disk.pairs if choice.drafters != ())
        return [choice for choice in found if choice.target == loaded.target and choice != loaded]

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
