"""The picture of a run: what it shows, that it goes on, and that nobody sees half of one."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from slipstream.errors import InvalidRequest
from slipstream.train.picture import POINTS, Moment, Picture, drawn

SVG = "{http://www.w3.org/2000/svg}"


def moment(step: int, loss: float = 2.0) -> Moment:
    return Moment(step, loss, 1.5, 1.4, (0.5, 0.25))


def lines(picture: str) -> list[list[tuple[float, float]]]:
    found = ElementTree.fromstring(picture).iter(f"{SVG}polyline")
    pairs = [[pair.split(",") for pair in line.attrib["points"].split()] for line in found]
    return [[(float(x), float(y)) for x, y in line] for line in pairs]


def test_lines_go_where_the_figures_say() -> None:
    loss, chance, same, first, second = lines(drawn("a <b>", [moment(1, 4.0), moment(11, 3.0), moment(21, 2.0)]))
    assert [x for x, _ in loss] == sorted(x for x, _ in loss)
    assert loss[0][1] < loss[1][1] < loss[2][1]  # y grows downwards: the loss falls
    assert loss[1][1] - loss[0][1] == pytest.approx(loss[2][1] - loss[1][1], abs=0.2)
    assert same[0][1] < chance[0][1]
    assert first[0][1] < second[0][1]


def test_long_runs_are_thinned_and_end_at_the_last_step() -> None:
    moments = [moment(step, 5 - step / 1000) for step in range(1, 3001)]
    picture = drawn("long", moments)
    assert all(len(line) <= POINTS + 1 for line in lines(picture))
    assert "step 3,000" in picture


def test_a_run_that_goes_on_keeps_its_course(tmp_path: Path) -> None:
    path = tmp_path / "run" / "course.svg"
    one = Picture(path, "run")
    one.write()
    assert not path.exists()  # nothing to show yet
    for step in (1, 20, 40):
        one.add(moment(step))
    one.write()
    two = Picture(path, "run")
    two.add(moment(30))  # from the checkpoint at 20: 40 is made again
    two.write()
    assert "step 30" in path.read_text()
    three = Picture(path, "run")
    three.add(moment(40))
    three.write()
    assert [len(line) for line in lines(path.read_text())] == [4] * 5
    assert {each.name for each in path.parent.iterdir()} == {"course.svg", "course.jsonl"}


def test_other_kinds_of_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"must be an \.svg file"):
        Picture(tmp_path / "a.png", "run")
