"""What VoiceOver is told by itself: ends and troubles, once each, and never a token."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from pytestqt.qtbot import QtBot

from app.conftest import FAKE
from fakes import FakeEngine, FakeTokeniser, Script
from slipstream_app.models import chat_prompt
from slipstream_app.screens.base import AppContext
from slipstream_app.screens.chat import ChatScreen
from slipstream_app.screens.race import RaceScreen
from slipstream_app.widgets import announcing
from slipstream_app.widgets.banner import Banner, Kind
from slipstream_app.windows.shell import Shell

Told = list[tuple[str, bool]]  # words, and whether they are urgent


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    said: Told = []

    def note(event: QAccessibleAnnouncementEvent) -> None:
        said.append((event.message(), event.politeness() is QAccessible.AnnouncementPoliteness.Assertive))

    monkeypatch.setattr(announcing, "tell", note)
    return said


def test_a_model_that_is_loaded_and_a_banner_are_told(qtbot: QtBot, shell: Shell, told: Told) -> None:
    shell.window.show()
    shell.app.session.load(FAKE)
    qtbot.waitUntil(lambda: ("fake-model is loaded", False) in told, timeout=5000)
    shell.app.banners.show(Banner("a", Kind.INFO, "A word"))
    shell.app.theme.changed.emit()  # which draws it anew
    shell.app.banners.show(Banner("b", Kind.ERROR, "A trouble"))
    assert told[1:] == [("A word", False), ("A trouble", True)]


def test_an_answer_is_told_once_and_so_is_its_verification(
    qtbot: QtBot, ready: AppContext, told: Told, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoken = FakeTokeniser()
    monkeypatch.setattr(chat_prompt, "_open", lambda _: spoken)
    engine.script = Script(pieces=("word ",) * 20)
    screen = ChatScreen(ready)
    qtbot.addWidget(screen)
    screen.show()
    screen.composer.set_text("q")
    screen.submit()
    qtbot.waitUntil(lambda: screen.chats.reply is None, timeout=5000)
    (only,) = told
    assert only[0].startswith("Reply finished, ")
    answer = screen.chats.path[-1].id
    assert screen.chats.verify(answer)
    qtbot.waitUntil(lambda: not screen.chats.is_verifying(answer), timeout=5000)
    assert told[1:] == [("Verified: identical", False)]
    screen.closing()


def test_a_race_is_told_at_its_end(qtbot: QtBot, ready: AppContext, told: Told) -> None:
    screen = RaceScreen(ready)
    qtbot.addWidget(screen)
    screen.show()
    screen.setup.tokens.setValue(4)
    screen.toggle()
    qtbot.waitUntil(lambda: screen.result is not None, timeout=20_000)
    (only,) = told
    assert only[0].startswith("Race finished: Identical output")
    screen.closing()
