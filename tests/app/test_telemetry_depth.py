"""The cost chart's sentence about how far it pays to draft, and the memory bar's parts."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter
from pytestqt.qtbot import QtBot

from app.conftest import FAKE
from fakes import FakeEngine
from slipstream.curves import Curves
from slipstream.engine.costs import Costs, Depth
from slipstream.engine.held import Held
from slipstream_app.bridge.session import Session
from slipstream_app.models.telemetry import Figures
from slipstream_app.screens.base import AppContext
from slipstream_app.screens.telemetry import TelemetryScreen
from slipstream_app.theme import Theme
from slipstream_app.widgets.charts import RoundStrip
from slipstream_app.widgets.flowed import flowed
from slipstream_app.widgets.memory_panel import MemoryPanel
from slipstream_app.widgets.plots import CostChart
from slipstream_app.widgets.speed_verdict import SpeedVerdict

GB = 10**9
BENT = Curves({0: {1: 10, 2: 10.2, 4: 10.6, 7: 11, 8: 16, 12: 26, 16: 36}}, {"dspark": {0: {7: 2.0}}})


@dataclass
class Counting(FakeEngine):
    """Says what a real engine says of costs and memory."""

    costs: Costs = field(default_factory=lambda: Costs(curves=BENT, caps={"dspark": 5}))
    ledger: object = None


@dataclass
class Ledger:
    now: Held


@pytest.fixture
def engine() -> Counting:
    return Counting(ledger=Ledger(Held(16 * GB, 2 * GB, GB // 2, 19 * GB, 9 * GB)))


@pytest.mark.parametrize(
    ("depth", "words"),
    [
        (Depth(6, 16, {"dspark": 5}), "Knee at 6, cap now 5"),
        (Depth(None, 16, {"dspark": 7}), "No knee up to 16, cap now 7"),
        (Depth(None, 0, {"mtp": 2}), "Knee unknown before calibration, cap now 2"),
        (Depth(6, 16, {"dspark": 0}), "Knee at 6, DSpark is parked: plain decoding is faster"),
        (Depth(6, 16, {"dspark": 5, "mtp": 2}), "Knee at 6, cap now 5 for DSpark, cap now 2 for MTP"),
        (Depth(6, 16), "Knee at 6"),
        (Depth(), ""),
    ],
)
def test_the_sentence(qtbot: QtBot, theme: Theme, depth: Depth, words: str) -> None:
    chart = CostChart(theme)
    qtbot.addWidget(chart)
    chart.show_points({"plain": [(0, 10.0)]}, depth)
    assert chart.reach.text() == words
    assert chart.reach.isHidden() == (not words)
    assert words in chart.picture.accessibleDescription()


def test_the_knee_is_drawn_where_it_is(qtbot: QtBot, theme: Theme) -> None:
    chart = CostChart(theme)
    qtbot.addWidget(chart)
    chart.show()
    qtbot.waitUntil(lambda: chart.plot is not None, timeout=60_000)
    assert not chart._knee.isVisible()
    chart.show_points({"plain": [(0, 10.0), (15, 36.0)]}, Depth(6, 16))
    assert chart._knee.isVisible()
    assert chart._knee.value() == 6


def test_the_screen_says_what_the_loaded_pair_knows(qtbot: QtBot, ready: AppContext) -> None:
    ready.settings.set("general/detail", "expert")
    screen = TelemetryScreen(ready)
    qtbot.addWidget(screen)
    screen.show()
    screen.refresh()
    assert screen.costs.reach.text() == "Knee at 6, cap now 5"
    ready.session.unload()
    qtbot.waitUntil(lambda: ready.session.info is None, timeout=5000)
    screen.refresh()
    assert screen.costs.reach.text() == ""


def parts(panel: MemoryPanel) -> dict[str, float]:
    return {part.name: part.bytes / GB for part in panel.bar.parts}


def test_the_bar_names_weights_drafter_kv_cache_and_what_is_free(
    qtbot: QtBot, theme: Theme, session: Session, engine: Counting
) -> None:
    panel = MemoryPanel(theme, session)
    qtbot.addWidget(panel)
    panel.refresh()
    assert "KV of running answers" not in parts(panel)
    assert parts(panel)["free"] > 0
    session.load(FAKE)
    qtbot.waitUntil(lambda: session.info is not None, timeout=5000)
    panel.refresh()
    assert parts(panel) == {
        "weights": 16,
        "drafter": 2,
        "KV of running answers": 0.5,
        "cache of prompts": 0,
        "working memory": 0.5,
        "free": 9,
    }
    assert "KV of running answers 500\xa0MB" in panel.bar.accessibleDescription()
    assert "free 9.0\xa0GB" in panel.bar.accessibleDescription()
    engine.ledger = Ledger(Held(16 * GB, 2 * GB, 0, 18 * GB, 10 * GB))
    session._life.worker.ledger = engine.ledger  # pyright: ignore[reportAttributeAccessIssue]
    panel.refresh()
    assert parts(panel)["KV of running answers"] == 0


@pytest.mark.parametrize(
    ("ms", "words"),
    [(12.5, "Bandwidth-bound: plain decoding uses 80"), (40.0, "Not bandwidth-bound: plain decoding uses 25")],
)
def test_the_verdict_names_what_decoding_waits_for(qtbot: QtBot, theme: Theme, ms: float, words: str) -> None:
    verdict = SpeedVerdict(theme)
    qtbot.addWidget(verdict)
    curves = Curves({0: {1: ms}}, bandwidth=100e9, weight_bytes=10**9)
    verdict.judge(Figures(), None, curves)
    rest = "% of this machine's measured memory bandwidth."
    assert verdict.words.text() == f"Nothing to judge yet. {words}{rest}"
    verdict.judge(Figures(), None, Curves({0: {1: ms}}))
    assert verdict.words.text() == "Nothing to judge yet.", "not measured, not said"


def test_the_letters_of_the_rounds_are_told_whole_in_a_narrow_strip(qtbot: QtBot, theme: Theme) -> None:
    strip = RoundStrip(theme)
    qtbot.addWidget(strip)
    strip.show_rounds([], {"D": 100, "N": 100, "M": 100})

    def inked(width: int) -> int:
        """Pixels that are not the ground's."""
        image = QImage(width, 160, QImage.Format.Format_RGB32)
        image.fill(theme.color("surface"))
        ground = image.pixel(0, 0)
        painter = QPainter(image)
        strip.paint(painter, QRectF(0, 0, width, 160))
        painter.end()
        return sum(image.pixel(x, y) != ground for x in range(width) for y in range(160))

    assert inked(200) == inked(900) > 0


@pytest.mark.parametrize(
    ("room", "places"),
    [(100, [(0, 0), (50, 0), (0, 1)]), (500, [(0, 0), (50, 0), (100, 0)]), (30, [(0, 0), (0, 1), (0, 2)])],
)
def test_entries_of_a_legend_take_as_many_lines_as_they_need(room: int, places: list[tuple[int, int]]) -> None:
    assert flowed((40, 40, 40), room, 10) == places
