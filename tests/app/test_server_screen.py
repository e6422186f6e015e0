"""Server & Agents: a real server on a real port, real clients, and real files in a temporary home."""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest
from PySide6.QtWidgets import QApplication, QComboBox
from pytestqt.qtbot import QtBot

from fakes import FakeEngine, FakeTokeniser, Script
from server.requests import chat, chat_body, client, get, open_stream, post
from slipstream.agents.config import Place
from slipstream.server import tokenising
from slipstream_app import log
from slipstream_app.bridge.server import ServerOff, ServerOn, ServerRefused
from slipstream_app.models.agents import Doing
from slipstream_app.models.recent import RecentPairs
from slipstream_app.models.server_options import next_free, who_listens
from slipstream_app.screens.base import AppContext
from slipstream_app.screens.server import LOG, ServerScreen
from slipstream_app.windows.server_switch import ServerSwitch

Result = TypeVar("Result")
SETTINGS = '{\n  "theme": "dark"\n}\n'


@pytest.fixture(autouse=True)
def no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripted model has no folder to read a tokeniser from."""
    monkeypatch.setattr(tokenising, "FolderTokeniser", lambda _: FakeTokeniser())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    (folder / ".claude").mkdir(parents=True)
    (folder / ".claude" / "settings.json").write_text(SETTINGS)
    monkeypatch.setenv("PATH", str(tmp_path))  # no client is installed
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def screen(qtbot: QtBot, context: AppContext, home: Path) -> Iterator[ServerScreen]:
    context.settings.set("server/port", next_free(20_000) or 0)
    made = ServerScreen(context, place=Place.at(home))
    qtbot.addWidget(made)
    made.resize(1000, 700)
    made.show()
    yield made
    made.left()


def start(qtbot: QtBot, screen: ServerScreen) -> ServerOn:
    screen.switch.click()
    qtbot.waitUntil(lambda: screen.state.text().startswith("● Serving"), timeout=10_000)
    state = screen.app.server.state
    assert isinstance(state, ServerOn)
    return state


def from_another_thread(qtbot: QtBot, work: Callable[[], Result]) -> Result:
    """A client does not stop the window while it waits."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        qtbot.waitUntil(future.done, timeout=15_000)
        return future.result()


def settled(qtbot: QtBot, screen: ServerScreen, name: str = "claude-code") -> None:
    qtbot.waitUntil(lambda: screen.desk.states[name].doing is Doing.NOTHING, timeout=15_000)


def test_stopped_it_offers_one_thing(screen: ServerScreen) -> None:
    assert screen.state.text() == "○ The server is off"
    assert screen.switch.text() == "Start server"
    assert "No model is loaded" in screen.facts.text()
    assert not screen.copy.isVisible()


def test_started_it_answers_and_shows_who_asked(
    qtbot: QtBot, screen: ServerScreen, ready: AppContext, engine: FakeEngine
) -> None:
    engine.script = Script(pieces=("Hel", "lo"), reused=2)
    url = start(qtbot, screen).url
    assert "Key: off (this machine only)" in screen.facts.text()
    assert "fake-model" in screen.facts.text()
    screen.copy.click()
    assert QApplication.clipboard().text() == f"{url}/v1"
    told = from_another_thread(qtbot, lambda: chat(url, "a secret", unheard_of=1))
    assert told["choices"][0]["message"]["content"] == "Hello"
    qtbot.waitUntil(lambda: ready.requests.rowCount() == 1 and ready.requests.record(0).seconds is not None)
    record = ready.requests.record(0)
    assert record.cached_share == pytest.approx(2 / told["usage"]["prompt_tokens"])
    screen.requests.view.selectRow(0)
    detail = screen.requests.detail.text()
    assert "Ignored fields: unheard_of" in detail
    assert "2 of them from the cache" in detail
    assert "Its text was not kept." in detail
    assert "secret" not in detail
    assert not screen.requests.text.isVisible()
    # The figures are those that the answer itself carries.
    assert record.timings is not None
    assert told["slipstream"]["decode_tps"] == round(record.timings.decode_tps, 1)
    screen.switch.click()
    qtbot.waitUntil(lambda: isinstance(ready.server.state, ServerOff), timeout=10_000)
    qtbot.waitUntil(lambda: screen.switch.text() == "Start server")


