"""The window on a scripted engine that runs on its real worker thread."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from fakes import FakeEngine, Script
from slipstream.errors import ModelNotFound
from slipstream.service import Engine
from slipstream_app.bridge.session import Session
from slipstream_app.windows.main_window import MainWindow


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine(Script(pieces=("One", ", two", ", three"), round_s=0.01))


@pytest.fixture
def window(qtbot: QtBot, engine: FakeEngine) -> Iterator[MainWindow]:
    session = Session(lambda: engine, "a scripted model")
    window = MainWindow(session)
    qtbot.addWidget(window)
    session.start()
    yield window
    session.stop()


def test_a_question_is_answered_as_it_comes(qtbot: QtBot, window: MainWindow) -> None:
    qtbot.waitUntil(window.send.isEnabled, timeout=5000)
    window.prompt.setText("Count to three")
    window.submit()
    assert window.stop.isEnabled()
    qtbot.waitUntil(window.send.isEnabled, timeout=5000)
    assert window.answer.toPlainText() == "One, two, three"
    assert "tokens per round" in window.state.text()


def test_an_empty_question_is_not_sent(qtbot: QtBot, window: MainWindow) -> None:
    qtbot.waitUntil(window.send.isEnabled, timeout=5000)
    window.prompt.setText("  ")
    window.submit()
    assert not window.stop.isEnabled()


def test_a_model_that_cannot_be_loaded_is_said(qtbot: QtBot) -> None:
    def fail() -> Engine:
        raise ModelNotFound("no model at /nowhere; check the path or the name")

    session = Session(fail, "nothing")
    window = MainWindow(session)
    qtbot.addWidget(window)
    session.start()
    qtbot.waitUntil(lambda: "no model at /nowhere" in window.state.text(), timeout=5000)
    assert not window.send.isEnabled()
    session.stop()
