"""The engine's life as the window sees it: load, ask, unload, fault, restart, stop."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from fakes import FakeEngine, Script
from slipstream.errors import EngineFaulted, ModelNotFound, SlipstreamError
from slipstream.events import Done, Empty, Event, Failed, Faulted, Finish, Queued, Ready
from slipstream.service import Engine
from slipstream.types import Options, Request, Text
from slipstream_app.bridge.pair import PairChoice
from slipstream_app.bridge.session import Session
from slipstream_app.screens.base import AppContext

PAIR = PairChoice("a scripted model", "/nowhere/fake-model")
HELLO = Request(Text("hello"), Options())


def events_of(session: Session) -> list[tuple[int, Event]]:
    heard: list[tuple[int, Event]] = []
    session.bus.said.connect(lambda number, event: heard.append((number, event)))
    return heard


def test_every_event_of_a_job_reaches_the_bus_in_order(qtbot: QtBot, ready: AppContext) -> None:
    heard = events_of(ready.session)
    job = ready.session.submit(HELLO)
    qtbot.waitUntil(lambda: bool(heard) and isinstance(heard[-1][1], Done), timeout=5000)
    assert {number for number, _ in heard} == {job.number}
    assert isinstance(heard[0][1], Queued)
    assert sum(isinstance(event, Done | Failed) for _, event in heard) == 1


def test_nothing_loaded_is_said_at_once(session: Session) -> None:
    with pytest.raises(ModelNotFound):
        session.submit(HELLO)


def test_a_request_may_be_made_while_the_pair_is_loading(qtbot: QtBot, context: AppContext) -> None:
    heard = events_of(context.session)
    context.session.load(PAIR)
    context.session.submit(HELLO)
    qtbot.waitUntil(lambda: bool(heard) and isinstance(heard[-1][1], Done), timeout=5000)


def test_unload_cancels_and_frees(qtbot: QtBot, ready: AppContext, engine: FakeEngine) -> None:
    engine.script = Script(pieces=("a",) * 1000, round_s=0.01)
    heard = events_of(ready.session)
    ready.session.submit(HELLO)
    qtbot.waitUntil(lambda: len(heard) > 4, timeout=5000)
    ready.session.unload()
    qtbot.waitUntil(lambda: isinstance(ready.session.status, Empty), timeout=5000)
    last = heard[-1][1]
    assert isinstance(last, Done)
    assert last.reason is Finish.CANCELLED


def test_a_failed_forward_faults_the_engine_and_a_reload_mends_it(
    qtbot: QtBot, ready: AppContext, engine: FakeEngine
) -> None:
    engine.script = Script(breaks_after=1)
    heard = events_of(ready.session)
    ready.session.submit(HELLO)
    qtbot.waitUntil(lambda: isinstance(ready.session.status, Faulted), timeout=5000)
    last = heard[-1][1]
    assert isinstance(last, Failed)
    engine.script = Script()
    ready.session.reload()
    qtbot.waitUntil(lambda: isinstance(ready.session.status, Ready), timeout=5000)
    ready.session.submit(HELLO)
    qtbot.waitUntil(lambda: isinstance(heard[-1][1], Done), timeout=5000)


def test_an_engine_that_hangs_is_left_behind(qtbot: QtBot, ready: AppContext, engine: FakeEngine) -> None:
    engine.script = Script(blocks_after=1)
    heard = events_of(ready.session)
    stuck = ready.session.submit(HELLO)
    qtbot.waitUntil(lambda: len(heard) > 3, timeout=5000)
    ready.session.restart()
    qtbot.waitUntil(lambda: isinstance(heard[-1][1], Failed), timeout=5000)
    failed = heard[-1]
    assert isinstance(failed[1], Failed)
    assert isinstance(failed[1].error, EngineFaulted)
    engine.script = Script()
    qtbot.waitUntil(lambda: isinstance(ready.session.status, Ready), timeout=5000)
    second = ready.session.submit(HELLO)
    qtbot.waitUntil(lambda: heard[-1][0] == second.number and isinstance(heard[-1][1], Done), timeout=5000)
    engine.released.set()
    ended = [event for number, event in heard if number == stuck.number and isinstance(event, Done | Failed)]
    assert len(ended) == 1


def test_a_pair_that_cannot_be_loaded_is_a_fault_with_its_reason(qtbot: QtBot, qapp: object) -> None:
    def fail(*_: object) -> Engine:
        raise ModelNotFound("no model at /nowhere; check the path or the name")

    session = Session(fail)
    session.load(PAIR)
    qtbot.waitUntil(lambda: isinstance(session.status, Faulted), timeout=5000)
    status = session.status
    assert isinstance(status, Faulted)
    error: SlipstreamError = status.error
    assert "no model at /nowhere" in error.message
    assert session.stop()
