from __future__ import annotations

import math

import pytest

from slipstream.events import Margin
from slipstream.measure.verdict import Comparison, Verdict, compare, first_difference, is_tie, step_of

PLAIN = [4, 5, 6, 7]
OTHER = [4, 5, 9, 7]


def judge(
    best: float, second: float, dtype: str = "bfloat16", *, other: tuple[float, float] | None = None
) -> Comparison:
    """Two runs that part at token 2, where the two best logits were these."""
    best_other, second_other = other or (best, second)
    margins = (Margin(best, best - second, False), Margin(best_other, best_other - second_other, False))
    return compare(PLAIN, OTHER, margins, dtype)


def test_p02_a_equal_logits_are_a_tie() -> None:
    comparison = judge(28.25, 28.25)
    assert comparison.verdict is Verdict.TIE
    assert comparison.position == 2
    assert comparison.tokens == (6, 9)
    assert comparison.sentence == "Numeric tie at token 2 (margins 0 and 0)"


def test_p02_b_one_step_of_bfloat16_is_a_tie() -> None:
    assert step_of("bfloat16", 24.25) == 0.125
    comparison = judge(24.25, 24.125)
    assert comparison.verdict is Verdict.TIE
    assert comparison.sentence == "Numeric tie at token 2 (margins 0.125 and 0.125)"


def test_p02_c_a_clear_choice_is_a_different_output() -> None:
    comparison = judge(31.0, 26.9)
    assert comparison.verdict is Verdict.DIFFERENT
    assert comparison.sentence == "Different at token 2 (margins 4.1 and 4.1): this is a bug, please report it"


def test_p02_another_length_without_another_id_is_different() -> None:
    for one, two in ((PLAIN, PLAIN[:3]), (PLAIN[:3], PLAIN), ([], [1])):
        comparison = compare(one, two, None, "bfloat16")
        assert comparison.verdict is Verdict.DIFFERENT
        assert comparison.position == min(len(one), len(two))
        assert "one answer ends there" in comparison.sentence
    # Nor do margins excuse it.
    tie = Margin(1.0, 0.0, False)
    assert compare(PLAIN, PLAIN[:3], (tie, tie), "bfloat16").verdict is Verdict.DIFFERENT


def test_the_same_ids_are_identical() -> None:
    assert compare(PLAIN, list(PLAIN), None, "float32") == Comparison(Verdict.IDENTICAL)
    assert compare([], [], None, "float32").sentence == "Identical"


def test_both_runs_must_have_been_close() -> None:
    """A run that was sure of its own choice cannot have been turned by rounding."""
    assert judge(24.25, 24.25, other=(24.25, 20.0)).verdict is Verdict.DIFFERENT
    assert judge(24.25, 20.0, other=(24.25, 24.25)).verdict is Verdict.DIFFERENT


def test_the_edge_of_truncation_is_a_tie_and_says_so() -> None:
    margins = (Margin(20.0, 3.0, True), Margin(20.0, 2.0, False))
    comparison = compare(PLAIN, OTHER, margins, "float32")
    assert comparison.verdict is Verdict.TIE
    assert comparison.sentence.endswith("at the edge of top-k, top-p or min-p)")


@pytest.mark.parametrize(
    ("dtype", "gap", "tied"),
    [
        ("float32", 1e-4, True),
        ("float32", 0.01, False),
        ("float16", 0.05, True),
        ("float16", 0.5, False),
        ("bfloat16", 0.5, True),
        ("bfloat16", 0.6, False),
    ],
)
def test_what_rounding_can_do_depends_on_the_format(dtype: str, gap: float, tied: bool) -> None:
    margin = Margin(20.0, gap, False)
    assert is_tie(margin, margin, dtype) is tied


@pytest.mark.parametrize(
    ("scale", "gaps", "tied"),
    [
        # Measured on an H200, as margins of one answer run plainly and with drafts: 7.0 and 7.5 steps together.
        (7.562, (0.008716, 0.210034), True),
        (4.906, (0.011904, 0.222471), True),
        (7.562, (0.0087, 0.26), False),
        (7.562, (0.13, 0.13), False),
    ],
)
def test_how_far_two_logits_drifted_is_both_gaps_together(scale: float, gaps: tuple[float, float], tied: bool) -> None:
    one, other = (Margin(scale, gap, False) for gap in gaps)
    assert is_tie(one, other, "bfloat16") is tied
    assert is_tie(other, one, "bfloat16") is tied


@pytest.mark.parametrize("logit", [0.0, -28.25, 1e-30, 6e4])
def test_any_logit_has_a_step(logit: float) -> None:
    assert 0 < step_of("bfloat16", logit) < math.inf


def test_a_gap_that_is_no_number_is_no_tie() -> None:
    clear = Margin(20.0, 0.0, False)
    assert not is_tie(clear, Margin(20.0, math.nan, False), "float32")
    assert not is_tie(clear, Margin(20.0, math.inf, False), "float32")


def test_the_first_difference() -> None:
    assert first_difference([1, 2], [1, 2]) is None
    assert first_difference([1, 2], [1, 3]) == 1
    assert first_difference([1, 2, 3], [1, 2]) == 2
