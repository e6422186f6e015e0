"""Model > Drafter: what the loaded pair has, a check at who drafts, and the next answer by whoever was chosen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtGui import QAction
from pytestqt.qtbot import QtBot

from app.scripted_store import ROWS, ScriptedStore
from fakes import FakeEngine, FakeTokeniser
from slipstream.events import Ready
from slipstream.types import Mode
from slipstream_app.bridge.pair import BUILT_IN, PairChoice
from slipstream_app.models import chat_prompt
from slipstream_app.models.pairs import PairRow, Shelf
from slipstream_app.screens.chat import ChatScreen
from slipstream_app.settings import Settings
from slipstream_app.shortcuts import Menu
from slipstream_app.windows.drafter_menu import DrafterMenu
from slipstream_app.windows.shell import Shell

OWN = PairChoice("SmolLM2 135M + own DSpark", None, ("/made/here",))


class Store(ScriptedStore):
    """With another drafter for the built-in model."""

    def pairs(self) -> tuple[PairRow, ...]:
        return (*ROWS, PairRow("own", OWN, Shelf.ON_MAC, "4-bit", 10**8, 8192, is_made_here=True))


@pytest.fixture
def loaded(qtbot: QtBot, shell: Shell) -> Shell:
    shell.app.session.load(BUILT_IN)
    qtbot.waitUntil(lambda: isinstance(shell.app.session.status, Ready), timeout=5000)
    return shell


@pytest.fixture
def menu(loaded: Shell) -> DrafterMenu:
    made = loaded.window.drafters
    loaded.window.on_disk._open_store = Store
    made.fill()
    return made


@pytest.fixture
def chat(qtbot: QtBot, loaded: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatScreen]:
    monkeypatch.setattr(chat_prompt, "_open", lambda _: FakeTokeniser())
    made = ChatScreen(loaded.app)
    qtbot.addWidget(made)
    made.show()
    yield made
    made.closing()


def words(menu: DrafterMenu) -> list[str]:
    return [action.text() for action in menu.actions() if action.text()]


def action(menu: DrafterMenu, text: str) -> QAction:
    menu.fill()
    return next(action for action in menu.actions() if action.text() == text)


def checked(menu: DrafterMenu) -> list[str]:
    menu.fill()
    return [action.text() for action in menu.actions() if action.isChecked()]


def ask(qtbot: QtBot, chat: ChatScreen, engine: FakeEngine) -> Mode:
    """Who drafted the answer."""
    before = len(engine.ended)
    chat.composer.set_text("Hello")
    qtbot.waitUntil(chat.composer.send.isEnabled, timeout=5000)
    chat.submit()
    qtbot.waitUntil(lambda: len(engine.ended) > before and chat.chats.reply is None, timeout=5000)
    return engine.jobs[-1].request.options.mode


def test_it_stands_in_the_model_menu_with_what_the_pair_has(menu: DrafterMenu, loaded: Shell) -> None:
    assert menu in [action.menu() for action in loaded.window.menus[Menu.MODEL].actions()]
    assert words(menu)[:4] == ["Automatic", "DSpark", "Lookup in the text so far", "Nobody: plain decoding"]
    assert checked(menu) == ["Automatic"]


def test_a_choice_counts_from_the_next_answer_on(
    qtbot: QtBot, menu: DrafterMenu, loaded: Shell, chat: ChatScreen, engine: FakeEngine
) -> None:
    assert ask(qtbot, chat, engine) is Mode.AUTO
    action(menu, "DSpark").trigger()
    assert checked(menu) == ["DSpark"]
    assert "DSpark" in loaded.window.pill.text()
    assert ask(qtbot, chat, engine) is Mode.DSPARK
    action(menu, "Nobody: plain decoding").trigger()
    assert ask(qtbot, chat, engine) is Mode.BASELINE
    assert loaded.app.settings.text("performance/mode") == "baseline"


def test_the_check_is_at_the_open_chats_own_mode(menu: DrafterMenu, loaded: Shell, chat: ChatScreen) -> None:
    box = chat.drawers.parameters.mode
    box.activated.emit(box.findText("Lookup"))
    assert chat.chats.parameters.mode is Mode.LOOKUP
    assert checked(menu) == ["Lookup in the text so far"]
    assert "Lookup" in loaded.window.pill.text()
    action(menu, "Automatic").trigger()  # which the settings had all the time
    assert chat.chats.parameters.mode is Mode.AUTO
    assert checked(menu) == ["Automatic"]


def test_automatic_can_be_had_where_it_was_measured_to_be_slower(
    menu: DrafterMenu, loaded: Shell, chat: ChatScreen
) -> None:
    loaded.app.speedups.record(BUILT_IN.title, {"auto": 0.8})
    loaded.app.bus.status_changed.emit(loaded.app.session.status)
    assert checked(menu) == ["Nobody: plain decoding"]
    action(menu, "Automatic").trigger()
    assert chat.chats.parameters.mode is Mode.AUTO
    assert checked(menu) == ["Automatic"]


def test_other_drafters_on_the_disk_are_offered_and_loaded(qtbot: QtBot, menu: DrafterMenu, loaded: Shell) -> None:
    loaded.window.on_disk.look()
    qtbot.waitUntil(lambda: f"Load {OWN.title}" in words(menu), timeout=5000)
    assert [text for text in words(menu) if text.startswith("Load")] == [f"Load {OWN.title}"], "of this model alone"
    action(menu, f"Load {OWN.title}").trigger()
    assert loaded.app.session.choice == OWN
    menu.fill()
    assert f"Load {BUILT_IN.title}" in words(menu)
    with qtbot.waitSignal(loaded.app.navigator.asked) as asked:
        action(menu, "More drafters…").trigger()
    assert asked.args == ["models", "SmolLM2 135M"]


def test_without_a_model_there_is_what_needs_none(shell: Shell) -> None:
    menu = shell.window.drafters
    menu.fill()
    assert words(menu) == ["Automatic", "Lookup in the text so far", "Nobody: plain decoding"]


def test_a_mode_that_the_pair_lacks_is_automatic(qtbot: QtBot, loaded: Shell, tmp_path: Path) -> None:
    loaded.app.settings.set("performance/mode", "dflash")
    assert loaded.app.drafting.active is Mode.AUTO
    assert Settings(tmp_path / "settings.ini").text("performance/mode") == "dflash", "another pair may have it"
