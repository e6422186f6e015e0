"""Questions that races and benchmarks ask when nobody gives others."""

from __future__ import annotations

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
