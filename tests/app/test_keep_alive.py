"""How long a pair stays loaded: its own word in Models, the settings', a client's; kept, and honoured on request."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from pytestqt.qtbot import QtBot

from app.scripted_store import ScriptedStore
from app.test_load_on_request import Client, serving
from fakes import INFO, FakeEngine
from slipstream.events import Ready
from slipstream.jobs import Inbox
from slipstream.server.backend import Backend
from slipstream_app.bridge.pair import BUILT_IN, PairChoice
from slipstream_app.bridge.window_models import WindowModels
from slipstream_app.models.keep_alive import PINNED, KeepAlive
from slipstream_app.models.pairs import KEEP
from slipstream_app.screens.base import AppContext
from slipstream_app.screens.models import SUGGESTED, ModelsScreen
from slipstream_app.settings import Settings
from slipstream_app.windows.shell import Shell

__all__ = ["serving"]
PAIR = PairChoice("a pair", "/nowhere/pair", ("/nowhere/drafter",))
NAMESAKE = PairChoice("a pair", "/elsewhere/pair")


def test_each_pair_has_its_own_word_and_it_is_kept(qapp: object, tmp_path: Path) -> None:
    settings = Settings(tmp_path / "settings.ini")
    settings.set("performance/unload_minutes", 45)
    keep_alive = KeepAlive(settings)
    assert (keep_alive.own(PAIR), keep_alive.minutes(PAIR)) == (None, 45)
    keep_alive.set(PAIR, PINNED)
    keep_alive.set(BUILT_IN, 15)
    settings.sync()
    again = KeepAlive(Settings(tmp_path / "settings.ini"))
    assert again.is_pinned(PAIR)
    assert again.minutes(PAIR) == 0
    assert again.minutes(BUILT_IN) == 15
    assert again.own(NAMESAKE) is None, "a name is not what a pair is made of"
    again.set(PAIR, None)
    assert again.minutes(PAIR) == 45


@pytest.mark.parametrize("stored", ["", "no JSON", "[1]", '{"[null, null]": "5"}', '{"[null, null]": -3}'])
def test_what_cannot_be_is_as_in_settings(qapp: object, tmp_path: Path, stored: str) -> None:
    settings = Settings(tmp_path / "settings.ini")
    settings.remember("keep_alive", stored)
    assert KeepAlive(settings).own(BUILT_IN) is None


@pytest.fixture
def screen(qtbot: QtBot, context: AppContext) -> Iterator[ModelsScreen]:
    made = ModelsScreen(context, open_=ScriptedStore)
    qtbot.addWidget(made)
    made.resize(1100, 700)
    made.show()
    made.visited(None)
    qtbot.waitUntil(lambda: made.table.rowCount() == 5, timeout=5000)
    yield made
    made.closing()


def test_it_is_chosen_in_models_and_listed_there(qtbot: QtBot, screen: ModelsScreen, context: AppContext) -> None:

    def listed() -> list[str]:
        return [str(screen.table.index(row, KEEP).data()) for row in range(screen.table.rowCount())]

    box = screen.pairs.details.keep.box
    assert listed() == [*["always"] * 4, "–"], "one cannot be loaded"
    assert box.currentText() == "As in Settings: always"
    context.settings.set("performance/unload_minutes", 45)
    assert listed()[:2] == ["45 min", "45 min"]
    assert box.currentText().startswith("As in Settings: 45 minute")
    qtbot.keyClicks(box, "Always")
    box.activated.emit(box.currentIndex())
    assert listed()[:2] == ["pinned", "45 min"]
    assert context.keep_alive.is_pinned(BUILT_IN)
    screen.pairs.view.selectRow(1)
    assert box.currentData() is None
    screen.sections.choose(SUGGESTED)
    assert set(listed()) == {"–"}
    assert not box.isVisible()


def test_a_loaded_pair_is_unloaded_by_its_own_word(qtbot: QtBot, shell: Shell) -> None:
    app, idle = shell.app, shell.watch._idle
    app.session.load(PAIR)
    qtbot.waitUntil(lambda: isinstance(app.session.status, Ready), timeout=5000)
    app.settings.set("performance/unload_minutes", 5)
    assert idle.interval() == 300_000
    app.keep_alive.set(PAIR, PINNED)
    assert not idle.isActive()
    app.keep_alive.set(PAIR, 15)
    assert (idle.isActive(), idle.interval()) == (True, 900_000)
    app.session.load(NAMESAKE)
    qtbot.waitUntil(lambda: app.session.choice == NAMESAKE and isinstance(app.session.status, Ready), timeout=5000)
    assert idle.interval() == 300_000, "another pair, as in Settings"


def test_a_pair_that_a_request_had_loaded_goes_by_its_own_word(
    qtbot: QtBot, shell: Shell, serving: str, engine: FakeEngine
) -> None:
    shell.app.keep_alive.set(shell.recent.pairs[0], 30)
    assert Client(serving).wait(qtbot).status_code == 200
    qtbot.waitUntil(shell.watch._idle.isActive, timeout=5000)
    assert shell.watch._idle.interval() == 30 * 60_000
    with qtbot.waitSignal(shell.watch.idle):
        shell.watch._idle.setInterval(1)
    qtbot.waitUntil(lambda: shell.app.session.info is None, timeout=5000)
    assert Client(serving).wait(qtbot).status_code == 200, "and the next one loads it again"


def ollama(qtbot: QtBot, url: str, keep_alive: object) -> None:
    body = {"model": "any", "messages": [{"role": "user", "content": "Hello"}], "stream": False}
    answer = Client(url, "/api/chat", body | ({} if keep_alive is None else {"keep_alive": keep_alive})).wait(qtbot)
    assert answer.status_code == 200, answer.text


def test_a_client_may_say_how_long_until_the_next_request_and_a_pin_is_stronger(
    qtbot: QtBot, shell: Shell, serving: str, engine: FakeEngine
) -> None:
    session, idle = shell.app.session, shell.watch._idle
    ollama(qtbot, serving, "10m")
    qtbot.waitUntil(lambda: idle.isActive() and idle.interval() == 600_000, timeout=5000)
    ollama(qtbot, serving, None)
    qtbot.waitUntil(lambda: not idle.isActive(), timeout=5000)
    ollama(qtbot, serving, "8760h")
    qtbot.waitUntil(idle.isActive, timeout=5000)
    assert idle.interval() == 2**31 - 1, "as long as a timer can wait"
    ollama(qtbot, serving, 0)
    qtbot.waitUntil(lambda: session.info is None, timeout=5000)
    choice = shell.recent.pairs[0]
    shell.app.keep_alive.set(choice, PINNED)
    ollama(qtbot, serving, 0)
    qtbot.waitUntil(lambda: isinstance(session.status, Ready), timeout=5000)
    qtbot.wait(100)
    assert session.info is not None
    assert not idle.isActive()


def test_a_request_for_the_listed_name_is_answered(
    qtbot: QtBot, shell: Shell, serving: str, engine: FakeEngine
) -> None:
    """It is listed by the pair's title while nothing is loaded, and by the model's name then."""
    name = shell.recent.pairs[0].title
    assert name in httpx.get(f"{serving}/v1/models", timeout=10).text
    body = {"model": name, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 8}
    for _ in range(2):
        assert Client(serving, "/v1/chat/completions", body).wait(qtbot).status_code == 200


def test_what_a_client_said_holds_until_the_next_request_though_both_are_answered_at_once() -> None:
    said: list[float | None] = []
    backend = Backend(Inbox())
    backend.note(Ready(INFO))
    models = WindowModels(backend, "a pair", lambda: None, said.append)

    async def both() -> None:
        async with models.use():
            models.hold(0.0)
            async with models.use():
                pass
        async with models.use():
            models.hold(60.0)

    asyncio.run(both())
    backend.close()
    assert said == [60.0]
