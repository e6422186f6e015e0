"""Server & Agents: the switch, the coding agents, what clients asked, the options and the log."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from slipstream.agents.config import Place, ServerAddress
from slipstream.errors import SlipstreamError
from slipstream_app.bridge.server import ServerOn, ServerRefused, ServerStarting, ServerState
from slipstream_app.models.agents import AgentDesk, Served
from slipstream_app.models.recent import last_pair
from slipstream_app.models.server_options import local_address, next_free, server_options, who_listens
from slipstream_app.models.work import Work
from slipstream_app.screens.base import AppContext, Screen
from slipstream_app.theme import L, M, S
from slipstream_app.widgets.agent_card import AgentCard
from slipstream_app.widgets.banner import Banner, Kind
from slipstream_app.widgets.log_page import LogPage
from slipstream_app.widgets.panel import Panel, Words, button, set_role, wrapped
from slipstream_app.widgets.request_table import RequestsView
from slipstream_app.widgets.sections import Sections
from slipstream_app.widgets.server_options_page import ServerOptionsPage

AGENTS, REQUESTS, OPTIONS, LOG = range(4)


class ServerScreen(Screen):
    NAME: ClassVar[str] = "server"

    def __init__(self, app: AppContext, parent: QWidget | None = None, *, place: Place | None = None) -> None:
        """`place`: another home folder for the agents' files."""
        super().__init__(app, parent)
        self._work = Work(self)
        self._free_port: int | None = None
        self.desk = AgentDesk(self._served, (lambda: place) if place is not None else Place.here, self)
        self.desk.changed.connect(self._on_agent)
        self._has_looked = False
        self.sections = Sections(
            self.tr("Part"), (self.tr("Agents"), self.tr("Requests"), self.tr("Options"), self.tr("Log"))
        )
        self.sections.chosen.connect(self._on_section)
        self.options = ServerOptionsPage(app.theme, app.settings)
        self.log = LogPage(app.theme)
        self.pages = QStackedWidget()
        for page in (self._agents_page(), self._requests_page(), self.options, self.log):
            self.pages.addWidget(page)
        column = QVBoxLayout(self)
        column.setContentsMargins(L, M, L, M)
        column.setSpacing(M)
        column.addWidget(self._switch_panel())
        column.addWidget(self.sections)
        column.addWidget(self.pages, 1)
        app.bus.server_changed.connect(self._on_server)
        app.bus.status_changed.connect(self._refresh)
        app.bus.pause_changed.connect(self._tend_pause)
        app.requests.changed.connect(self._on_request)
        app.settings.changed.connect(self._on_setting)
        self._refresh()

    @property
    def title(self) -> str:
        return self.tr("Server & Agents")

    # The switch.

    def _switch_panel(self) -> QWidget:
        theme = self.app.theme
        self.state = Words(theme, "", bold=True, scale=1.1)
        self.state.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.copy = button(self.tr("Copy"), name=self.tr("Copy the base URL"))
        self.copy.clicked.connect(self._on_copy)
        self.switch = button("", "primary")
        self.switch.clicked.connect(self.toggle)
        self.facts = wrapped(theme, "", "muted")
        self.trouble = wrapped(theme, "", "bad")
        self.other_port = button("")
        self.other_port.clicked.connect(self._use_free_port)
        row = QHBoxLayout()
        row.setSpacing(S)
        row.addWidget(self.state)
        row.addWidget(self.copy)
        row.addStretch(1)
        row.addWidget(self.switch)
        trouble = QHBoxLayout()
        trouble.addWidget(self.trouble, 1)
        trouble.addWidget(self.other_port)
        self.paused = wrapped(theme, "", "warn")
        self.go_on = button(self.tr("Let them go on"))
        self.go_on.setToolTip(self.tr("The race goes on beside them, and is marked."))
        self.go_on.clicked.connect(self.app.session.resume_clients)
        paused = QHBoxLayout()
        paused.addWidget(self.paused, 1)
        paused.addWidget(self.go_on)
        panel = Panel(theme)
        panel.body.addLayout(row)
        panel.body.addWidget(self.facts)
        panel.body.addLayout(trouble)
        panel.body.addLayout(paused)
        self._tend_pause()
        return panel

    @Slot()
    def toggle(self) -> None:
        if isinstance(self.app.server.state, ServerOn | ServerStarting):
            self.app.server.stop()
        else:
            self._start()

    def _start(self) -> None:
        self.app.server.start(server_options(self.app.settings, self._last_pair))

    @property
    def _last_pair(self) -> str:
        """The title of what a request would have loaded."""
        return last_pair(self.app.settings).title

    @Slot(object)
    def _on_server(self, state: ServerState) -> None:
        self._free_port = None
        if isinstance(state, ServerRefused) and state.error.facts.get("reason") == "port":
            port = self.app.settings.number("server/port")
            self._work.do(
                lambda: (who_listens(port), next_free(port)), partial(self._on_port_told, port), self._on_port_unknown
            )
        self._apply_keep_text()
        self._refresh()

    def _on_port_told(self, port: int, told: tuple[str | None, int | None]) -> None:
        who, free = told
        if not isinstance(self.app.server.state, ServerRefused):
            return
        name = who or self.tr("another program")
        self.trouble.say(self.tr("Port {0} is used by {1}.").format(port, name))
        self._free_port = free
        self.other_port.setVisible(free is not None)
        if free is not None:
            self.other_port.setText(self.tr("Use port {0}").format(free))

    def _on_port_unknown(self, error: SlipstreamError) -> None:
        self.trouble.say(error.message)

    @Slot()
    def _use_free_port(self) -> None:
        if self._free_port is not None:
            self.app.settings.set("server/port", self._free_port)
            self._start()

    @Slot()
    def _refresh(self, *_: object) -> None:
        state = self.app.server.state
        trouble = ""
        match state:
            case ServerOn(url):
                self.state.say(self.tr("● Serving at {0}").format(url), "ok")
            case ServerStarting():
                self.state.say(self.tr("○ Starting…"), "warn")
            case ServerRefused(error):
                self.state.say(self.tr("○ Not serving"), "bad")
                trouble = error.message
            case _:
                self.state.say(self.tr("○ The server is off"), "")
        is_on = isinstance(state, ServerOn)
        self.copy.setVisible(is_on)
        self.switch.setText(
            self.tr("Stop") if isinstance(state, ServerOn | ServerStarting) else self.tr("Start server")
        )
        set_role(self.switch, "" if isinstance(state, ServerOn | ServerStarting) else "primary")
        if trouble != self.trouble.text() and not (trouble and self._free_port is not None):
            self.trouble.say(trouble)
        self.trouble.setVisible(bool(self.trouble.text()))
        self.other_port.setVisible(self._free_port is not None)
        self.facts.say(self._facts(state))
        self.commands_changed.emit()

    @Slot()
    def _tend_pause(self, *_: object) -> None:
        """Clients wait while a race runs: said here, where they are looked at, with how to end it."""
        session = self.app.session
        are_paused = session.are_clients_paused
        words = self.tr("Clients are paused by the race: %n request(s) wait.", "", session.paused_requests)
        self.paused.say(words if are_paused else "")
        self.paused.setVisible(are_paused)
        self.go_on.setVisible(are_paused)

    def _facts(self, state: ServerState) -> str:
        settings = self.app.settings
        out: list[str] = []
        if isinstance(state, ServerOn):
            if settings.flag("server/network") and state.key:
                port = state.url.rpartition(":")[2]
                out.append(self.tr("Other devices: http://{0}:{1}").format(local_address(), port))
            out.append(self.tr("Key: on") if state.key else self.tr("Key: off (this machine only)"))
            backend = self.app.server.backend
            if backend is not None and backend.requests.unauthorised:
                words = self.tr("Turned away: {0}, last from {1}")
                out.append(words.format(backend.requests.unauthorised, backend.requests.last_refused))
        else:
            out.append(self.tr("Coding agents and other programs on this machine can use the loaded model through it."))
        info = self.app.session.info
        if info is None and settings.flag("server/load_on_request"):
            out.append(self.tr("No model is loaded: the first request loads {0}.").format(self._last_pair))
        elif info is None:
            out.append(self.tr("No model is loaded: requests are refused until one is."))
        else:
            out.append(self.tr("Model: {0}").format(info.name))
        return " · ".join(out)

    @Slot()
    def _on_copy(self) -> None:
        state = self.app.server.state
        if isinstance(state, ServerOn):
            QGuiApplication.clipboard().setText(f"{state.url}/v1")
            self.app.banners.show(Banner("server.url", Kind.INFO, self.tr("Copied {0}").format(f"{state.url}/v1")))

    # Agents.

    def _agents_page(self) -> QWidget:
        self.cards: dict[str, AgentCard] = {}
        column = QVBoxLayout()
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(M)
        for name, state in self.desk.states.items():
            card = AgentCard(self.app.theme, state)
            card.preview_asked.connect(partial(self.desk.preview, name))
            card.undo_asked.connect(partial(self.desk.preview_undo, name))
            card.write_asked.connect(partial(self.desk.apply, name))
            card.dismissed.connect(partial(self.desk.dismiss, name))
            card.test_asked.connect(partial(self.desk.test, name))
            self.cards[name] = card
            column.addWidget(card)
        words = self.tr("Each change is shown before it is written, kept as a dated backup, and can be undone.")
        column.addWidget(wrapped(self.app.theme, words, "muted"))
        column.addStretch(1)
        inside = QWidget()
        inside.setLayout(column)
        return _scrolled(inside, self.tr("Agents"))

    def _served(self) -> Served:
        state = self.app.server.state
        options = server_options(self.app.settings)
        is_on = isinstance(state, ServerOn)
        url = state.url if isinstance(state, ServerOn) else f"http://127.0.0.1:{options.port}"
        key = state.key if isinstance(state, ServerOn) else options.key
        return Served(ServerAddress(url, key), self.app.session.info, is_on)

    @Slot(str)
    def _on_agent(self, name: str) -> None:
        self.cards[name].refresh(self._last_seen(name))

    def _last_seen(self, name: str) -> float | None:
        return next((record.at_s for record in self.app.requests.records() if record.client == name), None)

    @Slot(object)
    def _on_request(self, record: object) -> None:
        self._tend_pause()
        client = str(getattr(record, "client", ""))
        if client in self.cards:
            self._on_agent(client)
        count = self.app.requests.rowCount()
        self.sections.rename(REQUESTS, self.tr("Requests ({0})").format(count) if count else self.tr("Requests"))
        if getattr(record, "status", None) in (401, 403):
            self.facts.say(self._facts(self.app.server.state))

    # Requests.

    def _requests_page(self) -> QWidget:
        self.requests = RequestsView(self.app.theme, self.app.requests)
        self.keep_text = QCheckBox(self.tr("Keep request text (until Slipstream is quit)"))
        self.keep_text.setChecked(self.app.settings.flag("server/keep_text"))
        self.keep_text.toggled.connect(partial(self.app.settings.set, "server/keep_text"))
        clear = button(self.tr("Clear"), name=self.tr("Clear the requests"))
        clear.clicked.connect(self.app.requests.clear)
        clear.clicked.connect(self._on_cleared)
        row = QHBoxLayout()
        row.addWidget(self.keep_text)
        row.addStretch(1)
        row.addWidget(clear)
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.requests, 1)
        column.addLayout(row)
        return page

    @Slot()
    def _on_cleared(self) -> None:
        self.sections.rename(REQUESTS, self.tr("Requests"))
        self.requests.refresh()

    def _apply_keep_text(self) -> None:
        backend = self.app.server.backend
        if backend is not None:
            backend.requests.keeps_text = self.app.settings.flag("server/keep_text")

    # The rest.

    @Slot(str)
    def _on_setting(self, key: str) -> None:
        """Another window may have changed it."""
        if key == "server/keep_text":
            self.keep_text.setChecked(self.app.settings.flag(key))
            self._apply_keep_text()
        if key.startswith("server/"):
            self._refresh()

    @Slot(int)
    def _on_section(self, index: int) -> None:
        self.pages.setCurrentIndex(index)

    def visited(self, argument: object) -> None:
        """`argument`: agents, requests, options or log."""
        parts = {"agents": AGENTS, "requests": REQUESTS, "options": OPTIONS, "log": LOG}
        if isinstance(argument, str) and argument in parts:
            self.sections.choose(parts[argument])
        if not self._has_looked:
            self._has_looked = True
            self.desk.look()

    def left(self) -> None:
        self.log.timer.stop()

    def minimumSizeHint(self) -> QSize:
        return QSize(360, 240)


def _scrolled(inside: QWidget, name: str) -> QScrollArea:
    area = QScrollArea()
    area.setWidget(inside)
    area.setWidgetResizable(True)
    area.setFrameShape(QScrollArea.Shape.NoFrame)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setAccessibleName(name)
    return area
