"""How well typed letters fit a title: for the palette and the list of pairs."""

from __future__ import annotations


def score(words: str, title: str) -> float | None:
    """None when some letter of `words` is not in `title` in order; else more is better. "" fits everything equally.

    Letters in a row, at the start of a word and near the front count more.
    """
    wanted, there = words.casefold().replace(" ", ""), title.casefold()
    if not wanted:
        return 0.0
    whole = there.find(words.casefold().strip())
    starts = whole == 0 or (whole > 0 and not there[whole - 1].isalnum())
    if starts or (whole > 0 and len(wanted) > 2):  # two letters in the middle of a word are chance
        return 1000.0 + (100.0 if starts else 0.0) - whole - 0.01 * len(title)
    points, at, before = 0.0, 0, -2
    for letter in wanted:
        found = _next(there, letter, at)
        if found < 0:
            return None
        if found == before + 1:
            points += 5.0
        elif found == 0 or not there[found - 1].isalnum():
            points += 3.0
        else:
            points -= 0.5
        before, at = found, found + 1
    return points - 0.01 * len(title)


def _next(there: str, letter: str, at: int) -> int:
    """Where the letter is next: best at a word's start, unless it follows on directly."""
    first = there.find(letter, at)
    if first <= at or first < 0:
        return first
    place = first
    while place >= 0:
        if not there[place - 1].isalnum():
            return place
        place = there.find(letter, place + 1)
    return first
