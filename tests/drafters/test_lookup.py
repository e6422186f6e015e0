from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx
import pytest

from slipstream.drafters.lookup import BASE_DRAFT, MAX_DRAFT, REPROBE_ROUNDS, Lookup, LookupState
from slipstream.models.host import ints


def nobody(logits: mx.array, slot: int) -> mx.array:
    raise AssertionError("a copy is not drawn")


def after(text: Sequence[int], lookup: Lookup | None = None) -> tuple[Lookup, LookupState, int]:
    """A state that has seen all of a text but its last token."""
    lookup = lookup or Lookup()
    state = lookup.begin()
    lookup.observe(state, text[:-1], {})
    assert state.length == len(text) - 1
    return lookup, state, text[-1]


def proposal(text: Sequence[int], limit: int = 99, lookup: Lookup | None = None) -> list[int]:
    lookup, state, last = after(text, lookup)
    return ints(lookup.propose(state, last, limit, nobody).tokens)


def test_what_came_next_then_is_proposed() -> None:
    assert proposal([1, 2, 3, 40, 41, 42, 9, 1, 2, 3]) == [40, 41, 42, 9, 1, 2]


def test_nothing_repeats_nothing_is_proposed() -> None:
    assert proposal([1, 2, 3, 4, 5, 6]) == []
    assert proposal([1]) == []
    assert proposal([1, 2]) == []


def test_two_tokens_are_too_few_for_a_match() -> None:
    assert proposal([2, 3, 40, 41, 9, 2, 3]) == []
    assert proposal([2, 3, 40, 41, 9, 2, 3], lookup=Lookup(2, 4))[:3] == [40, 41, 9]


def test_the_longer_match_wins_over_the_later_one() -> None:
    text = [7, 1, 2, 3, 50, 51, 8, 1, 2, 3, 60, 61, 7, 1, 2, 3]
    assert proposal(text)[:2] == [50, 51]


def test_of_equal_matches_the_latest_wins() -> None:
    assert proposal([1, 2, 3, 50, 8, 1, 2, 3, 60, 9, 1, 2, 3])[:1] == [60]


def test_no_more_than_the_limit() -> None:
    assert proposal([1, 2, 3, 40, 41, 42, 9, 1, 2, 3], limit=2) == [40, 41]
    assert proposal([1, 2, 3, 40, 41, 42, 9, 1, 2, 3], limit=0) == []


def test_a_run_of_one_token_goes_on() -> None:
    """The latest occurrence overlaps what is to be continued; the one before it has something behind it."""
    assert proposal([7, 5, 5, 5, 5]) == [5] * BASE_DRAFT
    assert proposal([5] * 40) == [5] * MAX_DRAFT
    assert proposal([5] * 40, limit=3) == [5] * 3


def test_overlapping_repeats_of_a_period() -> None:
    text = [1, 2, 3, 1, 2, 3, 1]
    assert proposal(text) == [2, 3, 1, 2, 3, 1]
    long = ([1, 2, 3] * 20)[:50]
    assert proposal(long) == ([1, 2, 3] * 40)[50 : 50 + MAX_DRAFT]


@pytest.mark.parametrize(
    ("match", "length"), [(4, BASE_DRAFT), (7, BASE_DRAFT), (8, 16), (11, 22), (16, MAX_DRAFT), (40, MAX_DRAFT)]
)
def test_the_longer_the_match_the_longer_the_proposal(match: int, length: int) -> None:
    copied = list(range(100, 100 + match))
    text = [1, *copied, *range(200, 250), 2, *copied]
    assert proposal(text) == list(range(200, 250))[:length]


def long_state() -> tuple[Lookup, LookupState, int]:
    copied = list(range(100, 120))
    return after([1, *copied, *range(200, 260), 2, *copied])


def reject(lookup: Lookup, state: LookupState, last: int, number: int) -> int:
    """Propose in vain: the target says something new, and some time later the copied text again."""
    count = len(lookup.propose(state, last, 99, nobody))
    lookup.observe(state, [last], {})
    lookup.observe(state, [*range(1000 * number, 1000 * number + 60), *range(100, 119)], {})
    return count


def test_two_long_failures_shorten_the_proposals_until_a_later_probe() -> None:
    lookup, state, last = long_state()
    lengths = [reject(lookup, state, last, n + 1) for n in range(2 + 2 * REPROBE_ROUNDS)]
    assert lengths[:2] == [MAX_DRAFT, MAX_DRAFT]
    probes = [round_ for round_, length in enumerate(lengths) if length > BASE_DRAFT]
    assert lengths[2 : 2 + REPROBE_ROUNDS - 1] == [BASE_DRAFT] * (REPROBE_ROUNDS - 1)
    assert probes == [0, 1, 1 + REPROBE_ROUNDS, 1 + 2 * REPROBE_ROUNDS]


def test_a_long_success_opens_the_gate_again() -> None:
    lookup, state, last = long_state()
    for number in (1, 2):
        reject(lookup, state, last, number)
    assert state.long_failures == 2
    state.rounds_since_long = REPROBE_ROUNDS - 1
    tokens = ints(lookup.propose(state, last, 99, nobody).tokens)
    assert len(tokens) == MAX_DRAFT
    lookup.observe(state, [last, *tokens], {})  # every draft was right
    assert state.long_failures == 0


def test_a_proposal_cut_by_the_limit_is_no_long_failure() -> None:
    lookup, state, last = long_state()
    assert len(lookup.propose(state, last, 3, nobody)) == 3
    lookup.observe(state, [last], {})
    assert state.long_failures == 0


def test_states_are_apart() -> None:
    lookup, _, last = after([1, 2, 3, 40, 1, 2, 3])
    fresh = lookup.begin()
    assert len(lookup.propose(fresh, last, 9, nobody)) == 0


def test_it_costs_the_same_late_in_a_long_text() -> None:
    """Every token may match: no proposal may search the text."""
    lookup, state, last = after([1] * 20_000)
    for _ in range(200):
        lookup.propose(state, last, 9, nobody)
        lookup.observe(state, [1], {})
    assert len(state.ends) <= 2
