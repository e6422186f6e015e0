"""What stands around a chat: telemetry, how much is shown, what the settings say of new chats, old chats that go."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from fakes import FakeEngine, FakeTokeniser, Script
from slipstream.types import Mode
from slipstream_app.models import chat_prompt
from slipstream_app.screens.base import AppContext
from slipstream_app.screens.chat import ChatScreen
from slipstream_app.setting import Detail

from .test_chat_screen import ask, last

Wait = Callable[[Callable[[], object]], None]
DAY_S = 86400


@pytest.fixture
def wait(qtbot: QtBot) -> Wait:
    return lambda condition: qtbot.waitUntil(lambda: bool(condition()), timeout=20_000)


@pytest.fixture
def make(qtbot: QtBot, ready: AppContext, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], ChatScreen]]:
    """Opens the Chat screen, with whatever settings there are by then."""
    monkeypatch.setattr(chat_prompt, "_open", lambda _: FakeTokeniser())
    made: list[ChatScreen] = []

    def open_() -> ChatScreen:
        screen = ChatScreen(ready)
        made.append(screen)
        qtbot.addWidget(screen)
        screen.resize(1100, 700)
        screen.show()
        return screen

    yield open_
    for screen in made:
        screen.closing()


@pytest.fixture
def screen(make: Callable[[], ChatScreen]) -> ChatScreen:
    return make()


def test_the_telemetry_drawer_follows_an_answer_and_rests(screen: ChatScreen, engine: FakeEngine, wait: Wait) -> None:
    screen.commands()["chat.telemetry"]()
    drawer = screen.drawers.telemetry
    assert drawer.isVisible()
    assert drawer.strip.nothing.text() == "No round yet."
    assert "Nothing to judge" in drawer.verdict.words.text()
    engine.script = Script(pieces=("a", *("bcd",) * 30), round_s=0.01)
    screen.composer.set_text("q")
    wait(lambda: screen.composer.can_submit)
    screen.submit()
    wait(lambda: drawer.is_awake and drawer.figures.per_round.value.text() == "3.00")
    wait(lambda: screen.chats.reply is None and not drawer.is_awake)  # and no timer runs on
    assert drawer.figures.accepted.value.text() == "67%"
    drawer.close_button.click()
    assert screen.drawers.isHidden()


def test_one_drawer_at_a_time(screen: ChatScreen) -> None:
    screen.commands()["chat.parameters"]()
    assert screen.drawers.has_parameters
    assert screen.composer.parameters.isChecked()
    screen.commands()["chat.telemetry"]()
    assert screen.drawers.has_telemetry
    assert not screen.drawers.has_parameters
    assert not screen.composer.parameters.isChecked()


def test_the_detail_level_hides_and_shows_and_changes_nothing_else(
    screen: ChatScreen, ready: AppContext, engine: FakeEngine, wait: Wait
) -> None:
    engine.script = Script(pieces=("a", *("bcd",) * 8))
    ask(screen, wait)
    row = last(screen).actions_row
    text, tokens = screen.chats.path[-1].text, len(row.stats.figures())
    assert (row.why.isVisible(), row.verify.isVisible(), row.raw.isVisible()) == (True, True, False)
    ready.settings.set("general/detail", Detail.SIMPLE.value)
    assert [figure for figure, _ in row.stats.figures()] == [row.stats.figures()[0][0]]
    assert (row.why.isVisible(), row.verify.isVisible(), row.raw.isVisible()) == (False, False, False)
    assert row.regenerate.isVisible()
    ready.settings.set("general/detail", Detail.EXPERT.value)
    assert len(row.stats.figures()) > tokens
    assert row.raw.isVisible()
    row.raw.click()
    assert json.loads(QGuiApplication.clipboard().text())["timings"]["output_tokens"] == 25
    assert screen.chats.path[-1].text == text


def test_new_chats_begin_with_what_the_settings_say(
    make: Callable[[], ChatScreen], ready: AppContext, engine: FakeEngine, wait: Wait
) -> None:
    ready.settings.set("chat/max_tokens", 64)
    ready.settings.set("performance/mode", "lookup")
    ready.settings.set("performance/max_draft", 3)
    screen = make()
    ask(screen, wait)
    options = engine.jobs[-1].request.options
    assert (options.max_tokens, options.mode, options.max_draft) == (64, Mode.LOOKUP, 3)
    ready.settings.set("performance/mode", "auto")  # at once, also for this chat, which changed nothing
    ask(screen, wait)
    assert engine.jobs[-1].request.options.mode is Mode.AUTO


def test_chats_in_which_nothing_was_said_for_long_go_when_the_settings_say_so(
    make: Callable[[], ChatScreen], ready: AppContext, tmp_path: Path, wait: Wait
) -> None:
    history = ready.history
    old, recent = history.create_chat("old"), history.create_chat("recent")
    for chat in (old, recent):
        history.add(chat, None, "user", "findable words")
    with sqlite3.connect(tmp_path / "chats.db") as db:
        db.execute("UPDATE chats SET updated_s = ? WHERE id = ?", (time.time() - 40 * DAY_S, old))
    db.close()
    make()  # kept for ever, unless the settings say otherwise
    assert history.chat(old) is not None
    ready.settings.set("chat/keep_days", 30)
    assert history.chat(old) is not None  # a number that is being typed deletes nothing
    screen = make()
    assert history.chat(old) is None
    assert history.chat(recent) is not None
    wait(lambda: not screen.chats._trash._purge.isActive())
    assert [hit.chat for hit in history.search("findable")] == [recent]
