"""One table: no two actions want one key, none of the system's, and everything in it can be done and is shown."""

from __future__ import annotations

from collections import Counter

import pytest
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QLabel, QLineEdit
from pytestqt.qtbot import QtBot

from slipstream_app.fuzzy import score
from slipstream_app.shortcuts import BY_ID, TABLE, Menu
from slipstream_app.theme import Theme
from slipstream_app.widgets.entry import Entry
from slipstream_app.widgets.filter_list import ranked
from slipstream_app.windows.actions import written
from slipstream_app.windows.sheet import ShortcutSheet
from slipstream_app.windows.shell import Shell

# What a Mac's window expects of these, wherever it is.
SYSTEM = {
    "Ctrl+H": None,
    "Ctrl+E": None,
    "Ctrl+Meta+F": None,
    "Ctrl+M": "window.minimise",
    "Ctrl+Q": "app.quit",
    "Ctrl+W": "window.close",
    "Ctrl+,": "app.settings",
    "Ctrl+Z": "edit.undo",
    "Ctrl+X": "edit.cut",
    "Ctrl+C": "edit.copy",
    "Ctrl+V": "edit.paste",
    "Ctrl+A": "edit.select_all",
}


def keys_of(texts: tuple[str, ...]) -> list[str]:
    return [QKeySequence(text).toString() for text in texts]


def test_no_key_belongs_to_two_actions() -> None:
    taken = Counter(key for action in TABLE for key in keys_of(action.keys))
    assert not [key for key, count in taken.items() if count > 1]


def test_every_key_is_one_that_qt_knows() -> None:
    for action in TABLE:
        for text in action.keys:
            assert not QKeySequence(text).isEmpty(), (action.id, text)


@pytest.mark.parametrize(("key", "owner"), SYSTEM.items())
def test_the_systems_keys_keep_their_meaning(key: str, owner: str | None) -> None:
    wanted = QKeySequence(key).toString()
    assert [action.id for action in TABLE if wanted in keys_of(action.keys)] == ([owner] if owner else [])


def test_the_design_s_keys_are_all_there() -> None:
    wanted = (
        *("Ctrl+1", "Ctrl+2", "Ctrl+3", "Ctrl+4", "Ctrl+5", "Ctrl+,", "Ctrl+N", "Ctrl+K", "Ctrl+L", "Ctrl+Shift+L"),
        *("Return", "Shift+Return", "Esc", "Ctrl+.", "Ctrl+R", "Up", "Ctrl+[", "Ctrl+]", "Ctrl+Shift+C", "Ctrl+F"),
        *("Ctrl+G", "Ctrl+Shift+F", "Ctrl+Shift+E", "Ctrl+I", "Ctrl+Alt+T", "Ctrl+Return", "Ctrl+Shift+S"),
        *("Ctrl+Shift+U", "Ctrl++", "Ctrl+-", "Ctrl+0", "Ctrl+Meta+S", "Ctrl+Backspace", "Ctrl+/"),
    )
    known = {key for action in TABLE for key in keys_of(action.keys)}
    assert {QKeySequence(key).toString() for key in wanted} <= known


def test_every_action_is_in_its_menu(shell: Shell) -> None:
    window = shell.window
    for action in TABLE:
        if not action.is_text_key:
            assert window.actions_[action.id] in window.menus[action.menu].actions(), action.id


def test_every_action_of_the_window_or_shell_is_done_by_somebody(
    shell: Shell, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell, "quit", lambda: True)
    monkeypatch.setattr(shell, "save_report", lambda: None)
    monkeypatch.setattr("slipstream_app.windows.shell.QDesktopServices.openUrl", lambda _: True)
    for action in TABLE:
        if not action.where and not action.is_text_key and not action.id.startswith("edit."):
            shell.window.run(action.id)
            shell.palette.hide()
            shell.window.popover.hide()
    assert "nobody does" not in caplog.text


def test_the_edit_menu_works_on_the_field_with_the_focus(qtbot: QtBot, shell: Shell) -> None:
    shell.show_window()
    shell.window.open_popover()
    field: QLineEdit = shell.window.popover.found.search
    field.setText("abc")
    qtbot.waitUntil(field.hasFocus)
    shell.window.actions_["edit.select_all"].trigger()
    shell.window.actions_["edit.cut"].trigger()
    assert field.text() == ""
    shell.window.actions_["edit.paste"].trigger()
    assert field.text() == "abc"


def test_the_sheet_shows_every_key(qtbot: QtBot, theme: Theme) -> None:
    sheet = ShortcutSheet(theme)
    qtbot.addWidget(sheet)
    shown = {label.text() for label in sheet.findChildren(QLabel)}
    for action in TABLE:
        if action.keys:
            assert written(action.keys) in shown, action.id
    assert {menu.value for menu in Menu} >= {action.menu.value for action in TABLE}
    assert len(BY_ID) == len(TABLE)


@pytest.mark.parametrize(
    ("words", "best"),
    [("new", "New Chat"), ("nc", "New Chat"), ("zoom in", "Zoom In"), ("set", "Settings…"), ("srv", "Start Server")],
)
def test_the_palette_finds_by_a_few_letters(words: str, best: str) -> None:
    titles = ["New Chat", "Find Next", "Zoom In", "Zoom Out", "Settings…", "Start Server", "Unload", "Branch"]
    entries = [Entry(title, lambda: None) for title in titles]
    assert ranked(words, entries)[0].title == best


def test_letters_that_are_not_there_find_nothing() -> None:
    assert score("xq", "Settings") is None
    assert score("", "Settings") == 0.0


def test_what_was_found_by_its_content_stays() -> None:
    assert ranked("zebra", [Entry("Trip plan", lambda: None, is_match=True)])


def test_the_palette_runs_what_is_chosen(qtbot: QtBot, shell: Shell) -> None:
    shell.show_window()
    shell.palette.open_over(shell.window)
    shell.palette.found.search.setText("zoom in")
    qtbot.keyClick(shell.palette.found.search, "\r")
    assert shell.app.settings.number("appearance/zoom") == 110
    assert not shell.palette.isVisible()
    shell.palette.open_over(shell.window)
    shell.palette.found.search.setText("no such thing at all")
    assert shell.palette.found.nothing.isVisible()
