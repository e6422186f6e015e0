"""Whether two runs said the same. Where they part, either the choice was a numeric tie or somebody has a bug."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from slipstream.events import Margin

# Relative spacing of numbers just above 1.
_EPSILON = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
# How many steps of the format, at the size of the row's likeliest logits, rounding may move two of them apart in a run.
# Measured: float32 with OpenBLAS up to 1e-4 at logits of 20 (some 50 steps). Half formats round
# hidden states in every layer: of 30,400 pairs among the 20 likeliest tokens (built-in target, bfloat16 against
# float32), 99.9 % drifted apart by less than 3.9 steps, 5.7 at most.
_STEPS = {"float32": 512, "float16": 8, "bfloat16": 4}


class Verdict(StrEnum):
    IDENTICAL = "identical"
    TIE = "tie"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True)
class Comparison:
    verdict: Verdict
    position: int | None = None  # of the first token that differs, counted from the answer's first
    tokens: tuple[int | None, int | None] = (None, None)  # plain's and the other's there
    margins: tuple[Margin, Margin] | None = None  # how clear the choice was to each

    @property
    def sentence(self) -> str:
        match self.verdict:
            case Verdict.IDENTICAL:
                return "Identical"
            case Verdict.TIE:
                assert self.margins is not None
                plain, other = self.margins
                gaps = f"{plain.gap:.4g} and {other.gap:.4g}"
                edge = ", at the edge of top-k, top-p or min-p" if plain.at_edge or other.at_edge else ""
                return f"Numeric tie at token {self.position} (margins {gaps}{edge})"
            case Verdict.DIFFERENT:
                if self.margins is None:
                    return f"Different at token {self.position}: one answer ends there"
                gaps = f"{self.margins[0].gap:.4g} and {self.margins[1].gap:.4g}"
                return f"Different at token {self.position} (margins {gaps}): this is a bug, please report it"


def step_of(dtype: str, value: float) -> float:
    """The distance between neighbouring numbers of a format at `value`."""
    return _EPSILON[dtype] * 2.0 ** math.floor(math.log2(max(abs(value), 2.0**-14)))


def is_tie(one: Margin, other: Margin, dtype: str) -> bool:
    """Whether rounding alone can have decided which of two tokens each run chose.

    Each prefers its own, so the gaps together are how far the two logits drifted apart between the runs: at most what
    rounding moved them in the one and in the other.
    """
    most = 2 * _STEPS[dtype] * step_of(dtype, max(one.scale, other.scale))
    return one.at_edge or other.at_edge or one.gap + other.gap <= most


def first_difference(plain: Sequence[int], other: Sequence[int]) -> int | None:
    """Index of the first token that differs; the shorter length when one answer only ends earlier; None if equal."""
    for index, (one, two) in enumerate(zip(plain, other, strict=False)):
        if one != two:
            return index
    return None if len(plain) == len(other) else min(len(plain), len(other))


def compare(
    plain: Sequence[int], other: Sequence[int], margins: tuple[Margin, Margin] | None, dtype: str
) -> Comparison:
    """Judge two runs. `margins`: each one's at the first difference; None when an answer ends there."""
    position = first_difference(plain, other)
    if position is None:
        return Comparison(Verdict.IDENTICAL)
    tokens = tuple(ids[position] if position < len(ids) else None for ids in (plain, other))
    assert len(tokens) == 2
    if margins is None or None in tokens:
        return Comparison(Verdict.DIFFERENT, position, tokens, None)
    tied = is_tie(*margins, dtype)
    return Comparison(Verdict.TIE if tied else Verdict.DIFFERENT, position, tokens, margins)
