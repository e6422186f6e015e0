"""What outlives the window: the menu-bar item, the settings window, the palette, and how the app ends."""

from __future__ import annotations

import json
import logging
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices, QFileOpenEvent, QGuiApplication
from PySide6.QtWidgets import QFileDialog, QMessageBox

from slipstream.events import Faulted, Loading, Ready, Status
from slipstream_app import mac
from slipstream_app.bridge.pair import BUILT_IN, PairChoice
from slipstream_app.bridge.watch import Watch
from slipstream_app.models.recent import RecentPairs, pair_from
from slipstream_app.models.training import Training
from slipstream_app.models.updates import UpdateCheck
from slipstream_app.screens.base import AppContext
from slipstream_app.screens.registry import CONTEXT as SCREENS
from slipstream_app.screens.registry import ONBOARDING
from slipstream_app.setting import CONTEXT as SETTINGS_CONTEXT
from slipstream_app.settings_table import SETTINGS
from slipstream_app.shortcuts import BY_ID
from slipstream_app.shortcuts import CONTEXT as ACTIONS
from slipstream_app.strings import shown
from slipstream_app.widgets.banner import Banner, Kind
from slipstream_app.widgets.entry import Entry
from slipstream_app.widgets.palette import Palette
from slipstream_app.widgets.saving import save_text
from slipstream_app.windows.actions import written
from slipstream_app.windows.applied_settings import AppliedSettings
from slipstream_app.windows.main_window import MainWindow
from slipstream_app.windows.opening import pair_of, place_of
from slipstream_app.windows.server_switch import ServerSwitch
from slipstream_app.windows.tray import Tray

if TYPE_CHECKING:  # made when they are first opened
    from slipstream_app.windows.settings_window import SettingsWindow
    from slipstream_app.windows.sheet import ShortcutSheet

logger = logging.getLogger(__name__)

_LOADING = "loading_pair"  # remembered while a pair loads: if it is still there at a start, we died of it


