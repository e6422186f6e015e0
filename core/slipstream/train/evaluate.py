"""What a drafter is worth in use: the engine's own rounds, by kind of question, beside lookup and plain decoding."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from slipstream.drafters.protocol import Drafter
from slipstream.engine.planner import Drafters, plan
from slipstream.engine.round import Decoding
from slipstream.models.target import Target
from slipstream.models.tokeniser import Tokeniser
from slipstream.train.questions import Given
from slipstream.types import Chat, Mode, Options

PREFILL = 512


@dataclass(frozen=True, slots=True)
class Use:
    """Answers to questions of one kind in one mode. Tokens are those after the first of each answer."""

    kind: str
    mode: Mode
    temperature: float
    tokens: int
    rounds: int
    seconds: float  # of the rounds; prompts are not counted

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
    for question in given:
        prompt = tokeniser.encode(Chat(({"role": "user", "content": question.text},)))
        for temperature in temperatures:
            for mode in modes:
                options = Options(mode=mode, temperature=temperature, seed=1, max_tokens=answer)
                chosen = plan(drafters, options, can_rewind=not target.fixed_kinds)
                decoding = Decoding(target, Drafters(chosen), options, prompt, target.make_cache())
                for _ in decoding.prefill(PREFILL):
                    pass
                ended = decoding.first().tokens[-1] in tokeniser.end_ids
                began, tokens, rounds = time.perf_counter(), 0, 0
                while decoding.room > 0 and not ended:
                    said = decoding.step().tokens
                    end = next((at + 1 for at, token in enumerate(said) if token in tokeniser.end_ids), None)
                    tokens, rounds, ended = tokens + (end or len(said)), rounds + 1, end is not None
                use = Use(question.kind, mode, temperature, tokens, rounds, time.perf_counter() - began)
                out.append(use)
                say(use)
    return out


def summed(uses: Sequence[Use]) -> list[Use]:
    """By kind, mode and temperature; kind "all" is everything."""
    groups: dict[tuple[str, Mode, float], list[Use]] = {}
    for use in uses:
        for kind in (use.kind, "all"):
            groups.setdefault((kind, use.mode, use.temperature), []).append(use)
    return [
        Use(*key, sum(u.tokens for u in group), sum(u.rounds for u in group), sum(u.seconds for u in group))
        for key, group in sorted(groups.items(), key=lambda item: (item[0][2], item[0][0], item[0][1].value))
    ]
