"""The status bar: what the engine does, memory, clients, heat, server; no timer runs while nothing is done."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QTimer
from pytestqt.qtbot import QtBot

from app.conftest import FAKE
from fakes import FakeEngine, Script
from slipstream.types import Request, Text
from slipstream_app.bridge.server import ServerHost, ServerOn
from slipstream_app.models import memory
from slipstream_app.models.conditions import Conditions, Level
from slipstream_app.screens.base import AppContext
from slipstream_app.windows.status_bar import HEAT_S, StatusBar


@pytest.fixture
def heat() -> list[Level]:
    """As it is; the last one counts."""
    return [Level.NOMINAL]


@pytest.fixture
def bar(qtbot: QtBot, context: AppContext, heat: list[Level]) -> StatusBar:
    made = StatusBar(context.session, context.server, context.activity, conditions=lambda: Conditions(thermal=heat[-1]))
    qtbot.addWidget(made)
    made.show()
    return made


def timers(bar: StatusBar) -> int:
    return sum(timer.isActive() for timer in bar.findChildren(QTimer))


def test_it_says_what_the_engine_does_and_looks_only_meanwhile(
    qtbot: QtBot, bar: StatusBar, context: AppContext, engine: FakeEngine
) -> None:
    assert bar.engine.text() == "No model is loaded"
    context.session.load(FAKE)
    qtbot.waitUntil(lambda: bar.engine.text() == "Engine ready", timeout=5000)
    engine.script = Script(prefill_chunks=4, prefill_s=0.05, blocks_after=1)
    context.session.submit(Request(Text("x")))
    qtbot.waitUntil(lambda: bar.engine.text() == "Engine reading a prompt", timeout=5000)
    qtbot.waitUntil(lambda: bar.engine.text() == "Engine generating", timeout=5000)
    assert timers(bar)
    engine.released.set()
    qtbot.waitUntil(lambda: bar.engine.text() == "Engine ready", timeout=5000)
    qtbot.waitUntil(lambda: not timers(bar), timeout=3000)
    context.session.unload()
    qtbot.waitUntil(lambda: bar.engine.text() == "No model is loaded", timeout=5000)
    bar.hide()
    assert not timers(bar)


def test_memory_and_heat_in_words(qtbot: QtBot, heat: list[Level], bar: StatusBar) -> None:
    qtbot.waitUntil(lambda: " of " in bar.memory.text(), timeout=5000)
    held, _, limit = bar.memory.text().partition(" of ")
    assert held.endswith(("MB", "GB"))
    assert limit.endswith("GB")
    assert bar.heat.text() == "Heat: nominal"


def test_heat_is_asked_again_while_something_is_done_and_until_it_is_nominal(
    qtbot: QtBot, heat: list[Level], bar: StatusBar
) -> None:
    qtbot.waitUntil(lambda: bar.heat.text() == "Heat: nominal", timeout=5000)
    assert not bar._cooling.isActive()
    heat.append(Level.RAISED)
    bar.refresh()
    qtbot.wait(200)
    assert bar.heat.text() == "Heat: nominal", "not more often than every some seconds"
    bar._asked_s -= HEAT_S
    bar.refresh()  # as each second while an answer comes
    qtbot.waitUntil(lambda: bar.heat.text() == "Heat: raised", timeout=5000)
    assert bar.heat.property("role") == "warn"
    assert bar._cooling.isActive()
    heat.append(Level.NOMINAL)
    bar._asked_s -= HEAT_S
    bar._cooling.timeout.emit()
    qtbot.waitUntil(lambda: bar.heat.text() == "Heat: nominal", timeout=5000)
    bar._cooling.stop()


def test_clients_are_counted_while_the_server_is_on(
    qtbot: QtBot, bar: StatusBar, context: AppContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not bar.clients.isVisible()
    monkeypatch.setattr(ServerHost, "clients", property(lambda _: 2))
    context.bus.server_changed.emit(ServerOn("http://127.0.0.1:1", None))
    qtbot.waitUntil(bar.clients.isVisible, timeout=3000)
    assert bar.clients.text().startswith("2 client")
    assert bar.serving.text() == "Serving at http://127.0.0.1:1"


def test_what_the_process_holds_is_no_more_than_it_ever_held() -> None:
    assert 10 * 2**20 < memory.held_bytes() <= memory.peak_bytes() * 1.05
