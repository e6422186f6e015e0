"""The server's switch as menus have it: on, off, again when its settings changed, and a pair for its first request."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QGuiApplication

from slipstream_app.bridge.server import ServerOn, ServerRefused, ServerStarting, ServerState
from slipstream_app.models.recent import RecentPairs
from slipstream_app.models.server_options import server_options
from slipstream_app.screens.base import AppContext
from slipstream_app.widgets.banner import Banner, Kind

# A running server starts again with them.
OF_SERVER = ("server/port", "server/network", "server/key", "server/origins", "server/load_on_request")


class ServerSwitch(QObject):
    def __init__(
        self, app: AppContext, recent: RecentPairs, open_settings: Callable[[str], None], parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._app = app
        self._recent = recent
        self._open_settings = open_settings
        app.bus.server_changed.connect(self._on_server)
        app.bus.load_wanted.connect(self._on_load_wanted)
        app.settings.changed.connect(self._on_setting)

    def start(self) -> None:
        self._app.server.start(server_options(self._app.settings, self._recent.pairs[0].title))

    def toggle(self) -> None:
        if isinstance(self._app.server.state, ServerOn | ServerStarting):
            self._app.server.stop()
        else:
            self.start()

    def copy_url(self) -> None:
        state = self._app.server.state
        if isinstance(state, ServerOn):
            QGuiApplication.clipboard().setText(f"{state.url}/v1")

    @Slot()
    def _on_load_wanted(self) -> None:
        """A request waits. One that is being loaded already will do."""
        if self._app.session.choice is None:
            self._app.session.load(self._recent.pairs[0])

    @Slot(object)
    def _on_server(self, state: ServerState) -> None:
        if isinstance(state, ServerRefused):
            words = self.tr("The server could not start: {0}").format(state.error.message)
            show = partial(self._open_settings, "server")
            self._app.banners.show(Banner("server", Kind.ERROR, words, self.tr("Server settings"), show))
        elif isinstance(state, ServerOn):
            self._app.banners.dismiss("server")

    @Slot(str)
    def _on_setting(self, key: str) -> None:
        if key == "server/prompt_limit":
            self._app.server.limit_prompts(self._app.settings.text(key))
        if key in OF_SERVER and isinstance(self._app.server.state, ServerOn):
            self.start()  # again, as it is now wanted
