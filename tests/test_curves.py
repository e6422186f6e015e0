"""Reading costs between, before and beyond the measured points."""

from __future__ import annotations

import pytest

from slipstream.curves import Curves, read

TABLE = {100: {1: 10.0, 8: 17.0}, 1100: {1: 20.0, 8: 37.0}}


@pytest.mark.parametrize(
    ("rows", "context", "expected"),
    [
        (1, 100, 10.0),
        (8, 1100, 37.0),
        (4, 100, 13.0),  # between two widths
        (1, 600, 15.0),  # between two contexts
        (4, 600, (13.0 + 20 + 3 * 17 / 7) / 2),
        (1, 0, 10.0),  # before the first
        (0, 100, 10.0),
        (15, 100, 24.0),  # beyond the last, on along the line
        (1, 2100, 30.0),
    ],
)
def test_a_place_in_a_table(rows: int, context: int, expected: float) -> None:
    assert read(TABLE, rows, context) == pytest.approx(expected)


def test_a_line_that_falls_does_not_fall_below_nothing() -> None:
    assert read({10: {1: 5.0}, 20: {1: 4.0}}, 1, 1000) == 0.0


def test_a_charts_points_are_those_measured_nearest() -> None:
    curves = Curves(TABLE, {"dspark": {100: {7: 3.0}}})
    assert curves.points() == [(1, 10.0), (8, 17.0)]
    assert curves.points(900) == [(1, 20.0), (8, 37.0)]
    assert Curves().points() == []
    assert curves.draft_ms("dspark", 3, 5000) == 3.0
    assert curves.draft_ms("dflash", 3, 5000) is None


@pytest.mark.parametrize(
    ("line", "knee"),
    [
        ({1: 10, 2: 10.2, 4: 10.6, 7: 11, 8: 16, 12: 26, 16: 36}, 6),  # cheap as far as six drafts
        ({1: 10, 2: 10.1, 3: 10.2, 5: 14, 9: 22}, 2),
        ({1: 10, 2: 12, 4: 16, 8: 24, 16: 40}, None),  # each row costs the same
        ({1: 10, 4: 10.5, 8: 11, 16: 11.5}, None),  # all of them are cheap
        ({1: 10, 8: 30}, None),  # two points are no curve
        ({}, None),
    ],
)
def test_the_knee_is_where_checking_becomes_dear(line: dict[int, float], knee: int | None) -> None:
    assert Curves({0: line} if line else {}).knee() == knee


def test_what_plain_decoding_uses_of_the_bandwidth() -> None:
    curves = Curves({0: {1: 20.0}}, bandwidth=100e9, weight_bytes=10**9)  # at best 10 ms
    assert curves.bandwidth_share() == pytest.approx(0.5)
    assert Curves({0: {1: 5.0}}, bandwidth=100e9, weight_bytes=10**9).bandwidth_share() == 1.0, "noise"
    assert Curves({0: {1: 20.0}}).bandwidth_share() is None
    assert Curves().bandwidth_share() is None
