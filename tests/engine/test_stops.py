from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from slipstream.engine.stops import StopStrings


def run(stops: Sequence[str], parts: Sequence[str]) -> tuple[list[str], str | None]:
    """What is shown, piece by piece and at the end, and which stop string matched."""
    strings = StopStrings(stops)
    shown = [strings.feed(part) for part in parts]
    shown.append(strings.finish())
    return shown, strings.matched


def splits(text: str) -> list[list[str]]:
    out: list[list[str]] = []
    for cuts in itertools.product((False, True), repeat=len(text) - 1):
        at = [0, *(n + 1 for n, cut in enumerate(cuts) if cut), len(text)]
        out.append([text[one:two] for one, two in itertools.pairwise(at)])
    return out


def test_p05_over_token_borders() -> None:
    shown, matched = run(["beta gamma"], [" alpha", " be", "ta", " gam", "ma delta"])
    assert "".join(shown) == " alpha "
    assert matched == "beta gamma"


def test_p05_the_held_tail_is_released_at_the_length_limit() -> None:
    shown, matched = run(["beta gamma"], [" alpha", " be"])
    assert shown == [" alpha", " ", "be"]
    assert matched is None


@pytest.mark.parametrize(
    ("stops", "text", "expected", "matched"),
    [
        (["gamma"], "alpha gamma x", "alpha ", "gamma"),
        (["aab"], "aaaabx", "aa", "aab"),
        (["abab"], "abaabab!", "aba", "abab"),
        (["ab", "b"], "xxab", "xx", "ab"),  # they end together: the longer
        (["abc", "b"], "xabcd", "xa", "b"),  # the one that ends first
        (["END", "ENDING"], "an ENDING", "an ", "END"),
        (["\n\n", "###"], "one\n##\n\n", "one\n##", "\n\n"),
        (["nope"], "no nop nopq", "no nop nopq", None),
        (["é!"], "café! ok", "caf", "é!"),
        (["a"], "a", "", "a"),
    ],
)
def test_every_split_shows_the_same(stops: list[str], text: str, expected: str, matched: str | None) -> None:
    for order in itertools.permutations(stops):
        for parts in splits(text):
            shown, found = run(order, parts)
            assert ("".join(shown), found) == (expected, matched), (order, parts)


def test_nothing_of_a_stop_string_is_ever_shown() -> None:
    for parts in splits("say beta gam"):
        strings = StopStrings(["beta gamma"])
        shown = ""
        for part in parts:
            shown += strings.feed(part)
            assert shown == "say beta gam"[: len(shown)]
            assert len(shown) <= len("say ")


def test_without_stop_strings_text_passes_at_once() -> None:
    assert run([], ["a", "b"]) == (["a", "b", ""], None)


def test_after_a_match_nothing_comes() -> None:
    assert run(["x"], ["ax", "b", "x"])[0] == ["a", "", "", ""]
