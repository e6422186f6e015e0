"""Numbers in the window are written as the user's language does, all of them; files keep Python's writing."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from PySide6.QtCore import QLocale
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

import slipstream_app
from fakes import FakeEngine, Script
from slipstream.jobs import Job
from slipstream.types import Mode
from slipstream_app import numbers
from slipstream_app.numbers import (
    brief_text,
    close_text,
    count_text,
    number_text,
    part_text,
    share_text,
    size_text,
    span_text,
)
from slipstream_app.screens.base import AppContext
from slipstream_app.screens.race import RaceScreen
from slipstream_app.screens.telemetry import TelemetryScreen
from slipstream_app.widgets.plots import number_axis

Use = Callable[[str], None]


@pytest.fixture
def use() -> Use:
    """A language, for all that is made from now on."""
    return lambda name: QLocale.setDefault(QLocale(name))


@pytest.mark.parametrize(
    ("language", "told"),
    [
        ("en", ["32,768", "1,234.5", "0.0042", "12.3k", "1.5 GB", "0.4 / 18.0 GB", "71\N{NO-BREAK SPACE}%", "2.5 h"]),
        ("de", ["32.768", "1.234,5", "0,0042", "12,3k", "1,5 GB", "0,4 / 18,0 GB", "71\N{NO-BREAK SPACE}%", "2,5 h"]),
        ("C", ["32,768", "1,234.5", "0.0042", "12.3k", "1.5 GB", "0.4 / 18.0 GB", "71\N{NO-BREAK SPACE}%", "2.5 h"]),
    ],
)
def test_each_kind_of_number_in_each_language(use: Use, language: str, told: list[str]) -> None:
    use(language)
    assert [
        count_text(32_768),
        number_text(1234.5),
        close_text(0.0042),
        brief_text(12_345),
        size_text(1_500_000_000),
        part_text(400_000_000, 18_000_000_000),
        share_text(0.714),
        span_text(9000),
    ] == told
    assert number_text(None) == share_text(None) == numbers.NOTHING


class _Axis:
    """What pyqtgraph's axis is here: a class to inherit from."""

    def __init__(self, side: str) -> None:
        self.side = side


def test_an_axis_writes_them_alike(use: Use) -> None:
    pyqtgraph = ModuleType("pyqtgraph")
    pyqtgraph.AxisItem = _Axis  # type: ignore[attr-defined]
    use("de")
    axis = number_axis(pyqtgraph, "left")
    assert axis.tickStrings([0, 0.5, 1], 1, 0.5) == ["0,0", "0,5", "1,0"]
    assert axis.tickStrings([0, 1000, 2000], 1, 1000) == ["0", "1.000", "2.000"]


def _labels(root: QWidget) -> list[str]:
    return [label.text() for label in root.findChildren(QLabel)]


def test_a_race_and_its_telemetry_in_german_and_a_report_that_is_not(
    qtbot: QtBot, ready: AppContext, engine: FakeEngine, use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slipstream.store.machine.busy", lambda: None)
    use("de")

    def script(job: Job) -> Script:
        is_plain = job.request.options.mode is Mode.BASELINE
        return Script(pieces=tuple("abcdefghi") if is_plain else ("abc", "def", "ghi"), round_s=0.01)

    engine.script = script
    race, telemetry = RaceScreen(ready), TelemetryScreen(ready)
    for screen in (race, telemetry):
        qtbot.addWidget(screen)
        screen.show()
    race.setup.trials.setValue(2)
    race.toggle()
    qtbot.waitUntil(lambda: race.result is not None, timeout=20_000)
    shown = [*_labels(race), *_labels(telemetry)]
    assert [text for text in shown if re.search(r"\d,\d", text)], "it says some"
    assert not [text for text in shown if re.search(r"\d\.\d(?!\d\d)", text)]
    assert re.search(r"\d\.\d", race.outcome.text(as_json=False))
    race.closing()
    telemetry.left()


# A file's own writing, and sizes in a style sheet.
_NOT_SHOWN = {"models/telemetry.py", "models/telemetry_history.py", "widgets/plots.py"}


def test_no_other_place_writes_a_number_of_its_own() -> None:
    """A fraction or a group in an f-string is in Python's writing, whatever the language."""
    root = Path(slipstream_app.__file__).parent
    found: list[str] = []
    for file in root.rglob("*.py"):
        name = str(file.relative_to(root))
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
                spec = ast.unparse(node.format_spec)
                if re.search(r"[,fg%]['\"]?$", spec) and name not in _NOT_SHOWN:
                    found.append(f"{name}:{node.lineno} {spec}")
    assert not found
