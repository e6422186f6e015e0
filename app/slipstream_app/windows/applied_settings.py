"""Settings that hold at once, wherever they were changed: looks, the engine's options, how long a model stays."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot

from slipstream_app import mac
from slipstream_app.bridge.watch import Watch
from slipstream_app.screens.base import AppContext
from slipstream_app.settings import Settings
from slipstream_app.theme import Theme
from slipstream_app.widgets.banner import Banner, Kind


class AppliedSettings(QObject):
    def __init__(self, app: AppContext, watch: Watch, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._app = app
        self._watch = watch
        app.settings.changed.connect(self._on_setting)
        app.keep_alive.changed.connect(self._tend_idle)
        app.bus.status_changed.connect(self._tend_idle)
        apply_looks(app.settings, app.theme)
        self._tend_engine()
        self._tend_idle()

    @Slot(str)
    def _on_setting(self, key: str) -> None:
        if key.startswith("appearance/"):
            apply_looks(self._app.settings, self._app.theme)
        elif key == "general/login_item":
            self._tend_login_item()
        elif key.startswith("performance/"):
            self._tend_engine()

    def _tend_engine(self) -> None:
        """From the next load on."""
        session, settings = self._app.session, self._app.settings
        session.kv_bits = int(settings.text("performance/kv_bits"))
        session.max_batch = settings.number("performance/max_batch")

    @Slot()
    def _tend_idle(self, *_: object) -> None:
        """As the loaded pair has it."""
        choice, keep_alive = self._app.session.choice, self._app.keep_alive
        if choice is None:
            self._watch.keep(keep_alive.usual)
        else:
            self._watch.keep(keep_alive.minutes(choice), is_pinned=keep_alive.is_pinned(choice))

    def _tend_login_item(self) -> None:
        try:
            mac.set_login_item(self._app.settings.flag("general/login_item"))
        except OSError as error:
            words = self.tr("Opening at login could not be changed: {0}").format(error.strerror)
            self._app.banners.show(Banner("login", Kind.ERROR, words))


def apply_looks(settings: Settings, theme: Theme) -> None:
    scheme = settings.text("appearance/scheme")
    theme.set_scheme("light" if scheme == "light" else "dark" if scheme == "dark" else "system")
    theme.set_accent(settings.text("appearance/accent"))
    theme.set_zoom(settings.number("appearance/zoom"))
    theme.set_code_family(settings.text("appearance/code_font"))
