"""The menu-bar item: what the engine does and the few things to do while the window is closed. No timer: it is
filled when it is opened."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication, QIcon, QPixmap
from PySide6.QtWidgets import QMenu, QSystemTrayIcon

from slipstream_app.bridge.pair import PairChoice
from slipstream_app.bridge.server import ServerOn
from slipstream_app.icons import icon
from slipstream_app.mac import IS_MAC
from slipstream_app.models.recent import RecentPairs
from slipstream_app.screens.base import AppContext
from slipstream_app.widgets.footer import Footer


class Tray(QObject):
    asked = Signal(str)  # an action of the table, "open" or "view.telemetry"
    load_asked = Signal(object)  # PairChoice

    def __init__(self, app: AppContext, recent: RecentPairs, footer: Footer, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._app = app
        self._recent = recent
        self._footer = footer
        self.menu = QMenu()
        self.menu.aboutToShow.connect(self.fill)
        self.item = QSystemTrayIcon(self)
        self.item.setToolTip("Slipstream")
        self.item.setContextMenu(self.menu)
        self.item.activated.connect(self._on_activated)
        app.theme.changed.connect(self._on_theme)
        self._on_theme()
        self.fill()

    @staticmethod
    def is_possible() -> bool:
        return QSystemTrayIcon.isSystemTrayAvailable()

    @Slot()
    def fill(self) -> None:
        menu, footer = self.menu, self._footer
        menu.clear()
        footer.refresh()
        state = menu.addAction(" · ".join(words for words in (footer.word(), footer.speed, footer.share) if words))
        state.setEnabled(False)
        menu.addSeparator()
        pairs = menu.addMenu(self.tr("Pair"))
        for choice in self._recent.pairs:
            action = pairs.addAction(choice.title)
            action.setCheckable(True)
            action.setChecked(choice == self._app.session.choice)
            action.setData(choice)
            action.triggered.connect(self._on_pair)
        self._add("model.unload", self.tr("Unload"), is_possible=self._app.session.choice is not None)
        menu.addSeparator()
        is_on = isinstance(self._app.server.state, ServerOn)
        self._add("server.toggle", self.tr("Stop server") if is_on else self.tr("Start server"))
        self._add("server.copy_url", self.tr("Copy base URL"), is_possible=is_on)
        menu.addSeparator()
        self._add("open", self.tr("Open Slipstream"))
        self._add("app.quit", self.tr("Quit"))

    def _add(self, name: str, words: str, *, is_possible: bool = True) -> None:
        action = self.menu.addAction(words)
        action.setObjectName(name)
        action.setEnabled(is_possible)
        action.triggered.connect(self._on_action)

    @Slot()
    def _on_action(self) -> None:
        self.asked.emit(self.sender().objectName())

    @Slot()
    def _on_pair(self) -> None:
        choice: PairChoice = self.sender().data()  # type: ignore[attr-defined]
        self.load_asked.emit(choice)

    @Slot(QSystemTrayIcon.ActivationReason)
    def _on_activated(self, reason: QSystemTrayIcon.ActivationReason) -> None:
        if QGuiApplication.keyboardModifiers() & Qt.KeyboardModifier.AltModifier:
            self.asked.emit("view.telemetry")
        elif not IS_MAC and reason is QSystemTrayIcon.ActivationReason.Trigger:
            self.asked.emit("open")

    @Slot()
    def _on_theme(self) -> None:
        made = icon(self._app.theme, "gauge")
        if IS_MAC:  # the menu bar tints it; a mask is black on nothing
            pixmap: QPixmap = made.pixmap(36, 36)
            made = QIcon(pixmap)
            made.setIsMask(True)
        self.item.setIcon(made)
