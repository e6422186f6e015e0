"""The window's lower edge: engine, memory, clients, heat, server. Asks nothing while there is nothing to do."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import Qt, QTimer, Slot
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QLabel, QStatusBar, QWidget

from slipstream.events import Loading
from slipstream.store.paths import data_dir
from slipstream_app import mac
from slipstream_app.bridge.server import ServerHost, ServerOn, ServerRefused, ServerStarting, ServerState
from slipstream_app.bridge.session import Session
from slipstream_app.models.activity import BUSY, Activity, Doing
from slipstream_app.models.conditions import Conditions, Level
from slipstream_app.models.conditions import read as read_conditions
from slipstream_app.models.memory import held_bytes
from slipstream_app.models.work import Work
from slipstream_app.numbers import size_text
from slipstream_app.theme import XS, S
from slipstream_app.widgets.panel import set_role

LOOK_MS = 1000  # while the engine works
SETTLE_MS = 300  # after a change: what a client's answer leaves open is closed by then
HEAT_S = 15.0  # between two questions about heat


class StatusBar(QStatusBar):
    def __init__(
        self,
        session: Session,
        server: ServerHost,
        activity: Activity,
        parent: QWidget | None = None,
        *,
        conditions: Callable[[], Conditions] = read_conditions,
    ) -> None:
        super().__init__(parent)
        self._server = server
        self._conditions = conditions
        self._work = Work(self)
        self._limit = 0  # bytes that a model may take; 0: not known yet
        self._asked_s = -HEAT_S
        self._session = session
        self._activity = activity
        self.setSizeGripEnabled(False)
        self.engine, self.memory, self.clients, self.heat, self.serving = (QLabel() for _ in range(5))
        names = (self.tr("Engine"), self.tr("Memory"), self.tr("Clients"), self.tr("Heat"), self.tr("Server"))
        for label, name in zip(self._labels, names, strict=True):
            label.setProperty("role", "muted")
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setContentsMargins(S, 0, S, XS)
            label.setAccessibleName(name)
        self.memory.setToolTip(self.tr("What Slipstream holds now, of what a model may take on this machine"))
        self.clients.setToolTip(self.tr("Answers that clients of the server wait for now"))
        self.addWidget(self.engine)
        for label in self._labels[1:]:
            self.addPermanentWidget(label)
        self.heat.hide()
        self.clients.hide()
        self._fix_widths()
        self._timer = QTimer(self, interval=LOOK_MS)
        self._timer.timeout.connect(self.refresh)
        self._settle = QTimer(self, singleShot=True, interval=SETTLE_MS)
        self._settle.timeout.connect(self.refresh)
        self._cooling = QTimer(self, singleShot=True, interval=round(HEAT_S * 1000))
        self._cooling.timeout.connect(self._ask_heat)
        session.bus.status_changed.connect(self._on_activity)
        activity.changed.connect(self._on_activity)
        session.bus.server_changed.connect(self._on_server)
        session.bus.pause_changed.connect(self._on_pause)
        self._on_activity()
        self._on_server(server.state)

    @property
    def _labels(self) -> tuple[QLabel, ...]:
        return (self.engine, self.memory, self.clients, self.heat, self.serving)

    def _fix_widths(self) -> None:
        """Of what changes while somebody looks: nothing beside it may jitter."""
        widest = self.tr("{0} of {1}").format("000.0 GB", "000.0 GB")
        for label, words in ((self.memory, widest), (self.clients, self._clients_words(88))):
            label.setMinimumWidth(label.fontMetrics().horizontalAdvance(words) + 2 * S)
            label.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)

    def _clients_words(self, count: int) -> str:
        if self._activity.are_clients_paused:
            return self.tr("%n client(s), paused", "", count)
        return self.tr("%n client(s)", "", count)

    @Slot()
    def refresh(self) -> None:
        """Memory and clients as they are now, and before long heat."""
        self._fix_widths()  # the zoom may be another one
        held = size_text(held_bytes())
        words = self.tr("{0} of {1}").format(held, size_text(self._limit)) if self._limit else held
        self.memory.setText(words)
        clients = self._server.clients
        self.clients.setText(self._clients_words(clients))
        set_role(self.clients, "warn" if self._activity.are_clients_paused else "muted")
        self.clients.setVisible(isinstance(self._server.state, ServerOn))
        self._ask_heat()

    @Slot()
    def _on_activity(self, *_: object) -> None:
        status = self._session.status
        name = status.model if isinstance(status, Loading) else ""
        words = {
            Doing.NOTHING: self.tr("No model is loaded"),
            Doing.LOADING: self.tr("Loading {0}").format(name),
            Doing.READY: self.tr("Engine ready"),
            Doing.READING: self.tr("Engine reading a prompt"),
            Doing.GENERATING: self.tr("Engine generating"),
            Doing.MEASURING: self.tr("Engine measuring"),
            Doing.STOPPED: self.tr("Engine crashed"),
        }
        self.engine.setText(words[self._activity.doing])
        self._tend()

    @Slot(object)
    def _on_server(self, state: ServerState) -> None:
        match state:
            case ServerOn(url):
                words = self.tr("Serving at {0}").format(url)
            case ServerStarting():
                words = self.tr("Server is starting")
            case ServerRefused():
                words = self.tr("Server could not start")
            case _:
                words = self.tr("Server off")
        self.serving.setText(words)
        self._tend()

    @Slot()
    def _on_pause(self, *_: object) -> None:
        if self.isVisible():
            self.refresh()

    # When to ask.

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._tend()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._tend()

    def _tend(self) -> None:
        if not self.isVisible():
            self._timer.stop()
            self._settle.stop()
            self._cooling.stop()
            return
        is_working = self._activity.doing in BUSY
        if is_working and not self._timer.isActive():
            self._timer.start()
        elif not is_working:
            self._timer.stop()
        self._settle.start()
        self._ask_heat()

    @Slot()
    def _ask_heat(self) -> None:
        if time.monotonic() - self._asked_s >= HEAT_S:
            self._asked_s = time.monotonic()
            self._work.do(self._ask, self._show, lambda _: None, "slipstream-heat")

    def _ask(self) -> tuple[Conditions, int]:
        """On a Mac other programs say it, which takes too long for the window's thread."""
        return self._conditions(), self._limit or mac.machine(data_dir()).gpu_bytes

    def _show(self, found: tuple[Conditions, int]) -> None:
        conditions, self._limit = found
        self.refresh()
        level = conditions.thermal
        self.heat.setVisible(level is not None)
        if level is not None:
            words = {Level.NOMINAL: self.tr("nominal"), Level.RAISED: self.tr("raised"), Level.HIGH: self.tr("high")}
            self.heat.setText(self.tr("Heat: {0}").format(words[level]))
            set_role(self.heat, "muted" if level is Level.NOMINAL else "warn")
            if level is not Level.NOMINAL and self.isVisible():
                self._cooling.start()  # whatever is done: it cools while nothing is
