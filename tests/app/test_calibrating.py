"""Calibrate on the Telemetry screen: progress, result, refusal, stop; with the real engine on a tiny pair."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from slipstream.engine.calibrate import Calibration
from slipstream.engine.engine import open_engine
from slipstream.engine.pair import Pair
from slipstream.store import machine
from slipstream.types import Mode
from slipstream_app.bridge.pair import PairChoice
from slipstream_app.bridge.session import Session
from slipstream_app.main import make_context
from slipstream_app.models.calibrating import Phase
from slipstream_app.models.updates import UpdateCheck
from slipstream_app.screens.base import AppContext
from slipstream_app.screens.telemetry import TelemetryScreen
from slipstream_app.settings import Settings
from slipstream_app.widgets.footer import Footer
from slipstream_app.windows.settings_window import SettingsWindow
from tiny_runs import write_byte_drafter, write_target

TINY = PairChoice("tiny pair", "/nowhere/tiny")


@pytest.fixture
def app(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppContext]:
    """A tiny real pair, loaded."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("slipstream.engine.calibrate.REPEATS", 1)
    monkeypatch.setattr("slipstream.engine.engine.Calibration", partial(Calibration, contexts=(64,), budget_s=60.0))
    pair = Pair(write_target(tmp_path / "target"), (write_byte_drafter(tmp_path / "dspark", Mode.DSPARK),))
    session = Session(lambda *_: open_engine(pair))
    made = make_context(session, Settings(tmp_path / "settings.ini"), tmp_path)
    session.load(TINY)
    qtbot.waitUntil(lambda: session.info is not None, timeout=20000)
    yield made
    assert session.stop()
    made.history.close()
    made.speeds.close()


@pytest.fixture
def screen(qtbot: QtBot, app: AppContext) -> TelemetryScreen:
    made = TelemetryScreen(app)
    qtbot.addWidget(made)
    made.resize(1000, 700)
    made.show()
    qtbot.waitUntil(lambda: made.calibrating.phase is Phase.UNMEASURED, timeout=5000)
    return made


def calm(monkeypatch: pytest.MonkeyPatch, state: str | None) -> None:
    monkeypatch.setattr(machine, "disturbance", lambda: state)


def test_it_measures_in_sight_and_shows_the_costs(
    qtbot: QtBot, screen: TelemetryScreen, app: AppContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    calm(monkeypatch, None)
    seen: set[int] = set()
    screen.calibrating.changed.connect(lambda: seen.add(screen.calibration.bar.value()))
    footer = Footer(app.theme, app.activity, app.telemetry)
    qtbot.addWidget(footer)
    words = [footer.word()]
    app.activity.changed.connect(lambda: words.append(footer.word()))
    assert not screen.costs.isVisible()
    screen.calibration.measure.click()
    assert screen.calibration.stop.isVisible()
    qtbot.waitUntil(lambda: screen.calibrating.phase is Phase.MEASURED, timeout=30000)
    assert len(seen) > 3, "progress was seen"
    assert words == ["Ready", "Measuring", "Ready"]
    assert screen.costs.isVisible()
    assert {"plain", "dspark"} <= set(app.session.costs)
    assert "draft(s) takes" in screen.calibration.words.text()
    assert screen.calibration.measure.text() == "Calibrate again"
    # Another screen, as after a restart, finds what was kept.
    other = TelemetryScreen(app)
    qtbot.addWidget(other)
    qtbot.waitUntil(lambda: other.calibrating.phase is Phase.MEASURED, timeout=5000)
    assert other.calibration.words.text() == screen.calibration.words.text()


def test_a_busy_machine_is_refused_in_a_sentence_and_measured_when_told_to(
    qtbot: QtBot, screen: TelemetryScreen, monkeypatch: pytest.MonkeyPatch
) -> None:
    calm(monkeypatch, "busy (load 9.0 on 2 processors over the last minute)")
    assert not screen.calibration.anyway.isVisible()
    screen.visited("calibrate")  # as the menu and the Models screen do
    qtbot.waitUntil(lambda: screen.calibrating.phase is Phase.REFUSED, timeout=10000)
    words = screen.calibration.words.text()
    assert words.startswith("This machine is busy (load 9.0")
    assert "--force" not in words
    screen.calibration.anyway.click()
    qtbot.waitUntil(lambda: screen.calibrating.phase is Phase.MEASURED, timeout=30000)


def test_settings_measure_again_and_every_window_sees_it(
    qtbot: QtBot, screen: TelemetryScreen, app: AppContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    calm(monkeypatch, "busy (load 9.0 on 2 processors over the last minute)")
    window = SettingsWindow(app.theme, app.settings, app.session, UpdateCheck(app.settings), app.calibrating)
    qtbot.addWidget(window)
    window.open_at("performance")
    panel = window.calibration
    assert panel.isVisible()
    assert panel.measure.text() == "Calibrate"
    panel.measure.click()
    assert screen.calibration.stop.isVisible(), "there it is under way as well"
    qtbot.waitUntil(panel.anyway.isVisible, timeout=10_000)
    assert panel.words.text().startswith("This machine is busy")
    panel.anyway.click()
    qtbot.waitUntil(lambda: app.calibrating.phase is Phase.MEASURED, timeout=30_000)
    assert panel.measure.text() == "Calibrate again"
    assert panel.words.text() == screen.calibration.words.text()
    window.close()


def test_stop_keeps_what_was_known(qtbot: QtBot, screen: TelemetryScreen, monkeypatch: pytest.MonkeyPatch) -> None:
    calm(monkeypatch, None)
    screen.calibrating.start()
    screen.calibration.stop.click()
    qtbot.waitUntil(lambda: not screen.calibrating.is_running, timeout=30000)
    qtbot.waitUntil(lambda: screen.calibrating.phase is Phase.UNMEASURED, timeout=5000)
    assert not screen.costs.isVisible()


def test_without_a_model_there_is_nothing_to_measure(qtbot: QtBot, screen: TelemetryScreen, app: AppContext) -> None:
    app.session.unload()
    qtbot.waitUntil(lambda: screen.calibrating.phase is Phase.NO_MODEL, timeout=10000)
    assert not screen.calibration.measure.isEnabled()
    assert "Load a model" in screen.calibration.words.text()
