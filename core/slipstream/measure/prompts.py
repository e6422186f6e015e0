"""Questions that races and benchmarks ask when nobody gives others."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Question:
    kind: str  # code, maths or chat
    text: str


DEFAULT = (
    Question("code", "Write a Python function that checks whether a string is a palindrome, with a docstring."),
    Question("maths", "A train travels 60 km in 45 minutes. What is its speed in km per hour? Reason step by step."),
    Question("chat", "Give me three tips for sleeping better, one sentence each."),
)

# Beside those above, where several answers are wanted at the same time.
MORE = (
    Question("code", "Write a Python class for a stack with push, pop and peek, and a short example of its use."),
    Question("maths", "A shop sells pens at 3 for 4 euros. How much do 21 pens cost? Reason step by step."),
    Question("chat", "Explain to a child in a few sentences why the sky is blue."),
    Question("code", "Write an SQL query that lists the five customers with the most orders, and explain it."),
    Question("chat", "Suggest a simple dinner for four people with rice, and list what to buy."),
)

_WHO = (
    "The baker",
    "A sailor",
    "My neighbour",
    "The clerk",
    "Their cousin",
    "An engineer",
    "The gardener",
    "A teacher",
)
_DID = ("bought", "mended", "sold", "painted", "borrowed", "counted", "found", "forgot", "carried", "described")
_KIND = ("blue", "wooden", "heavy", "old", "small", "round", "quiet", "broken", "narrow", "bright")
_WHAT = ("lanterns", "ladders", "baskets", "clocks", "maps", "kettles", "bridges", "letters", "boats", "coats")
_WHERE = ("by the harbour", "in the attic", "near the mill", "at the station", "behind the school", "under the stairs")


def notes(seed: int = 0) -> Iterator[str]:
    """Sentences without end to fill a context with: plain English that seldom repeats itself."""
    chance = random.Random(seed)
    for number in range(1, 10**9):
        words = (chance.choice(_WHO), chance.choice(_DID), str(chance.randrange(2, 90)), chance.choice(_KIND))
        yield f"Note {number}: {' '.join(words)} {chance.choice(_WHAT)} {chance.choice(_WHERE)}."
