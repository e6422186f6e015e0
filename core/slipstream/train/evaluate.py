"""What a drafter is worth in use: the engine's own rounds, by kind of question, beside lookup and plain decoding.

And whether its confidences come true.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from slipstream.drafters.protocol import Drafter
from slipstream.engine.planner import Drafters, plan
from slipstream.engine.round import Decoding
from slipstream.models.target import Target
from slipstream.models.tokeniser import Tokeniser
from slipstream.train.calibrate import calibration_error
from slipstream.train.questions import Given
from slipstream.types import Chat, Mode, Options

PREFILL = 512
WARMING = 12  # tokens
Promise = tuple[tuple[float, ...], int]  # of a round: confidence of each draft, and how many drafts were kept


@dataclass(frozen=True, slots=True)
class Use:
    """Answers to questions of one kind in one mode. Tokens are those after the first of each answer."""

    kind: str
    mode: Mode
    temperature: float
    tokens: int
    rounds: int
    seconds: float  # of the rounds; prompts are not counted
    promises: tuple[Promise, ...] = ()  # of each round of a drafter that says how sure it is

    @property
    def per_round(self) -> float:
        return self.tokens / max(self.rounds, 1)

    @property
    def per_second(self) -> float:
        return self.tokens / max(self.seconds, 1e-9)


def evaluate(
    target: Target,
    tokeniser: Tokeniser,
    drafters: Mapping[Mode, Drafter],
    given: Sequence[Given],
    *,
    modes: Sequence[Mode],
    temperatures: Sequence[float] = (0.0, 1.0),
    answer: int = 160,
    say: Callable[[Use], None] = lambda _: None,
) -> list[Use]:
    """Answer every question in every mode at every temperature, with the same seed. One `Use` for each answer."""
    out: list[Use] = []
    for mode in modes:  # what is read and compiled at a mode's first use is not timed
        _answered(target, tokeniser, drafters, given[0], mode, temperatures[0], WARMING)
    for question in given:
        for temperature in temperatures:
            for mode in modes:
                use = _answered(target, tokeniser, drafters, question, mode, temperature, answer)
                out.append(use)
                say(use)
    return out


def _answered(
    target: Target,
    tokeniser: Tokeniser,
    drafters: Mapping[Mode, Drafter],
    question: Given,
    mode: Mode,
    temperature: float,
    answer: int,
) -> Use:
    prompt = tokeniser.encode(Chat(({"role": "user", "content": question.text},)))
    options = Options(mode=mode, temperature=temperature, seed=1, max_tokens=answer)
    chosen = plan(drafters, options, can_rewind=not target.fixed_kinds)
    decoding = Decoding(target, Drafters(chosen), options, prompt, target.make_cache())
    for _ in decoding.prefill(PREFILL):
        pass
    ended = decoding.first().tokens[-1] in tokeniser.end_ids
    began, tokens, rounds = time.perf_counter(), 0, 0
    promises: list[Promise] = []
    while decoding.room > 0 and not ended:
        step = decoding.step()
        if step.round is not None and step.round.confidence:
            promises.append((step.round.confidence, step.round.accepted))
        end = next((at + 1 for at, token in enumerate(step.tokens) if token in tokeniser.end_ids), None)
        tokens, rounds, ended = tokens + (end or len(step.tokens)), rounds + 1, end is not None
    return Use(question.kind, mode, temperature, tokens, rounds, time.perf_counter() - began, tuple(promises))


def summed(uses: Sequence[Use]) -> list[Use]:
    """By kind, mode and temperature; kind "all" is everything."""
    groups: dict[tuple[str, Mode, float], list[Use]] = {}
    for use in uses:
        for kind in (use.kind, "all"):
            groups.setdefault((kind, use.mode, use.temperature), []).append(use)
    return [
        Use(
            *key,
            sum(u.tokens for u in group),
            sum(u.rounds for u in group),
            sum(u.seconds for u in group),
            tuple(promise for u in group for promise in u.promises),
        )
        for key, group in sorted(groups.items(), key=lambda item: (item[0][2], item[0][0], item[0][1].value))
    ]


@dataclass(frozen=True, slots=True)
class Kept:
    """Of one position, over all rounds that drafted so far: chances of the whole prefix up to it (drafters.md §2.4)."""

    position: int  # from 1
    rounds: int
    promised: float  # mean of the product of confidences
    kept: float  # share of rounds whose drafts were kept so far
    error: float  # expected calibration error, 20 bins


def calibration(promises: Sequence[Promise]) -> list[Kept]:
    """Whether confidences come true, position by position. Rounds in which one is no number are left out."""
    promises = [promise for promise in promises if all(map(math.isfinite, promise[0]))]
    out: list[Kept] = []
    for position in range(max((len(confidences) for confidences, _ in promises), default=0)):
        reached = [(confidences, kept) for confidences, kept in promises if len(confidences) > position]
        chance = np.array([np.prod(confidences[: position + 1]) for confidences, _ in reached])
        happened = np.array([kept > position for _, kept in reached])
        error = calibration_error(chance, happened)
        out.append(Kept(position + 1, len(reached), float(chance.mean()), float(happened.mean()), error))
    return out
