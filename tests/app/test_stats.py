"""The figures under an answer, where there is little room."""

from __future__ import annotations

from PySide6.QtCore import QRect
from pytestqt.qtbot import QtBot

from slipstream_app.setting import Detail
from slipstream_app.theme import Theme
from slipstream_app.widgets.panel import Words
from slipstream_app.widgets.stats import StatsStrip

TIMINGS = {
    "decode_tps": 49.2,
    "ttft_s": 0.08,
    "reused_tokens": 0,
    "prompt_tokens": 51,
    "prefill_tps": 886.0,
    "rounds": 214,
    "tokens_per_round": 3.0,
    "drafted": 642,
    "accepted": 428,
    "output_tokens": 645,
}


def test_every_figure_is_whole_in_as_many_lines_as_that_takes(qtbot: QtBot) -> None:
    theme = Theme()
    theme.set_zoom(150)
    strip = StatsStrip(theme)
    qtbot.addWidget(strip)
    strip.set_facts({"timings": TIMINGS, "mode": "dspark"}, Detail.EXPERT)
    heights = []
    for width in (2000, 420):
        strip.resize(width, strip.heightForWidth(width))
        strip.show()
        shown = [label for label in strip.findChildren(Words) if label.isVisible()]
        assert len(shown) == 7
        assert all(label.width() >= label.sizeHint().width() for label in shown)
        assert all(QRect(0, 0, width, strip.height()).contains(label.geometry()) for label in shown)
        heights.append(strip.height())
    assert heights[1] > heights[0]