class Shell(QObject):
    """Made once. `ended` comes after everything is saved, when the event loop may return."""

    ended = Signal()

    def __init__(self, app: AppContext, log_file: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.app = app
        self._log_file = log_file
        self._is_ending = False
        self._is_loading = False  # a pair; of this start
        self._first_place = ""
        self.recent = RecentPairs(app.session, app.settings, self)
        self.window = MainWindow(app, self.recent)
        self.window.asked.connect(self.run)
        self.window.close_asked.connect(self._on_close)
        self.palette = Palette(app.theme, self._find, self.window)
        self._settings_window: SettingsWindow | None = None
        self._sheet: ShortcutSheet | None = None
        self.tray: Tray | None = None
        self.updates = UpdateCheck(app.settings, self)
        self.updates.changed.connect(self._on_updates)
        self.watch = Watch(app.bus, self)
        self.watch.stalled.connect(self.window.show_stall)
        self.watch.moved.connect(self.window.hide_stall)
        self.watch.idle.connect(app.session.unload)
        app.bus.status_changed.connect(self._on_status)
        app.settings.changed.connect(self._on_setting)
        app.navigator.asked.connect(self._on_asked)
        app.trainings.made.connect(self._on_made)
        QGuiApplication.instance().installEventFilter(self)  # type: ignore[union-attr]
        self._applied = AppliedSettings(app, self.watch, self)
        self.switch = ServerSwitch(app, self.recent, self.open_settings, self)
        self._tend_tray()

    def open(self, *, is_hidden: bool = False) -> None:
        """Show the window, then load the pair. `is_hidden`: the menu bar alone, where there is one."""
        is_first = not self.app.settings.recall("welcomed")
        if not is_hidden or self.tray is None:
            self.window.show()
        self._first_place = ONBOARDING.name if is_first else str(self.app.settings.recall("screen", "chat"))
        self.app.settings.remember("welcomed", 1)
        if is_first:
            self.app.settings.remember("screen", "models")  # where the next start goes on, if this is left here
        QTimer.singleShot(0, self._enter)  # the frame is seen before the first screen is imported

    @Slot()
    def _enter(self) -> None:
        self.window.go(self._first_place)
        self._pick_pair(self._first_place == ONBOARDING.name)
        self._tell_trainings()
        if self.app.settings.flag("server/at_start"):
            self.switch.start()
        if self._first_place != ONBOARDING.name:  # who has just come may want to switch it off first
            self.updates.tend()

    def _pick_pair(self, is_first: bool) -> None:
        settings = self.app.settings
        died_of = pair_from(settings.recall(_LOADING))
        if died_of is not None:
            words = self.tr("Slipstream ended while it was loading {0}, so it was not loaded again.")
            load = partial(self._on_load, died_of)
            self.app.banners.show(
                Banner("died-loading", Kind.WARNING, words.format(died_of.title), self.tr("Load it"), load)
            )
        elif is_first or settings.flag("general/load_at_start"):
            self.app.session.load(BUILT_IN if is_first else self.recent.pairs[0])

    def _tell_trainings(self) -> None:
        """A drafter that was left half made, or was finished since."""
        for training in self.app.trainings.all:
            if training.is_news:
                self._on_made(training)
                return
        for training in self.app.trainings.unfinished[:1]:
            words = self.tr("The drafter for {0} is half made.").format(training.wanted.title)
            show = partial(self.app.navigator.go, "models", "training")
            self.app.banners.show(Banner("training", Kind.INFO, words, self.tr("Show"), show))

    @Slot(object)
    def _on_made(self, training: Training) -> None:
        words = self.tr("The drafter for {0} is made.").format(training.wanted.title)
        load = partial(self._on_load, training.choice)
        self.app.banners.show(Banner("training", Kind.INFO, words, self.tr("Load it"), load))

    # Actions.

    @Slot(str)
    def run(self, name: str) -> None:
        match name:
            case "app.settings":
                self.open_settings()
            case "app.quit":
                self.quit()
            case "server.toggle":
                self.switch.toggle()
            case "server.copy_url":
                self.switch.copy_url()
            case "help.palette":
                self.palette.open_over(self.window)
            case "help.shortcuts":
                self.open_sheet()
            case "help.report":
                self.save_report()
            case "help.logs":
                QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._log_file.parent)))
            case "open":
                self.show_window()
            case _:
                logger.warning("nobody does %s", name)

    @Slot(str)
    def _on_tray(self, name: str) -> None:
        if name == "view.telemetry":
            self.show_window()
        if name in BY_ID:
            self.window.run(name)
        else:
            self.run(name)

    @Slot(str, object)
    def _on_asked(self, place: str, argument: object) -> None:
        if place == "settings":
            self.open_settings(str(argument or ""))

    def open_settings(self, place: str = "") -> None:
        if self._settings_window is None:
            from slipstream_app.windows.settings_window import SettingsWindow

            app = self.app
            self._settings_window = SettingsWindow(
                app.theme, app.settings, app.session, self.updates, app.calibrating, self.window
            )
        self._settings_window.open_at(place)

    def open_sheet(self) -> None:
        if self._sheet is None:
            from slipstream_app.windows.sheet import ShortcutSheet

            self._sheet = ShortcutSheet(self.app.theme, self.window)
        self._sheet.show()

    def save_report(self) -> None:
        name, _ = QFileDialog.getSaveFileName(
            self.window, self.tr("Save report"), str(Path.home() / "slipstream-report.txt")
        )
        if not name:
            return
        from slipstream_app.report import report

        session = self.app.session
        save_text(self.app.banners, Path(name), report(session.status, session.choice, self.app.settings))

    def open_url(self, url: QUrl) -> None:
        """What macOS hands over; anything unknown only brings the window to the front."""
        if (place := place_of(url)) is not None:
            self.window.go(place)
        elif (pair := pair_of(url)) is not None:
            self.app.session.load(pair)
        else:
            logger.warning("nothing here opens %s", url.scheme())
        self.show_window()

    @Slot()
    def show_window(self) -> None:
        self.updates.tend()
        self.window.show()
        self.window.setWindowState(self.window.windowState() & ~Qt.WindowState.WindowMinimized)
        self.window.raise_()
        self.window.activateWindow()

    def _find(self, words: str) -> list[Entry]:
        """What the palette offers."""
        window, session = self.window, self.app.session
        found = [
            Entry(shown(ACTIONS, BY_ID[name].text), partial(window.run, name), written(BY_ID[name].keys[:1]))
            for name in window.actions_.possible
            if name != "help.palette" and not name.startswith("edit.")
        ]
        pair = self.tr("pair")
        found += [
            Entry(self.tr("Load {0}").format(choice.title), partial(session.load, choice), pair)
            for choice in self.recent.pairs
            if choice != session.choice
        ]
        found.append(Entry(shown(SCREENS, ONBOARDING.label), partial(window.go, ONBOARDING.name)))
        setting = self.tr("setting")
        found += [
            Entry(shown(SETTINGS_CONTEXT, row.label), partial(self.open_settings, row.key), setting)
            for row in SETTINGS
            if not row.is_mac_only or mac.IS_MAC
        ]
        for screen in window.screens():
            found += screen.entries(words)
        return found

    @Slot()
    def _on_updates(self) -> None:
        newer = self.updates.newer
        if newer is not None and not self.updates.is_asking:
            words = self.tr("Slipstream {0} is out.").format(newer.version)
            show = partial(self.open_settings, "updates")
            self.app.banners.show(Banner("updates", Kind.INFO, words, self.tr("What is new"), show))

    # The engine and the menu bar.

    @Slot(object)
    def _on_status(self, status: Status) -> None:
        choice = self.app.session.choice
        if isinstance(status, Loading) and choice is not None:
            self._is_loading = True
            pair = json.dumps(choice.as_json())
            if pair != self.app.settings.recall(_LOADING):  # not for each piece that was read: the disk is waited for
                self.app.settings.remember(_LOADING, pair)
                self.app.settings.sync()  # now: what follows may be the end
        elif isinstance(status, Ready | Faulted) or self._is_loading:
            self._forget_loading()
        if isinstance(status, Ready):
            self.app.banners.dismiss("died-loading")

    def _forget_loading(self) -> None:
        """We did not die of it."""
        self._is_loading = False
        self.app.settings.remember(_LOADING, "")
        self.app.settings.sync()

    @Slot(str)
    def _on_setting(self, key: str) -> None:
        if key == "general/menu_bar":
            self._tend_tray()

    def _tend_tray(self) -> None:
        is_wanted = self.app.settings.flag("general/menu_bar") and Tray.is_possible()
        if is_wanted and self.tray is None:
            self.tray = Tray(self.app, self.recent, self.window.footer, self)
            self.tray.asked.connect(self._on_tray)
            self.tray.load_asked.connect(self._on_load)
            self.tray.item.show()
        elif not is_wanted and self.tray is not None:
            self.tray.item.hide()
            self.tray.deleteLater()
            self.tray = None

    @Slot(object)
    def _on_load(self, choice: PairChoice) -> None:
        self.app.session.load(choice)

    # The end.

    @Slot()
    def _on_close(self) -> None:
        """The window's close button: the server goes on, where there is a way back to the window."""
        if self.tray is not None or mac.IS_MAC:
            self.window.hide()
        else:
            self.quit()

    @Slot()
    def quit(self) -> bool:
        """Ask when clients are connected, then end. False when the person would rather not."""
        if self._is_ending:
            return True
        clients = self.app.server.clients
        if clients and not self._may_quit(clients):
            return False
        self._is_ending = True
        self.window.keep()
        if self.tray is not None:
            self.tray.item.hide()
        for screen in self.window.screens():
            screen.left()
            screen.closing()
        self.window.hide()
        if self._is_loading:
            self._forget_loading()
        self.app.settings.sync()
        self.ended.emit()
        return True

    def _may_quit(self, clients: int) -> bool:
        box = QMessageBox(self.window)
        box.setIcon(QMessageBox.Icon.Question)
        box.setText(self.tr("%n clients are using the server. Quit anyway?", "", clients))
        quit_ = box.addButton(self.tr("Quit"), QMessageBox.ButtonRole.DestructiveRole)
        box.setDefaultButton(box.addButton(QMessageBox.StandardButton.Cancel))
        box.exec()
        return box.clickedButton() is quit_

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is QGuiApplication.instance():
            if event.type() is QEvent.Type.Quit and not self._is_ending:  # the Dock's, and log-out's
                return not self.quit()
            if isinstance(event, QFileOpenEvent):
                url = event.url()
                QTimer.singleShot(0, lambda: self.open_url(url))  # at the start: after the first screen
                return True
            if event.type() is QEvent.Type.ApplicationActivate and mac.IS_MAC and not self._is_ending:
                self.window.show()
        return False
