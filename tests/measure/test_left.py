"""How long a race may still take."""

from __future__ import annotations

import pytest

from slipstream.events import Timings
from slipstream.measure.left import TimeLeft, words
from slipstream.types import Mode


def run(began_s: float, took_s: float) -> Timings:
    return Timings(began_s, began_s, began_s + 0.1, began_s + took_s, 10, 0, 20, 5)


def test_nothing_is_guessed_before_a_run_has_ended() -> None:
    assert TimeLeft({Mode.BASELINE: 3}).seconds(100.0) is None


def test_each_arm_goes_by_its_own_runs() -> None:
    left = TimeLeft({Mode.BASELINE: 3, Mode.DSPARK: 3})
    left.note(Mode.BASELINE, run(0.0, 10.0))
    assert left.seconds(10.0) == pytest.approx(2 * 10 + 3 * 10)  # of an arm that has not run, as of the others
    left.note(Mode.DSPARK, run(10.0, 4.0))
    assert left.seconds(14.0) == pytest.approx(2 * 10 + 2 * 4)
    assert left.seconds(17.0) == pytest.approx(25)  # the run under way has had its part
    left.note(Mode.DSPARK, run(14.0, 6.0))
    assert left.seconds(20.0) == pytest.approx(2 * 10 + 5)
    assert left.seconds(1000.0) == 0


def test_a_run_that_was_repeated_is_not_subtracted_twice() -> None:
    left = TimeLeft({Mode.BASELINE: 1})
    for began_s in (0.0, 5.0):
        left.note(Mode.BASELINE, run(began_s, 5.0))
    assert left.seconds(10.0) == 0


@pytest.mark.parametrize(("seconds", "said"), [(0.0, "5 s"), (42.0, "40 s"), (120.0, "2 min"), (6000.0, "1.7 h")])
def test_it_is_said_in_round_numbers(seconds: float, said: str) -> None:
    assert words(seconds) == said
