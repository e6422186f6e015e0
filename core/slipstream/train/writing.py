"""Makes a corpus: the target invents questions and answers them, and the prompts that are given."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from slipstream.models.target import Target
from slipstream.models.tokeniser import Tokeniser
from slipstream.train.corpus import Conversation, Corpus
from slipstream.train.questions import (
    GREEDY_FIRST,
    INVENTED,
    LONGEST_QUESTION,
    Given,
    Question,
    Turns,
    answer_temperature,
    beginnings,
)
from slipstream.train.sampler import Ask, Sampler


@dataclass(frozen=True, slots=True)
class Amount:
    """How much is written."""

    shards: int
    rows: int = 4096  # conversations asked for in a shard; a few of them come to nothing
    answer: int = 320  # tokens at most
    width: int = 4096  # texts at once
    invented: float = 0.5  # share of the questions
    prompt: int = 512  # longer prompts are left out
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Written:
    """Progress after a shard."""

    shard: int
    shards: int
    conversations: int
    tokens: int  # of answers, in this shard
    seconds: float


class Writer:
    def __init__(self, target: Target, tokeniser: Tokeniser, given: Sequence[Given], amount: Amount) -> None:
        self._target = target
        self._tokeniser = tokeniser
        self._turns = Turns(tokeniser)
        self._given = list(given)
        self._amount = amount
        self._order = list(range(len(given)))
        random.Random(amount.seed).shuffle(self._order)

    def write(
        self,
        corpus: Corpus,
        say: Callable[[Written], None],
        *,
        part: int = 0,
        parts: int = 1,
        until: Callable[[float], bool] = lambda _: False,
    ) -> int:
        """Write the shards that are missing, of every `parts` the `part`th. `until`: whether to stop before the next
        shard, given how many seconds the one before took.

        Returns how many shards there are then.
        """
        last = 0.0  # seconds of the shard before
        for shard in range(part, self._amount.shards, parts):
            if corpus.has(shard):
                continue
            if until(last):
                break
            began = time.monotonic()
            made = self.shard(shard)
            corpus.write(shard, made)
            answered = sum(one.answered for one in made)
            last = time.monotonic() - began
            say(Written(shard, self._amount.shards, len(made), answered, last))
        return len(corpus.shards())

    def shard(self, shard: int) -> list[Conversation]:
        """The same for the same seed and number, on the same machine."""
        amount = self._amount
        rng = random.Random(f"{amount.seed}/{shard}")
        sampler = Sampler(self._target, amount.seed * 100_003 + shard)
        invented = round(amount.rows * amount.invented) if self._turns.can_invent else 0
        questions = self._next_given(shard, amount.rows - invented, rng)
        questions += self._invent(sampler, invented, rng)
        asked = list(zip(questions, self._turns.render_all([one.text for one in questions]), strict=True))
        asked = [(question, ids) for question, ids in asked if len(ids) <= amount.prompt]
        asks = [Ask(ids, question.temperature, amount.answer) for question, ids in asked]
        answers = sampler.sample(asks, self._tokeniser.end_ids, amount.width)
        return [
            Conversation((*ids, *answer), len(ids), question.kind, question.temperature)
            for (question, ids), answer in zip(asked, answers, strict=True)
            if len(answer) >= 4
        ]

    def _next_given(self, shard: int, count: int, rng: random.Random) -> list[Question]:
        """The given prompts by turns: each is answered greedily the first time, and warmer later."""
        out: list[Question] = []
        for number in range(shard * count, (shard + 1) * count):
            turn, place = divmod(number, len(self._order))
            prompt = self._given[self._order[place]]
            out.append(Question(prompt.text, prompt.kind, rng.choice(GREEDY_FIRST) if turn else 0.0))
        return out

    def _invent(self, sampler: Sampler, count: int, rng: random.Random) -> list[Question]:
        if not count:
            return []
        stems = beginnings(self._given, rng)
        openings = [self._turns.opening(next(stems)) for _ in range(count)]
        asks = [Ask(opening, rng.choice((0.8, 1.0)), LONGEST_QUESTION) for opening in openings]
        written = sampler.sample(asks, self._turns.ends, self._amount.width)
        texts = [self._turns.question(opening, ids) for opening, ids in zip(openings, written, strict=True)]
        return [Question(text, INVENTED, answer_temperature(rng)) for text in dict.fromkeys(texts) if text is not None]
