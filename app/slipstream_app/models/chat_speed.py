"""Why an answer was as fast as it was: who proposed each token, and the one cause that matters most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from slipstream_app.messages import Json


class Source(StrEnum):
    """Who a token comes from, by its letter."""

    DRAFTER = "D"
    NGRAM = "N"
    GRAMMAR = "G"
    MODEL = "M"


_BY_NAME: Mapping[str, Source] = {
    "dspark": Source.DRAFTER,
    "dflash": Source.DRAFTER,
    "mtp": Source.DRAFTER,
    "lookup": Source.NGRAM,
    "grammar": Source.GRAMMAR,
}

FEW_TOKENS = 16  # below, chance decides
MUCH_LOOKUP = 0.35  # share of tokens
LOW_ACCEPTANCE = 0.4
PARKED_ROUNDS = 8  # in a row without a draft, at the end


class Cause(StrEnum):
    SHORT = "short"
    CHOSEN_PLAIN = "chosen_plain"
    NO_DRAFTER = "no_drafter"
    PARKED = "parked"  # at `position`, the planner stopped drafting
    REPEATS = "repeats"  # the text repeats itself: lookups
    FORCED = "forced"  # the schema left one way to go on
    HARD = "hard"  # few drafts were right
    EASY = "easy"  # most drafts were right


@dataclass(frozen=True, slots=True)
class Speed:
    sources: tuple[Source, ...]  # of each token
    rounds: int
    tokens_per_round: float
    drafted: int
    accepted: int
    counts: Mapping[Source, int]
    cause: Cause
    position: int = 0  # of PARKED, in tokens of the context

    @property
    def acceptance(self) -> float:
        """Share of drafted tokens that were kept."""
        return self.accepted / self.drafted if self.drafted else 0.0


def explain(trace: Json, mode: str, drafters: Sequence[str]) -> Speed:
    """From a stored trace. `mode` is what was asked for, `drafters` what was loaded."""
    steps: list[Sequence[Any]] = [step for segment in trace["segments"] for step in segment["steps"]]
    sources: list[Source] = []
    for source, _, accepted, tokens in steps:
        kept = min(accepted, tokens)
        sources += [_BY_NAME.get(source, Source.MODEL)] * kept + [Source.MODEL] * (tokens - kept)
    rounds = [step for step in steps if step[0]]
    drafted, accepted = sum(step[1] for step in rounds), sum(step[2] for step in rounds)
    after_first = sum(step[3] for step in rounds)
    counts = {source: sources.count(source) for source in Source}
    parked = _parked_from(rounds)
    drafted_until = len(sources) - sum(step[3] for step in rounds[parked:])
    position = trace["segments"][0]["prompt_tokens"] + drafted_until if parked else 0
    if len(sources) < FEW_TOKENS:
        cause = Cause.SHORT
    elif mode == "baseline":
        cause = Cause.CHOSEN_PLAIN
    elif parked:
        cause = Cause.PARKED
    elif counts[Source.GRAMMAR] > MUCH_LOOKUP * len(sources):
        cause = Cause.FORCED
    elif counts[Source.NGRAM] > MUCH_LOOKUP * len(sources):
        cause = Cause.REPEATS
    elif not drafters:
        cause = Cause.NO_DRAFTER
    else:
        cause = Cause.HARD if accepted < LOW_ACCEPTANCE * drafted else Cause.EASY
    per_round = after_first / len(rounds) if rounds else 0.0
    return Speed(tuple(sources), len(rounds), per_round, drafted, accepted, counts, cause, position)


def _parked_from(rounds: Sequence[Sequence[Any]]) -> int:
    """The round from which on nothing was drafted although something was before; 0 when there is none."""
    tail = 0
    for step in reversed(rounds):
        if step[1]:
            break
        tail += 1
    return len(rounds) - tail if PARKED_ROUNDS <= tail < len(rounds) else 0
