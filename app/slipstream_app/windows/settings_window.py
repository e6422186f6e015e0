"""The Settings window: one page for each group of rows in the table, applied at once."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QListWidget,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from slipstream_app.bridge.session import Session
from slipstream_app.mac import IS_MAC
from slipstream_app.models.calibrating import Calibrating
from slipstream_app.models.recent import names_of
from slipstream_app.models.updates import UpdateCheck
from slipstream_app.setting import CONTEXT, Page, Value
from slipstream_app.settings import Settings
from slipstream_app.settings_table import BY_KEY, SETTINGS
from slipstream_app.strings import mark, shown
from slipstream_app.theme import XL, L, M, S, Theme
from slipstream_app.widgets.calibration import CalibrationPanel
from slipstream_app.widgets.panel import wrapped
from slipstream_app.widgets.setting_editors import Editor, make_editor
from slipstream_app.windows.model_space import ModelSpace
from slipstream_app.windows.settings_pages import AboutPage, KeptPrompts, PrivacyPage, UpdatesPage

PAGES = {
    Page.GENERAL: mark("Settings", "General"),
    Page.APPEARANCE: mark("Settings", "Appearance"),
    Page.CHAT: mark("Settings", "Chat"),
    Page.MODELS: mark("Settings", "Models"),
    Page.PERFORMANCE: mark("Settings", "Performance"),
    Page.SERVER: mark("Settings", "Server"),
    Page.UPDATES: mark("Settings", "Updates"),
    Page.PRIVACY: mark("Settings", "Privacy"),
    Page.ABOUT: mark("Settings", "About"),
}


class SettingsWindow(QDialog):
    """Has no OK: a change counts when it is made."""

    def __init__(
        self,
        theme: Theme,
        settings: Settings,
        session: Session,
        updates: UpdateCheck,
        calibrating: Calibrating,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self._settings = settings
        self._session = session
        self._updates = updates
        self.calibration = CalibrationPanel(theme, calibrating)
        self.space = ModelSpace(theme, settings, self._in_use)
        self.setWindowTitle(self.tr("Settings"))
        self.editors: dict[str, Editor] = {}
        self.list = QListWidget()
        self.list.setAccessibleName(self.tr("Pages"))
        self.list.setProperty("role", "list")
        self.list.setFrameShape(QFrame.Shape.NoFrame)
        self.stack = QStackedWidget()
        for page, title in PAGES.items():
            self.list.addItem(shown(CONTEXT, title))
            area = QScrollArea(widgetResizable=True)
            area.setFrameShape(QFrame.Shape.NoFrame)
            area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
            area.setAccessibleName(shown(CONTEXT, title))
            area.setWidget(self._page(page))
            self.stack.addWidget(area)
        side = QFrame()
        side.setProperty("role", "side")
        column = QVBoxLayout(side)
        column.setContentsMargins(S, M, S, M)
        column.addWidget(self.list)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(side)
        row.addWidget(self.stack, 1)
        self.list.currentRowChanged.connect(self.stack.setCurrentIndex)
        self.list.setCurrentRow(0)
        self.list.scheduleDelayedItemsLayout()  # the rows were measured before the style knew the list
        settings.changed.connect(self._on_changed)
        theme.changed.connect(self._on_theme)
        self._on_theme()
        self.resize(self.sizeHint())

    def sizeHint(self) -> QSize:
        return QSize(self._theme.px(780), self._theme.px(540))

    def open_at(self, place: str) -> None:
        """A page's name or a setting's key; anything else opens where it was."""
        key = place if place in BY_KEY else ""
        page = BY_KEY[key].page if key else next((page for page in PAGES if page.value == place), None)
        if page is not None:
            self.list.setCurrentRow(list(PAGES).index(page))
        self.show()
        self.raise_()
        self.activateWindow()
        if key in self.editors:
            self.editors[key].setFocus()

    def _page(self, page: Page) -> QWidget:
        match page:
            case Page.PRIVACY:
                return PrivacyPage(self._theme)
            case Page.ABOUT:
                return AboutPage(self._theme)
            case Page.UPDATES:
                return UpdatesPage(self._theme, self._updates, self._form(page))
            case Page.MODELS:
                return self._form(page, self.space)
            case Page.PERFORMANCE:
                return self._form(page, KeptPrompts(self._theme, self._session), self.calibration)
            case _:
                return self._form(page)

    def _in_use(self) -> Sequence[str]:
        choice = self._session.choice
        return () if choice is None else names_of(choice)

    def _form(self, page: Page, *more: QWidget) -> QWidget:
        """Names at the left, controls at the right, each with its help below; `more` stands under them all."""
        widget = QWidget()
        grid = QGridLayout(widget)
        grid.setContentsMargins(XL, XL, XL, XL)
        grid.setHorizontalSpacing(L)
        grid.setVerticalSpacing(M)
        grid.setColumnStretch(1, 1)
        rows = [row for row in SETTINGS if row.page is page and (IS_MAC or not row.is_mac_only)]
        for number, row in enumerate(rows):
            editor = self.editors[row.key] = make_editor(row, self._settings.get(row.key), self._theme)
            editor.edited.connect(self._on_edited)
            cell = QVBoxLayout()
            cell.setSpacing(2)
            cell.addWidget(editor)
            if row.help:
                cell.addWidget(wrapped(self._theme, shown(CONTEXT, row.help), "muted"))
            # A switch says its own name.
            name = QLabel("" if isinstance(row.default, bool) else shown(CONTEXT, row.label))
            name.setBuddy(editor.control)
            name.setFixedHeight(max(name.sizeHint().height(), editor.sizeHint().height()))
            grid.addWidget(name, number, 0, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop)
            grid.addLayout(cell, number, 1)
        for number, one in enumerate(more, len(rows)):
            grid.addWidget(one, number, 1)
        grid.setRowStretch(len(rows) + len(more), 1)
        return widget

    @Slot(str, object)
    def _on_edited(self, key: str, value: Value) -> None:
        self._settings.set(key, value)

    @Slot(str)
    def _on_changed(self, key: str) -> None:
        if key in self.editors:
            self.editors[key].show_value(self._settings.get(key))

    @Slot()
    def _on_theme(self) -> None:
        self.list.setFixedWidth(self._theme.px(170))
