from __future__ import annotations

import pytest

from bench.table import Row, Run, Spread, at, bound, first_difference, markdown, rows


def run(arm: str, trial: int, ids: list[int], seconds: float, *, rounds: int = 0, prompt: int = 0) -> Run:
    widths = {"4": rounds} if rounds else {}
    return Run(arm, trial, prompt, "code", ids, 1.0, 1.0 + seconds, rounds or len(ids) - 1, widths, rounds)


def test_first_difference_counts_a_missing_tail() -> None:
    assert first_difference([1, 2, 3], [1, 2, 3]) is None
    assert first_difference([1, 2, 3], [1, 9, 3]) == 1
    assert first_difference([1, 2, 3], [1, 2]) == 2


def test_ratios_are_taken_within_a_trial_and_the_fastest_peer_is_the_measure() -> None:
    ids = [1, 2, 3, 4, 5]
    runs = [
        *(run("plain", trial, ids, seconds) for trial, seconds in enumerate((4.0, 8.0))),
        *(run("peer slow", trial, ids, seconds) for trial, seconds in enumerate((4.0, 8.0))),
        *(run("peer fast", trial, ids, seconds) for trial, seconds in enumerate((2.0, 4.0))),
        *(run("ours", trial, ids, seconds, rounds=2) for trial, seconds in enumerate((1.0, 2.0))),
    ]
    made = {row.arm: row for row in rows(runs, "plain", ["peer slow", "peer fast", "peer absent"])}
    assert made["ours"].tps == Spread(3.0, 2.0, 4.0)
    assert made["ours"].over_plain == Spread(4.0, 4.0, 4.0)
    assert made["ours"].over_peer == Spread(2.0, 2.0, 2.0)
    assert made["ours"].tokens_per_round == 2.0
    assert made["plain"].over_plain.median == 1.0


def test_answers_that_part_from_plain_are_counted_and_placed() -> None:
    runs = [run("plain", 0, [1, 2, 3], 1.0), run("ours", 0, [1, 2, 4], 1.0)]
    made = rows(runs, "plain", [])[1]
    assert (made.identical, made.answers, made.differences) == (0, 1, [(0, 2)])
    assert made.over_peer is None
    assert "0/1; prompt 0 at 2" in markdown([made], [], None)


def test_bound_prices_every_round_at_its_own_width() -> None:
    row = Row("ours", Spread(150.0, 150.0, 150.0), Spread(1, 1, 1), None, {}, 3.0, 1, 1, [])
    runs = [
        Run("ours", 0, 0, "code", [0] * 7, 0.0, 1.0, 2, {"3": 1, "5": 1}, 1),
        run("other", 0, [1, 2], 1.0),
    ]
    made = bound(row, runs, {"1": 8.0, "3": 10.0, "5": 14.0}, draft_ms=6.0)
    assert (made.width, made.target_ms, made.draft_ms) == (4.0, 12.0, 3.0)
    assert made.bound_tps == pytest.approx(200.0)  # 3 tokens in 12 + 3 ms
    assert made.bound_over_plain == pytest.approx(1.6)  # × 8 ms
    assert made.reached == pytest.approx(0.75)


def test_curve_is_read_between_its_points() -> None:
    curve = {1: 4.0, 8: 6.0, 16: 10.0}
    assert [at(curve, width) for width in (1, 8, 12, 40)] == [4.0, 6.0, 8.0, 10.0]
