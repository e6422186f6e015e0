"""One walk through the whole app, by its own controls, on a real engine with a tiny pair: chat to agent and back."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from slipstream.engine.engine import open_engine
from slipstream.engine.pair import Pair
from slipstream.events import Report
from slipstream.measure.verdict import Verdict
from slipstream.service import Engine
from slipstream.types import Mode
from slipstream_app.bridge.pair import PairChoice
from slipstream_app.bridge.server import ServerOff, ServerOn
from slipstream_app.bridge.session import Session
from slipstream_app.main import make_context
from slipstream_app.settings import Settings
from slipstream_app.widgets.answer_actions import AnswerActions
from slipstream_app.windows.shell import Shell
from tiny_runs import write_byte_drafter, write_target

WAIT_MS = 120_000
MAX_TOKENS = 160
A, Z, ASSISTANT = ord("a"), ord("z"), 258


@pytest.fixture
def pair(tmp_path: Path) -> PairChoice:
    """A target that says the alphabet for ever, and a drafter that knows nothing."""
    letters = itertools.pairwise((ASSISTANT, *range(A, Z + 1), A))
    target = write_target(tmp_path / "model", links=letters)
    drafter = write_byte_drafter(tmp_path / "drafter", Mode.DSPARK)
    return PairChoice("tiny", str(target), (str(drafter),))


@pytest.fixture
def shell(qtbot: QtBot, tmp_path: Path, pair: PairChoice, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    (home / ".claude" / "settings.json").write_text('{"theme": "dark"}\n')
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)

    def open_pair(choice: PairChoice, report: Report) -> Engine:
        assert choice.target is not None
        drafters = tuple(Path(name) for name in choice.drafters or ())
        return open_engine(Pair(Path(choice.target), drafters), report=report)

    session = Session(open_pair)
    context = make_context(session, Settings(tmp_path / "settings.ini"), tmp_path / "data")
    context.settings.set("server/port", 18765)
    context.settings.set("chat/max_tokens", MAX_TOKENS)
    made = Shell(context, tmp_path / "slipstream.log")
    yield made
    made.quit()
    assert session.stop()
    context.history.close()
    context.speeds.close()
    made.window.deleteLater()


Walker = Any  # a screen's parts are looked into; the frame knows only Screen


class Walk:
    """The steps, in the order a person might take them."""

    def __init__(self, qtbot: QtBot, shell: Shell) -> None:
        self.qtbot = qtbot
        self.shell = shell
        self.app, self.window = shell.app, shell.window

    def wait(self, condition: Callable[[], object]) -> None:
        self.qtbot.waitUntil(lambda: bool(condition()), timeout=WAIT_MS)

    def press(self, action: str) -> None:
        assert self.window.actions_[action].isEnabled(), action
        self.window.actions_[action].trigger()

    def click(self, button: QWidget) -> None:
        self.wait(lambda: button.isVisible() and button.isEnabled())
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)

    def open(self, pair: PairChoice) -> None:
        self.window.resize(1280, 800)
        self.window.show()
        self.window.go("chat")
        self.app.session.load(pair)
        self.wait(lambda: self.app.session.info)

    def chat_and_stop(self) -> None:
        chat: Walker = self.window.screen_now
        chat.composer.set_text("Say the alphabet")
        self.click(chat.composer.send)
        self.wait(lambda: chat.chats.reply is not None and len(self.app.telemetry.points) > 3)
        self.press("chat.stop")
        self.wait(lambda: chat.chats.reply is None)
        assert chat.chats.path[-1].text.startswith("abc")
        assert len(chat.chats.path[-1].text) < MAX_TOKENS

    def regenerate(self) -> None:
        chat: Walker = self.window.screen_now
        stopped = chat.chats.path[-1]
        self.press("chat.regenerate")
        self.wait(lambda: chat.chats.reply is not None)
        self.wait(lambda: chat.chats.reply is None)
        again = chat.chats.path[-1]
        assert again.id != stopped.id
        assert again.text.startswith(stopped.text)
        self.press("chat.previous_branch")
        assert chat.chats.path[-1].id == stopped.id
        self.press("chat.next_branch")
        assert chat.chats.path[-1].id == again.id

    def branch(self) -> None:
        chat: Walker = self.window.screen_now
        first, message = chat.chats.chat, chat.chats.path[-1].id
        self.wait(lambda: chat.transcript.widget_of(message) is not None and chat.transcript.is_settled)
        self.click(chat.transcript.widget_of(message).findChild(AnswerActions).branch)
        self.wait(lambda: chat.chats.chat != first)

    def search(self) -> None:
        chat: Walker = self.window.screen_now
        self.press("chat.search_all")
        chat.list.search.setText("alphabet")
        self.wait(lambda: chat.list.list.model().rowCount() >= 2)
        chat.list.search.clear()

    def race(self) -> None:
        self.press("view.race")
        race: Walker = self.window.screen_now
        race.setup.tokens.setValue(24)
        race.setup.trials.setValue(1)
        self.click(race.setup.start)
        self.wait(lambda: race.result is not None and not race.runner.is_running)
        assert race.result.race.verdict is Verdict.IDENTICAL
        assert race.verdict.isVisible()

    def serve(self) -> str:
        self.press("server.toggle")
        self.wait(lambda: isinstance(self.app.server.state, ServerOn))
        state = self.app.server.state
        assert isinstance(state, ServerOn)
        body = {"model": "any", "messages": [{"role": "user", "content": "Say it"}], "max_tokens": 8}
        answer = httpx.post(f"{state.url}/v1/chat/completions", json=body, timeout=60)
        assert answer.status_code == 200
        assert answer.json()["choices"][0]["message"]["content"] == "abcdefgh"
        return state.url

    def set_up_claude_code_and_undo(self, url: str) -> None:
        self.press("view.server")
        server: Walker = self.window.screen_now
        file = Path.home() / ".claude" / "settings.json"
        before, card = file.read_text(), server.cards["claude-code"]
        self.click(card.set_up)
        self.wait(card.write.isVisible)
        assert "ANTHROPIC_BASE_URL" in card.diff.toPlainText()
        assert file.read_text() == before
        self.click(card.write)
        self.wait(lambda: "ANTHROPIC_BASE_URL" in file.read_text())
        written = json.loads(file.read_text())
        assert written["env"]["ANTHROPIC_BASE_URL"] == url
        assert written["theme"] == "dark"
        self.click(card.undo)
        self.click(card.write)
        self.wait(lambda: file.read_text() == before)

    def stop_server(self) -> None:
        self.press("server.toggle")
        self.wait(lambda: isinstance(self.app.server.state, ServerOff))


def test_from_the_first_question_to_an_agent_and_back(qtbot: QtBot, shell: Shell, pair: PairChoice) -> None:
    walk = Walk(qtbot, shell)
    walk.open(pair)
    walk.chat_and_stop()
    walk.regenerate()
    walk.branch()
    walk.search()
    walk.race()
    url = walk.serve()
    walk.set_up_claude_code_and_undo(url)
    walk.stop_server()
    assert shell.app.banners.current is None