def test_what_happens_to_a_prompt_that_does_not_fit_is_chosen_and_said(
    qtbot: QtBot, screen: ServerScreen, ready: AppContext
) -> None:
    turns = [
        {"role": role, "content": said}
        for name in ("one", "two", "three")
        for role, said in (("user", name + "x" * 3000), ("assistant", "y"))
    ]
    body = {"model": "m", "messages": [*turns, {"role": "user", "content": "the last"}]}
    url = start(qtbot, screen).url
    assert from_another_thread(qtbot, lambda: post(url, "/v1/chat/completions", body)).status_code == 400
    assert "refused with its length" in screen.options.note.text()
    box = screen.options.editors["server/prompt_limit"].control
    assert isinstance(box, QComboBox)
    switch = ServerSwitch(ready, RecentPairs(ready.session, ready.settings), lambda _: None, screen)
    box.setCurrentIndex(box.findData("drop_oldest"))
    assert switch.parent() is screen
    assert "loses its oldest turns" in screen.options.note.text()
    answer = from_another_thread(qtbot, lambda: post(url, "/v1/chat/completions", body))
    assert answer.headers["x-slipstream-dropped-messages"] == "2"
    qtbot.waitUntil(lambda: ready.requests.record(0).dropped == 2 and ready.requests.record(0).seconds is not None)
    assert ready.requests.status_text(ready.requests.record(0)) == "200, shortened"
    screen.requests.view.selectRow(0)
    assert "its oldest 2 message(s) were not given to the model" in screen.requests.detail.text()


def test_texts_are_shown_only_when_they_are_kept(qtbot: QtBot, screen: ServerScreen, ready: AppContext) -> None:
    url = start(qtbot, screen).url
    screen.keep_text.click()
    assert ready.settings.flag("server/keep_text")
    from_another_thread(qtbot, lambda: chat(url, "a secret"))
    qtbot.waitUntil(lambda: ready.requests.rowCount() == 1 and ready.requests.record(0).text is not None)
    screen.sections.choose(1)
    screen.requests.view.selectRow(0)
    assert "a secret" in screen.requests.text.toPlainText()


def test_a_client_that_leaves_is_said_to_have_left(
    qtbot: QtBot, screen: ServerScreen, ready: AppContext, engine: FakeEngine
) -> None:
    engine.script = Script(pieces=("word ",) * 500, round_s=0.01)
    url = start(qtbot, screen).url

    def leave() -> None:
        with open_stream(url, chat_body(stream=True)) as response:
            next(response.iter_lines())

    from_another_thread(qtbot, leave)
    qtbot.waitUntil(lambda: ready.requests.record(0).reason == "cancelled", timeout=5000)
    assert ready.requests.status_text(ready.requests.record(0)) == "200, client left"


def test_clients_have_names_here_and_in_telemetry(qtbot: QtBot, screen: ServerScreen, ready: AppContext) -> None:
    url = start(qtbot, screen).url

    def ask() -> None:
        with client(url, headers={"User-Agent": "claude-cli/2.1.0 (external, cli)"}) as one:
            one.post("/v1/chat/completions", json=chat_body())

    from_another_thread(qtbot, ask)
    qtbot.waitUntil(lambda: "claude-code" in ready.telemetry.sources, timeout=5000)
    assert re.fullmatch(r"last request \d s ago", screen.cards["claude-code"].status.text())


