"""The main window: sidebar, banners, the current screen, status bar."""

from __future__ import annotations

import importlib.util

from PySide6.QtCore import QCoreApplication, Slot
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QListWidget, QMainWindow, QStackedWidget, QWidget

from slipstream_app.screens.base import AppContext, Screen
from slipstream_app.screens.registry import CONTEXT, PLACES, Place


class MainWindow(QMainWindow):
    def __init__(self, app: AppContext) -> None:
        super().__init__()
        self._app = app
        self._screens: dict[str, QWidget] = {}
        self.setWindowTitle("Slipstream")
        self.setMinimumSize(880, 560)
        self.resize(1280, 800)
        self.sidebar = QListWidget()
        self.sidebar.setFixedWidth(200)
        self.sidebar.setAccessibleName(self.tr("Screens"))
        for place in PLACES:
            self.sidebar.addItem(QCoreApplication.translate(CONTEXT, place.label))
        self.stack = QStackedWidget()
        centre = QWidget()
        row = QHBoxLayout(centre)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.sidebar)
        row.addWidget(self.stack, 1)
        self.setCentralWidget(centre)
        self.sidebar.currentRowChanged.connect(self._on_row)
        app.navigator.asked.connect(self.go)

    @Slot(str, object)
    def go(self, name: str, argument: object = None) -> None:
        place = next((place for place in PLACES if place.name == name), None)
        if place is None:
            return
        if name not in self._screens:
            self._screens[name] = self._open(place)
            self.stack.addWidget(self._screens[name])
        before, screen = self.stack.currentWidget(), self._screens[name]
        if before is not screen and isinstance(before, Screen):
            before.left()
        self.stack.setCurrentWidget(screen)
        if isinstance(screen, Screen):
            screen.visited(argument)

    def _open(self, place: Place) -> QWidget:
        if importlib.util.find_spec(place.module) is None:
            return QLabel(place.name)
        return place.open(self._app)

    @Slot(int)
    def _on_row(self, row: int) -> None:
        self.go(PLACES[row].name)

    def closeEvent(self, event: QCloseEvent) -> None:
        for screen in self._screens.values():
            if isinstance(screen, Screen):
                screen.closing()
        event.accept()
