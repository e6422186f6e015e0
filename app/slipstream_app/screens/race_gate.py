"""Whether a race may begin, and what to do if it may not. Knows nothing of how it goes."""

from __future__ import annotations

import time
from enum import StrEnum

from PySide6.QtCore import QObject, QTimer, Signal

from slipstream.events import Loading
from slipstream_app.bridge.pair import BUILT_IN
from slipstream_app.screens.base import AppContext
from slipstream_app.widgets.notice import Notice, Remedy
from slipstream_app.widgets.race_setup import RaceSetup

RECENT_S = 60.0  # a client that asked within it is about to ask again: agents run tools between two requests


class Beside(StrEnum):
    """What becomes of clients that are connected."""

    ASK = "ask"
    PAUSE = "pause"  # they wait
    MARK = "mark"  # they go on, and the race is marked


class RaceGate(QObject):
    chosen = Signal()  # what becomes of the clients: the race may begin
    stale = Signal()  # time has passed: look again

    def __init__(self, app: AppContext, setup: RaceSetup, notice: Notice, parent: QObject) -> None:
        super().__init__(parent)
        self._app = app
        self._setup = setup
        self._notice = notice
        self.beside = Beside.ASK
        self._again = QTimer(self, singleShot=True, interval=round(RECENT_S * 1000))
        self._again.timeout.connect(self.stale)

    @property
    def clients(self) -> int:
        """Those that wait for an answer, or had one a moment ago."""
        return max(self._app.server.clients, self._app.requests.clients_since(time.time() - RECENT_S))

    def is_open(self, outcome: str) -> bool:
        """And says why not, with what to do about it. `outcome`: of the race before, said where nothing else is."""
        app, info = self._app, self._app.session.info
        if info is None and isinstance(app.session.status, Loading):
            self._notice.say(self.tr("The model is loading."))
        elif info is None:
            load = Remedy(self.tr("Load the built-in pair"), lambda: app.session.load(BUILT_IN))
            choose = Remedy(self.tr("Choose a pair…"), lambda: app.navigator.go("models"))
            self._notice.say(self.tr("No model is loaded."), load, choose)
        elif len(self._setup.arms) < 2:
            words = self.tr("A race needs two arms: choose one beside plain.")
            if not info.drafters:
                words = self.tr("This pair has no drafter. Lookup can race against plain, or get a drafter for it.")
            self._notice.say(words, Remedy(self.tr("Get a drafter…"), lambda: app.navigator.go("models")))
        elif self._setup.lacks_words:
            self._notice.say(self.tr("Write what every arm is to be asked."))
        elif self.beside is Beside.ASK and (clients := self.clients):
            self._notice.say(
                self.tr("%n client(s) are connected: results would be disturbed.", "", clients),
                Remedy(self.tr("Pause clients"), lambda: self._choose(Beside.PAUSE)),
                Remedy(self.tr("Run anyway (marked)"), lambda: self._choose(Beside.MARK)),
            )
            if self._setup.isVisible():
                self._again.start()
        else:
            self._notice.say(outcome)
            return True
        return False

    def _choose(self, beside: Beside) -> None:
        self.beside = beside
        self.chosen.emit()

    def rest(self) -> None:
        """Nobody looks."""
        self._again.stop()
