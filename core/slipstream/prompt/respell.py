"""Answers in a prompt, by the very tokens that the model sampled: tokenising their text may give others.

Models write what no tokeniser would: a word in two tokens where there is one. A prompt that is tokenised anew then
parts from what is kept of the last one, and is not what the model had before it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

REPLACEMENT = "\ufffd"  # what a decoder writes for bytes that are not yet a character


@dataclass(frozen=True, slots=True)
class Located:
    """A prompt as text and as ids, and the characters from which to which each of them goes."""

    text: str
    ids: Sequence[int]
    spans: Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Sampled:
    """An answer: its ids, and some text in it by which it is found in a prompt."""

    ids: tuple[int, ...]
    mark: str


def respell(prompt: Located, answers: Iterable[Sampled], spell: Callable[[Sequence[int]], str]) -> list[int]:
    """Ids of the same text, in which as much as possible of each answer is as it was sampled.

    `answers`: in the order in which they stand in the prompt. `spell`: the text of ids, special tokens included.
    """
    made: list[int] = []
    edges = _edges_of(prompt)
    taken = 0  # ids of the prompt that are in `made`, or replaced
    begin = 0  # the character where the search for the next answer begins
    for answer in answers:
        text, tokens_at = _edges(answer.ids, spell)
        if (found := _best_place(prompt.text, begin, text, answer.mark)) is None:
            continue
        place, low, high = found
        begin = high
        shared = [at for at in edges if low <= at <= high and at - place in tokens_at]
        if not shared:
            continue
        first, last = min(shared), max(shared)
        made += prompt.ids[taken : edges[first]]
        made += answer.ids[tokens_at[first - place] : tokens_at[last - place]]
        taken = edges[last]
    return made + list(prompt.ids[taken:])


def _best_place(prompt: str, begin: int, answer: str, mark: str) -> tuple[int, int, int] | None:
    """Where the answer would begin, and from which to which character the prompt is the same. None: nowhere.

    Where its mark stands several times, the place around which most is the same.
    """
    inside = answer.find(mark)
    if inside < 0 or not mark:
        return None
    found: tuple[int, int, int] | None = None
    at = prompt.find(mark, begin)
    while at >= 0:
        low = at - _common(prompt[max(begin, at - inside) : at][::-1], answer[:inside][::-1])
        high = at + _common(prompt[at : at + len(answer) - inside], answer[inside:])
        if found is None or high - low > found[2] - found[1]:
            found = (at - inside, low, high)
        at = prompt.find(mark, high)
    return found


def _common(first: str, second: str) -> int:
    """How many characters both begin with. By halves: the strings may be long, and differ late."""
    return bisect_left(range(1, min(len(first), len(second)) + 1), True, key=lambda n: first[:n] != second[:n])


def _edges_of(prompt: Located) -> dict[int, int]:
    """Characters at which one token ends and the next begins: how many tokens are before them."""
    edges = {0: 0, len(prompt.text): len(prompt.ids)}
    ends = 0
    for index, (start, end) in enumerate(prompt.spans):
        if start == ends and start:
            edges[start] = index
        ends = end
    return edges


def _edges(ids: Sequence[int], spell: Callable[[Sequence[int]], str]) -> tuple[str, dict[int, int]]:
    """The same for sampled ids, with their text. Each is spelled behind the one before it, as some look back."""
    pieces: list[str] = []
    edges = {0: 0}
    at = begin = 0  # characters and tokens up to the latest edge
    for count in range(1, len(ids) + 1):
        before = max(0, begin - 1)
        piece = spell(ids[before:count])[len(spell(ids[before:begin])) :]
        if piece.endswith(REPLACEMENT) and count < len(ids):
            continue
        pieces.append(piece)
        at, begin = at + len(piece), count
        edges[at] = count
    return "".join(pieces), edges
