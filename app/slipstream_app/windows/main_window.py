"""The main window: toolbar, sidebar, banners, recovery card, the current screen, status bar."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QByteArray, QSize, Signal, Slot
from PySide6.QtGui import QCloseEvent, QHideEvent, QKeySequence, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QMainWindow,
    QSizePolicy,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from slipstream.events import Faulted, Loading, Ready, Status, Working
from slipstream_app import log
from slipstream_app.bridge.pair import PairChoice
from slipstream_app.bridge.server import ServerOn, ServerStarting
from slipstream_app.models.on_disk import OnDisk
from slipstream_app.models.pairs import FitWord
from slipstream_app.models.recent import RecentPairs
from slipstream_app.numbers import number_text
from slipstream_app.screens.base import AppContext, Screen
from slipstream_app.screens.registry import CONTEXT as SCREENS
from slipstream_app.screens.registry import ONBOARDING, PLACES
from slipstream_app.setting import CONTEXT as SETTINGS
from slipstream_app.settings_table import BY_KEY
from slipstream_app.shortcuts import BY_ID, TABLE, Menu
from slipstream_app.strings import shown
from slipstream_app.theme import M
from slipstream_app.widgets.announcing import announce
from slipstream_app.widgets.banner import BannerBar
from slipstream_app.widgets.footer import Footer
from slipstream_app.widgets.pair_table import FIT_COLOURS
from slipstream_app.widgets.pill import Offer, Popover
from slipstream_app.widgets.recovery import LOG_LINES, RecoveryCard
from slipstream_app.widgets.sidebar import Row, Sidebar
from slipstream_app.windows import splitters
from slipstream_app.windows.actions import Actions, fill_menu_bar
from slipstream_app.windows.badges import Badges
from slipstream_app.windows.drafter_menu import DrafterMenu
from slipstream_app.windows.status_bar import StatusBar
from slipstream_app.windows.toolbar import Toolbar

MIN_WIDTH, MIN_HEIGHT = 880, 560
NARROW_BELOW = 1040


class MainWindow(QMainWindow):
    """Knows the screens by their registry; leaves what outlives it (quitting, settings, the menu bar) to the shell."""

    asked = Signal(str)  # an action that no screen and not this window does
    close_asked = Signal()  # the window was closed; somebody else decides what that means

    def __init__(self, app: AppContext, recent: RecentPairs) -> None:
        super().__init__()
        self._app = app
        self._recent = recent
        self._screens: dict[str, Screen] = {}
        self._current = ""
        self._hides_sidebar = False
        self._was_loading = False
        theme = app.theme
        self.setWindowTitle("Slipstream")
        self.setMinimumSize(MIN_WIDTH, MIN_HEIGHT)

        self.actions_ = Actions(self)
        self.actions_.asked.connect(self.run)
        self.menus = fill_menu_bar(self.menuBar(), self.actions_, app.settings)
        self.on_disk = OnDisk(app.settings)
        self.drafters = DrafterMenu(app, self.on_disk, self.menus[Menu.MODEL])
        self.menus[Menu.MODEL].insertMenu(self.actions_["model.calibrate"], self.drafters)

        self.footer = Footer(theme, app.activity, app.telemetry)
        self.sidebar = Sidebar(theme, [_row(place.name) for place in PLACES], self.footer)
        self.sidebar.chosen.connect(self.go)
        self.badges = Badges(app, self.sidebar, self)
        self.toolbar = Toolbar(theme)
        self.pill, self.stop, self.search = self.toolbar.pill, self.toolbar.stop, self.toolbar.search
        self.stop.clicked.connect(self._on_stop)
        self.toolbar.cancel.clicked.connect(app.session.unload)
        self.search.clicked.connect(self._on_find)
        self.pill.clicked.connect(self.open_popover)
        self.popover = Popover(theme, self._offers, self)
        self.on_disk.changed.connect(self.popover.refresh)
        self.popover.load_asked.connect(self.load)
        self.popover.unload_asked.connect(app.session.unload)
        self.popover.manage_asked.connect(self._on_manage)
        self.banner_bar = BannerBar(theme, app.banners)
        self.recovery = RecoveryCard(theme, _last_lines)
        self.recovery.reload_asked.connect(self._on_reload)
        self.recovery.safe_asked.connect(self._on_safe)
        self.recovery.choose_asked.connect(self.open_popover)
        self.recovery.report_asked.connect(self._on_report)
        self.stack = QStackedWidget()
        self._lay_out()
        self.status_bar = StatusBar(app.session, app.server, app.activity)
        self.setStatusBar(self.status_bar)

        app.bus.status_changed.connect(self._on_status)
        app.bus.server_changed.connect(self.tend)
        app.navigator.asked.connect(self.go)
        app.drafting.changed.connect(self._show_pill)
        theme.changed.connect(self._on_theme)
        self._on_status(app.session.status)
        self._restore()
        self._on_theme()
        self.tend()

    # Places.

    @Slot(str)
    @Slot(str, object)
    def go(self, name: str, argument: object = None) -> None:
        """Bring a screen to the front; it is made at its first visit."""
        place = ONBOARDING if name == ONBOARDING.name else next((place for place in PLACES if place.name == name), None)
        if place is None:
            return  # somebody else's, such as the settings
        if name not in self._screens:
            screen = self._screens[name] = place.open(self._app)
            screen.commands_changed.connect(self.tend)
            self.stack.addWidget(screen)
            splitters.recall(self._app.settings, screen)
            self.badges.follow(screen)
        before, screen = self.screen_now, self._screens[name]
        if before is not None and before is not screen:
            before.left()
        self._current = name
        self.stack.setCurrentWidget(screen)
        self.sidebar.show_as_current("" if place is ONBOARDING else name)
        if place is not ONBOARDING:
            self._app.settings.remember("screen", name)
        self.setWindowTitle(screen.title or "Slipstream")
        if self.isVisible():
            self.badges.see(name)
        screen.visited(argument)
        self.tend()

    @property
    def screen_now(self) -> Screen | None:
        return self._screens.get(self._current)

    @property
    def place(self) -> str:
        """The name of the current screen."""
        return self._current

    def screens(self) -> Sequence[Screen]:
        """Those that were visited."""
        return tuple(self._screens.values())

    # Actions.

    @Slot(str)
    def run(self, name: str) -> None:
        """Do an action of the table, here or where it belongs."""
        row = BY_ID[name]
        if row.where:
            if row.visits and self._current != row.where:
                self.go(row.where)
            screen = self._screens.get(row.where)
            work = screen.commands().get(name) if screen is not None else None
            if work is not None:
                work()
            return
        work = self._own().get(name)
        if work is not None:
            work()
        elif name.startswith("view.") and name.removeprefix("view.") in {place.name for place in PLACES}:
            self.go(name.removeprefix("view."))
        else:
            self.asked.emit(name)

    def _own(self) -> dict[str, Callable[[], object]]:
        session, zoom = self._app.session, self._app.settings.number("appearance/zoom")
        return {
            "model.pick": self.open_popover,
            "model.load": lambda: self.load(self._recent.pairs[0]),
            "model.unload": session.unload,
            "view.sidebar": self.toggle_sidebar,
            "view.zoom_in": lambda: self._zoom(zoom + 10),
            "view.zoom_out": lambda: self._zoom(zoom - 10),
            "view.zoom_reset": lambda: self._zoom(100),
            "window.minimise": self.showMinimized,
            "window.close": self.close,
        }

    @Slot()
    def tend(self) -> None:
        """Enable what can be done now."""
        can: dict[str, bool] = {}
        for row in TABLE:
            if row.is_text_key or not row.where:
                continue
            screen = self._screens.get(row.where)
            offered = screen is not None and row.id in screen.commands()
            is_here = self._current == row.where or row.id == "chat.stop"
            can[row.id] = row.visits or (offered and is_here)
        session = self._app.session
        can["model.unload"] = session.choice is not None
        can["model.load"] = session.choice is None
        can["server.copy_url"] = isinstance(self._app.server.state, ServerOn)
        self.actions_.offer(can)
        is_serving = isinstance(self._app.server.state, ServerOn | ServerStarting)
        self.actions_["server.toggle"].setText(self.tr("Stop Server") if is_serving else self.tr("Start Server"))
        self.stop.setVisible(can["chat.stop"])

    @Slot(object)
    def load(self, choice: PairChoice) -> None:
        self._app.session.load(choice)
        self.tend()

    @Slot()
    def open_popover(self) -> None:
        self.on_disk.look()
        self.popover.open_below(self.pill)

    @Slot()
    def toggle_sidebar(self) -> None:
        self._hides_sidebar = not self._hides_sidebar
        self._app.settings.remember("sidebar_hidden", int(self._hides_sidebar))
        self.sidebar.setVisible(not self._hides_sidebar)

    def show_stall(self, seconds: int) -> None:
        self.recovery.show_stall(seconds)

    def hide_stall(self) -> None:
        """It moves again."""
        if not isinstance(self._app.session.status, Faulted):
            self.recovery.hide()

    # Looks.

    def _lay_out(self) -> None:
        right = QWidget()
        column = QVBoxLayout(right)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.toolbar)
        column.addWidget(self.banner_bar)
        margin = QWidget()
        inside = QVBoxLayout(margin)
        inside.setContentsMargins(M, 0, M, 0)
        self.recovery.setStyleSheet(f"RecoveryCard {{ margin: {M}px 0; }}")
        inside.addWidget(self.recovery)
        margin.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        column.addWidget(margin)
        column.addWidget(self.stack, 1)
        centre = QWidget()
        whole = QHBoxLayout(centre)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        whole.addWidget(self.sidebar)
        whole.addWidget(right, 1)
        self.setCentralWidget(centre)

    def sizeHint(self) -> QSize:
        return QSize(1280, 800)

    def _restore(self) -> None:
        settings = self._app.settings
        geometry = settings.recall("geometry")
        if not (isinstance(geometry, QByteArray) and self.restoreGeometry(geometry)):
            self.resize(self.sizeHint())
        self._hides_sidebar = str(settings.recall("sidebar_hidden", 0)) == "1"
        self.sidebar.setVisible(not self._hides_sidebar)
        self._fit_sidebar()

    def _fit_sidebar(self) -> None:
        is_narrow = self.width() < self._app.theme.px(NARROW_BELOW)
        if is_narrow != self.sidebar.is_narrow:
            self.sidebar.set_narrow(is_narrow)

    def _zoom(self, percent: int) -> None:
        row = BY_KEY["appearance/zoom"]
        self._app.settings.set("appearance/zoom", max(row.low, min(row.high, percent)))

    def _offers(self) -> list[Offer]:
        return [Offer(choice, self._about(choice), self._dot(choice)) for choice in self._recent.pairs]

    def _dot(self, choice: PairChoice) -> str:
        if choice == self._app.session.choice and self._app.session.info:
            return FIT_COLOURS[FitWord.FITS]
        fit = self.on_disk.fits.get(choice, FitWord.UNKNOWN)
        return "" if fit is FitWord.UNKNOWN else FIT_COLOURS[fit]

    def _about(self, choice: PairChoice) -> str:
        """What is known of a pair, in a word or two."""
        if choice == self._app.session.choice and self._app.session.info:
            return self.tr("loaded")
        words = {
            FitWord.FITS: self.tr("fits"),
            FitWord.TIGHT: self.tr("tight"),
            FitWord.TOO_LARGE: self.tr("too large"),
        }
        gained = self._app.speedups.best(choice.title)
        speed = "" if gained is None else self.tr("{0}× here").format(number_text(gained, 2))
        fit = words.get(self.on_disk.fits.get(choice, FitWord.UNKNOWN), "")
        return " · ".join(word for word in (fit, speed) if word)

    # What happens.

    @Slot(object)
    def _on_status(self, status: Status) -> None:
        session = self._app.session
        if isinstance(status, Ready) and self._was_loading:
            announce(self.pill, self.tr("{0} is loaded").format(status.model.name))
        self._was_loading = isinstance(status, Loading)
        self._show_pill()
        self.popover.show_status(status, session.choice)
        self.toolbar.show_status(status)
        if isinstance(status, Faulted):
            choice = session.choice
            self.recovery.show_fault(status.error, is_safe=choice is not None and choice.is_safe)
        elif not isinstance(status, Working):
            self.recovery.hide()
        self.tend()

    @Slot()
    def _show_pill(self) -> None:
        session, drafting = self._app.session, self._app.drafting
        mode = shown(SETTINGS, BY_KEY["performance/mode"].choices[drafting.active.value])
        self.pill.show_status(session.status, session.choice, mode)

    @Slot()
    def _on_theme(self) -> None:
        self._fit_sidebar()

    @Slot()
    def _on_stop(self) -> None:
        self.run("chat.stop")

    @Slot()
    def _on_find(self) -> None:
        self.run("help.palette")

    @Slot()
    def _on_manage(self) -> None:
        self.go("models")

    @Slot()
    def _on_reload(self) -> None:
        self._recover(is_safe=False)

    @Slot()
    def _on_safe(self) -> None:
        self._recover(is_safe=True)

    def _recover(self, *, is_safe: bool) -> None:
        self.recovery.hide()
        if isinstance(self._app.session.status, Faulted):
            self._app.session.reload(safe=is_safe)
        else:
            self._app.session.restart(safe=is_safe)

    @Slot()
    def _on_report(self) -> None:
        self.asked.emit("help.report")

    # Qt.

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_sidebar()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.badges.see(self._current)
        if self.screen_now is not None:
            self.screen_now.visited(None)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.badges.see("")
        if self.screen_now is not None:
            self.screen_now.left()

    def closeEvent(self, event: QCloseEvent) -> None:
        self.keep()
        self.close_asked.emit()
        event.ignore()  # the shell hides it, or ends everything

    def keep(self) -> None:
        """Remember where the window is, and its splitters."""
        for screen in self.screens():
            splitters.remember(self._app.settings, screen)
        self._app.settings.remember("geometry", self.saveGeometry())


def _row(name: str) -> Row:
    place = next(place for place in PLACES if place.name == name)
    keys = QKeySequence(BY_ID[f"view.{name}"].keys[0]).toString(QKeySequence.SequenceFormat.NativeText)
    return Row(name, shown(SCREENS, place.label), place.icon, keys)


def _last_lines() -> list[str]:
    return log.ring.lines()[-LOG_LINES:]
