"""Logs that a power cut left with half a line are read, and go on."""

from __future__ import annotations

import json
from pathlib import Path

from slipstream.train.lines import append
from slipstream.train.picture import Moment, Picture
from slipstream.train.runs import read_log

CUT = '{"step": 20, "lo'


def test_half_a_line_is_skipped_and_the_next_one_is_whole(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    append(log, {"step": 10})
    with log.open("a") as file:
        file.write(CUT)
    append(log, {"step": 30})
    assert log.read_text().split("\n") == ['{"step": 10}', CUT, '{"step": 30}', ""]
    assert read_log(log) == ([{"step": 10}, {"step": 30}], log.stat().st_size)


def test_a_picture_goes_on_after_half_a_line(tmp_path: Path) -> None:
    def moment(step: int) -> Moment:
        return Moment(step, 2.0, 1.5, 1.4, (0.5, 0.25))

    path = tmp_path / "course.svg"
    Picture(path, "run").add(moment(10))
    kept = path.with_suffix(".jsonl")
    with kept.open("a") as file:
        file.write('{"step": 20, "agrees": [0.5}\n' + CUT)
    again = Picture(path, "run")
    again.add(moment(30))
    again.write()
    assert "step 30" in path.read_text()
    assert json.loads(kept.read_text().split("\n")[-2])["step"] == 30