def test_how_long_ago_an_agent_asked_grows_while_it_can_be_seen(qtbot: QtBot, screen: ServerScreen) -> None:
    card = screen.cards["claude-code"]
    assert not card.is_awake  # it never asked
    began = time.time() - 12
    card.refresh(began)
    assert card.status.text().startswith("last request 12 s")
    qtbot.waitUntil(lambda: "13 s" in card.status.text() or "14 s" in card.status.text(), timeout=3000)
    screen.sections.choose(LOG)
    assert not card.is_awake
    for age, words in ((59, "59 s ago"), (60, "1 min ago"), (3599, "59 min ago"), (7300, "2 h ago")):
        card.refresh(time.time() - age - 0.1)
        assert card.status.text() == f"last request {words}"
    assert not card.is_awake


def test_a_busy_port_names_its_process_and_the_next_free_one(
    qtbot: QtBot, screen: ServerScreen, ready: AppContext
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert str(os.getpid()) in (who_listens(port) or "")
        ready.settings.set("server/port", port)
        screen.switch.click()
        qtbot.waitUntil(screen.other_port.isVisible, timeout=10_000)
        assert isinstance(ready.server.state, ServerRefused)
        assert screen.trouble.text().startswith(f"Port {port} is used by ")
        assert str(os.getpid()) in screen.trouble.text()
        screen.other_port.click()
        qtbot.waitUntil(lambda: isinstance(ready.server.state, ServerOn), timeout=10_000)
    qtbot.waitUntil(lambda: not screen.trouble.isVisible())
    assert ready.settings.number("server/port") > port
    assert who_listens(port) is None


def test_p17_the_network_is_let_in_with_a_key_alone(qtbot: QtBot, screen: ServerScreen, ready: AppContext) -> None:
    screen.sections.choose(2)
    screen.options.network.click()
    key = ready.settings.text("server/key")
    assert key.startswith("slip-")
    assert screen.options.key.text() == key
    screen.options.key.setText("")  # it cannot be taken away while others are let in
    screen.options.key.editingFinished.emit()
    assert ready.settings.text("server/key") == key
    state = start(qtbot, screen)
    assert state.key == key
    assert "Other devices: http://" in screen.facts.text()
    port = state.url.rpartition(":")[2]
    answer = from_another_thread(qtbot, lambda: get(f"http://127.0.0.1:{port}", "/v1/models"))
    assert answer.status_code == 401
    qtbot.waitUntil(lambda: "Turned away: 1, last from 127.0.0.1" in screen.facts.text(), timeout=5000)
    screen.options.network.click()
    screen.options.key.setText("two words")
    screen.options.key.editingFinished.emit()
    assert ready.settings.text("server/key") == key
    assert "printable ASCII" in screen.options.note.text()


def test_a_page_must_be_an_origin(screen: ServerScreen, context: AppContext) -> None:
    screen.options.origins.setText("https://chat.example/path")
    screen.options.origins.editingFinished.emit()
    assert "is not an origin" in screen.options.note.text()
    assert context.settings.text("server/origins") == ""
    screen.options.origins.setText("https://Chat.example  http://localhost:3000")
    screen.options.origins.editingFinished.emit()
    assert context.settings.text("server/origins") == "https://chat.example http://localhost:3000"


def test_an_agent_is_set_up_after_its_change_was_seen_and_undone_to_the_byte(
    qtbot: QtBot, screen: ServerScreen, ready: AppContext, home: Path
) -> None:
    start(qtbot, screen)
    file, card = home / ".claude" / "settings.json", screen.cards["claude-code"]
    assert list(screen.cards) == ["claude-code", "pi", "codex", "opencode"]
    screen.visited(None)
    settled(qtbot, screen)
    assert card.status.text() == "not installed"
    assert "npm install" in card.words.text()
    assert not card.test.isVisible()
    card.set_up.click()
    settled(qtbot, screen)
    shown = card.diff.toPlainText()
    assert "+++ " in shown
    assert "ANTHROPIC_BASE_URL" in shown
    assert file.read_text() == SETTINGS  # nothing was written yet
    card.cancel.click()
    assert not card.diff.isVisible()
    card.set_up.click()
    settled(qtbot, screen)
    card.write.click()
    settled(qtbot, screen)
    written = json.loads(file.read_text())
    state = ready.server.state
    assert isinstance(state, ServerOn)
    assert written["env"]["ANTHROPIC_BASE_URL"] == state.url
    assert written["theme"] == "dark"
    (backup,) = file.parent.glob("settings.json.slipstream-*.bak")
    assert backup.read_text() == SETTINGS
    assert "Backup: ~/.claude/settings.json.slipstream-" in card.words.text()
    assert card.status.text() == "set up"
    card.undo.click()
    settled(qtbot, screen)
    assert card.write.text() == "Undo this"
    card.write.click()
    settled(qtbot, screen)
    assert file.read_text() == SETTINGS
    assert not card.undo.isVisible()


def test_a_file_that_is_broken_is_left_alone_and_said(
    qtbot: QtBot, screen: ServerScreen, ready: AppContext, home: Path
) -> None:
    file = home / ".claude" / "settings.json"
    file.write_text("{ not json")
    screen.cards["claude-code"].set_up.click()
    settled(qtbot, screen)
    assert "is not valid JSON" in screen.cards["claude-code"].words.text()
    assert screen.cards["claude-code"].words.property("role") == "bad"
    assert file.read_text() == "{ not json"


def test_without_server_and_model_a_set_up_says_what_is_missing(qtbot: QtBot, screen: ServerScreen) -> None:
    screen.cards["pi"].set_up.click()
    settled(qtbot, screen, "pi")
    assert "start the server, or load a model" in screen.cards["pi"].words.text()


def test_a_test_of_a_client_that_does_not_use_its_tool_fails(
    qtbot: QtBot, screen: ServerScreen, ready: AppContext, tmp_path: Path
) -> None:
    """A program of that name which only talks."""
    program = tmp_path / "claude"
    program.write_text('#!/bin/sh\n[ "$1" = "--version" ] && echo 2.1.0 || echo "I read it, honestly."\n')
    program.chmod(0o755)
    start(qtbot, screen)
    screen.visited(None)
    settled(qtbot, screen)
    card = screen.cards["claude-code"]
    assert "2.1.0 found" in card.status.text()
    card.test.click()
    assert "reading a file" in card.status.text()
    settled(qtbot, screen)
    assert "did not read the file with a tool" in card.words.text()


def test_the_log_is_searched_and_read_only_while_it_is_seen(qtbot: QtBot, screen: ServerScreen) -> None:
    root = logging.getLogger()
    root.addHandler(log.ring)
    try:
        logging.getLogger("slipstream.test").warning("a warning of ours")
        logging.getLogger("slipstream.test").error("an error of ours")
        assert not screen.log.timer.isActive()
        screen.sections.choose(LOG)
        assert screen.log.timer.isActive()
        screen.log.search.setText("of ours")
        assert len(screen.log.lines.toPlainText().splitlines()) == 2
        screen.log.level.setCurrentIndex(2)
        assert "an error of ours" in screen.log.lines.toPlainText()
        assert "a warning" not in screen.log.lines.toPlainText()
        screen.log.copy_error.click()
        assert "an error of ours" in QApplication.clipboard().text()
        screen.hide()
        assert not screen.log.timer.isActive()
    finally:
        root.removeHandler(log.ring)


def test_only_two_hundred_requests_are_kept(qtbot: QtBot, screen: ServerScreen, ready: AppContext) -> None:
    url = start(qtbot, screen).url

    def many() -> None:
        with client(url) as one:
            for _ in range(205):
                one.get("/health")

    from_another_thread(qtbot, many)
    qtbot.waitUntil(lambda: ready.requests.rowCount() == 200 and ready.requests.record(0).number == 205, timeout=5000)
    assert post(url, "/nowhere", {}).status_code == 404
