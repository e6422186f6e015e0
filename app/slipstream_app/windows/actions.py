"""Every row of the shortcut table as a QAction, and the menus made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QApplication, QMenu, QMenuBar, QWidget

from slipstream_app.setting import CONTEXT as SETTINGS
from slipstream_app.settings import Settings
from slipstream_app.settings_table import BY_KEY
from slipstream_app.shortcuts import CONTEXT, MENUS, TABLE, Menu
from slipstream_app.strings import shown

_ROLES = {
    "app.settings": QAction.MenuRole.PreferencesRole,
    "app.quit": QAction.MenuRole.QuitRole,
}

# What the Edit menu asks of the widget with the focus.
_EDITS = {
    "edit.undo": "undo",
    "edit.redo": "redo",
    "edit.cut": "cut",
    "edit.copy": "copy",
    "edit.paste": "paste",
    "edit.select_all": "selectAll",
}


def written(keys: tuple[str, ...]) -> str:
    """As this platform writes keys."""
    return "  ".join(QKeySequence(key).toString(QKeySequence.SequenceFormat.NativeText) for key in keys)


class Actions(QObject):
    """Says `asked` with a row's id. Enabled is what `offer` last named."""

    asked = Signal(str)

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._actions: dict[str, QAction] = {}
        for row in TABLE:
            if row.is_text_key:
                continue
            action = QAction(shown(CONTEXT, row.text), window)
            action.setObjectName(row.id)
            action.setShortcuts([QKeySequence(key) for key in row.keys])
            action.setMenuRole(_ROLES.get(row.id, QAction.MenuRole.NoRole))
            action.triggered.connect(self._on_triggered)
            window.addAction(action)
            self._actions[row.id] = action

    def __getitem__(self, name: str) -> QAction:
        return self._actions[name]

    def offer(self, can: Mapping[str, bool]) -> None:
        for name, is_possible in can.items():
            self._actions[name].setEnabled(is_possible)

    @property
    def possible(self) -> list[str]:
        return [name for name, action in self._actions.items() if action.isEnabled()]

    @Slot()
    def _on_triggered(self) -> None:
        name = self.sender().objectName()
        if name in _EDITS:
            edit(name)
        else:
            self.asked.emit(name)


def edit(name: str) -> None:
    """Undo, copy and the like, on whatever has the focus and knows how."""
    work: Callable[[], object] | None = getattr(QApplication.focusWidget(), _EDITS[name], None)
    if work is not None:
        work()


def fill_menu_bar(bar: QMenuBar, actions: Actions, settings: Settings) -> dict[Menu, QMenu]:
    menus: dict[Menu, QMenu] = {}
    for menu, title in MENUS.items():
        made = menus[menu] = bar.addMenu(shown(CONTEXT, title))
        for row in TABLE:
            if row.menu is menu and not row.is_text_key:
                if row.opens_group and not made.isEmpty():
                    made.addSeparator()
                made.addAction(actions[row.id])
    menus[Menu.VIEW].addSeparator()
    menus[Menu.VIEW].addMenu(choice_menu("general/detail", settings, bar))
    return menus


def choice_menu(key: str, settings: Settings, parent: QWidget) -> QMenu:
    """A setting with choices as a submenu."""
    row = BY_KEY[key]
    menu = QMenu(shown(SETTINGS, row.label), parent)
    group = QActionGroup(menu)
    for value, words in row.choices.items():
        action = menu.addAction(shown(SETTINGS, words))
        action.setCheckable(True)
        action.setData(value)
        group.addAction(action)
    _Choice(key, group, settings, menu)
    return menu


class _Choice(QObject):
    """Keeps a group of actions and a setting alike."""

    def __init__(self, key: str, group: QActionGroup, settings: Settings, parent: QObject) -> None:
        super().__init__(parent)
        self._key = key
        self._group = group
        self._settings = settings
        group.triggered.connect(self._on_chosen)
        settings.changed.connect(self._on_changed)
        self._on_changed(key)

    @Slot(QAction)
    def _on_chosen(self, action: QAction) -> None:
        self._settings.set(self._key, action.data())

    @Slot(str)
    def _on_changed(self, key: str) -> None:
        if key == self._key:
            value = self._settings.get(key)
            for action in self._group.actions():
                action.setChecked(action.data() == value)
