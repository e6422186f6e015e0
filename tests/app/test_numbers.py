"""Numbers in the window are written as the user's language does, all of them; files keep Python's writing."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest
from PySide6.QtCore import QLocale
from PySide6.QtWidgets import QLabel, QSpinBox, QWidget
from pytestqt.qtbot import QtBot

import slipstream_app
from fakes import FakeEngine, Script
from slipstream.jobs import Job
from slipstream.store.sizes import words
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
from slipstream_app.resources import i18n_dir
from slipstream_app.screens.base import AppContext
from slipstream_app.screens.race import RaceScreen
from slipstream_app.screens.telemetry import TelemetryScreen
from slipstream_app.settings_table import SETTINGS
from slipstream_app.theme import Theme
from slipstream_app.widgets.plots import number_axis
from slipstream_app.widgets.setting_editors import make_editor

Use = Callable[[str], None]


@pytest.fixture
def use() -> Use:
    """A language, for all that is made from now on."""
    return lambda name: QLocale.setDefault(QLocale(name))


@pytest.mark.parametrize(
    ("language", "told"),
    [
        ("en", ["32,768", "1,234.5", "0.0042", "12.3k", "1.5\xa0GB", "0.4 / 18.0\xa0GB", "71%", "2.5\xa0h"]),
        ("de", ["32.768", "1.234,5", "0,0042", "12,3k", "1,5\xa0GB", "0,4 / 18,0\xa0GB", "71\xa0%", "2,5\xa0h"]),
        ("C", ["32,768", "1,234.5", "0.0042", "12.3k", "1.5\xa0GB", "0.4 / 18.0\xa0GB", "71%", "2.5\xa0h"]),
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


_LEAST = (1, 999, 9_999, 99_949, 99_950, 99_999, 999_499, 999_500, 999_949, 999_950, 999_999)


@pytest.mark.parametrize("write", [brief_text, size_text, lambda count: part_text(count, count), words])
def test_what_rounds_to_a_thousand_is_one_of_the_next_unit(use: Use, write: Callable[[int], str]) -> None:
    use("en")
    for count in {least * 10**power + more for least in _LEAST for power in range(6) for more in (-1, 0, 1)}:
        told = re.findall(r"([\d,.]+)\s*([a-zA-Z]*)", write(count))
        unit = told[-1][1]
        for number, _ in told:
            value = float(number.replace(",", ""))
            assert value < 1000 or unit in ("", "bytes"), write(count)
            scale = {"k": 1e3, "kB": 1e3, "M": 1e6, "MB": 1e6, "G": 1e9, "GB": 1e9, "TB": 1e12}.get(unit, 1)
            assert value * scale == pytest.approx(count, rel=0.006 if count > 100_000 else 0.5)


@pytest.mark.parametrize(
    ("write", "count", "told"),
    [
        (brief_text, 9_999, "9,999"),
        (brief_text, 99_960, "100k"),
        (brief_text, 999_499, "999k"),
        (brief_text, 999_950, "1.00M"),
        (brief_text, 1_250_000, "1.25M"),
        (brief_text, 12_500_000, "12.5M"),
        (size_text, 0, "0\xa0B"),
        (size_text, 999, "999\xa0B"),
        (size_text, 1500, "1.5\xa0kB"),
        (size_text, 99_960_000, "100\xa0MB"),
        (size_text, 999_499_999, "999\xa0MB"),
        (size_text, 999_999_999, "1.0\xa0GB"),
        (size_text, 1_500_000_000_000, "1.5\xa0TB"),
        (words, 999_999_999, "1.0 GB"),
    ],
)
def test_at_the_borders_of_units(use: Use, write: Callable[[int], str], count: int, told: str) -> None:
    use("en")
    assert write(count) == told


def test_a_setting_has_its_unit_as_the_language_does(qtbot: QtBot, use: Use, theme: Theme) -> None:
    row = next(row for row in SETTINGS if row.unit == "%")
    told: list[str] = []
    for language in ("en", "de"):
        use(language)
        editor = make_editor(row, 110, theme)
        qtbot.addWidget(editor)
        assert isinstance(editor.control, QSpinBox)
        told.append(editor.control.text())
    assert told == ["110%", "110\xa0%"]


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


_PERCENT = re.compile(r"(\}|%L?n|\d)\s*%(?![Ln\d])")


def test_no_text_has_a_percent_sign_of_its_own() -> None:
    """It stands apart from its number or not as the language has it: `percent_text` knows."""
    for file in i18n_dir().glob("*.ts"):
        assert not [text for text in ElementTree.parse(file).getroot().itertext() if _PERCENT.search(text)]


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
