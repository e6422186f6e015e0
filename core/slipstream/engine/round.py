"""Decoding: a request's prefill, then rounds of propose, verify, decide, commit, its own or shared with others.

Invariant between rounds: the target's cache and every drafter's context hold all committed tokens but the last.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mlx.core as mx

from slipstream.drafters.protocol import Draw, Proposal, Wish
from slipstream.engine.costs import PLAIN
from slipstream.engine.decide import Chooser, Decision
from slipstream.engine.planner import Candidate, Drafters, Seen, draft, nothing, observe
from slipstream.engine.policy import Policy, Positions
from slipstream.engine.share import Share
from slipstream.errors import SlipstreamError
from slipstream.events import Choice, Margin, Round
from slipstream.models.cache import TargetCache
from slipstream.models.fused import Graphs
from slipstream.models.host import floats, ints
from slipstream.models.target import Forward, Target
from slipstream.types import Options

if TYPE_CHECKING:
    from slipstream.prompt.constraint import Constraint

GRAMMAR = "grammar"  # the source of a round whose drafts are what the grammar forces
ENOUGH_FORCED = 4  # forced tokens from which on no drafter is asked; one round of a drafter keeps about as many


@dataclass(frozen=True, slots=True)
class Step:
    """Tokens committed together. The first, made by the prefill, has no round."""

    tokens: tuple[int, ...]
    round: Round | None
    logprobs: tuple[Choice, ...]
    margins: tuple[Margin, ...]


class Part:
    """One request's part of a round, as far as it got."""

    source: str
    proposal: Proposal
    forward: Forward
    decision: Decision
    newest: int  # the target's own token behind what was accepted
    made: Round
    milliseconds: float | None  # of the round, where it was the request's own
    step: Step

    def __init__(self, row: Decoding) -> None:
        self.row = row
        self.wish: Wish | None = None  # to a network, which then makes the proposal
        self.forced: list[int] | None = None  # tokens that the grammar leaves no choice about; None: it does not matter
        self.policy: Policy | None = None  # where others are to be considered in who drafts, and how far
        self.candidates: Sequence[Candidate] = ()
        self.offered: tuple[float, ...] | None = None  # confidences of all drafts, before some were left out
        self.left_out: int | None = None  # the first of those
        self.error: SlipstreamError | None = None  # of the request: the others go on without it

    def take(self, source: str, planned: Proposal | Wish) -> None:
        """Somebody drafts: at no cost, or a network that is still to be run."""
        self.source = source
        if isinstance(planned, Wish):
            self.wish = planned
        else:
            self.proposal = planned

    def cut(self, count: int) -> None:
        """Verify the first so many of the drafts alone, which are evaluated."""
        if count < len(self.proposal):
            self.left_out = ints(self.proposal.tokens)[count]
            self.proposal = self.proposal.first(count)

    @property
    def expected(self) -> list[float]:
        """Probability of each draft to be kept, as far as is known without asking the drafter."""
        policy, count = self.policy, len(self.proposal)
        return Positions().survival(count) if policy is None else policy.survival(self.source, count)

    @property
    def drafts(self) -> list[mx.array]:
        proposal = self.proposal
        return [proposal.tokens] if proposal.confidence is None else [proposal.tokens, proposal.confidence]


def decode_round(target: Target, rows: Sequence[Decoding], share: Share | None = None) -> list[Step | SlipstreamError]:
    """The round: of one request, or of several that share the target's forward and the one wait for the device.

    A round in which a graph had to be made says nothing of what later ones take, so nothing is learned of its time.

    `share`: how several divide the work; None for one alone. What a request could not do, such as follow its grammar,
    comes in the place of its step.
    """
    assert (share is None) == (len(rows) == 1)
    began, graphs = time.perf_counter(), Graphs.made
    parts = [Part(row) for row in rows]
    going = parts

    def each(do: Callable[[Part], None]) -> None:
        nonlocal going
        for part in going:
            try:
                do(part)
            except SlipstreamError as error:
                part.error = error
        going = [part for part in going if part.error is None]

    each(lambda part: part.row.plan(part, shared=share is not None))
    if share is not None:
        _choose(share, going)
    asked = [(part, part.wish) for part in going if part.wish is not None]
    for (part, _), proposal in zip(asked, draft([wish for _, wish in asked]), strict=True):
        part.proposal = proposal
    each(lambda part: part.row.settle(part))
    waited = share is not None and _cut(share, going)
    if share is None:
        each(lambda part: part.row.cut(part))
    # The device drafts while the target's graph is built.
    mx.async_eval([part.drafts for part in going if len(part.proposal)])
    taps = going[0].row.taps if len(going) == 1 else sorted({tap for part in going for tap in part.row.taps})
    forwards = target.forward_rows([part.row.verifying(part) for part in going], taps)
    for part, forward in zip(going, forwards, strict=True):
        part.forward = forward
    ran = len(going), sum(len(part.proposal) for part in going), len(asked)
    each(lambda part: part.row.decide(part))
    mx.eval([[*part.decision.arrays, *part.drafts] for part in going])  # the round's one wait for the device
    milliseconds = 1000 * (time.perf_counter() - began) if Graphs.made == graphs else None
    observe([part.row.keep(part, milliseconds if share is None else None) for part in going])
    mx.async_eval([part.row.contexts for part in going])  # while Python gets on with the next round
    if share is not None and milliseconds is not None:
        share.learn(*ran, milliseconds, waited=waited)
    each(lambda part: part.row.finish(part))
    return [part.step if part.error is None else part.error for part in parts]


def _choose(share: Share, parts: Sequence[Part]) -> None:
    """Who drafts for those who have a choice."""
    free = [part for part in parts if part.policy is not None]
    others = sum(len(part.proposal) if part.wish is None else part.wish.limit for part in parts if part.policy is None)
    offers = [[candidate.offer for candidate in part.candidates] for part in free]
    for part, (index, count) in zip(free, share.lengths(len(parts), offers, others), strict=True):
        if count:
            candidate = part.candidates[index]
            part.take(candidate.source, candidate.taken(count))
        else:
            part.take(PLAIN, nothing())


def _cut(share: Share, parts: Sequence[Part]) -> bool:
    """Whose drafts are verified how far, where their confidences can tell. Returns whether these were waited for."""
    judged = [part for part in parts if part.policy is not None and part.proposal.confidence is not None]
    drafts = sum(len(part.proposal) for part in parts)
    drafted_for = sum(part.wish is not None for part in parts)
    if not judged or not share.may_cut(len(parts), drafts, drafted_for):
        return False
    mx.eval([part.drafts for part in judged])
    survivals: list[Sequence[float]] = []
    for part in judged:
        assert part.policy is not None
        assert part.proposal.confidence is not None
        part.offered = tuple(floats(part.proposal.confidence))
        survivals.append(part.policy.calibrated(part.source, part.offered))
    others = [part for part in parts if part not in judged]
    lengths = share.cut(
        survivals,
        drafted_for,
        others=len(others),
        drafts=sum(len(part.proposal) for part in others),
        tokens=sum(1 + sum(part.expected) for part in others),
    )
    for part, count in zip(judged, lengths, strict=True):
        part.cut(count)
    return True


class Decoding:
    """The state of one request. `prefill` to its end, then `step` as often as wanted."""

    def __init__(
        self,
        target: Target,
        drafters: Drafters,
        options: Options,
        prompt: Sequence[int],
        cache: TargetCache,
        constraint: Constraint | None = None,
    ) -> None:
        self._target = target
        self._drafters = drafters
        self._options = options
        self.tokens = list(prompt)  # and what was committed since
        self._cache = cache
        self._constraint = constraint
        self._chooser = Chooser(options, target.vocabulary, prompt, constraint)
        self._last = prompt[-1]  # the newest committed token; after the prefill its own forward has not been run
        self._first_logits: mx.array | None = None
        self._room = min(options.max_tokens, target.context - len(self.tokens))  # tokens that may still come

    def prefill(self, chunk: int | Callable[[], int], stops: Collection[int] = ()) -> Iterator[int]:
        """Run what the cache does not hold of the prompt, `chunk` tokens at a time. Yields how many are done each time.

        `chunk`: a number, or what gives one each time. `stops`: numbers of tokens at which to yield as well.
        """
        prompt = self.tokens
        while (done := self._cache.length) < len(prompt):
            size = chunk if isinstance(chunk, int) else chunk()
            tokens = prompt[done : min(done + size, *(stop for stop in stops if stop > done), len(prompt))]
            is_last = done + len(tokens) == len(prompt)
            forward = self._target.forward(
                mx.array(tokens, dtype=mx.int32), self._cache, self._drafters.taps, rows=1 if is_last else 0
            )
            self._drafters.observe(tokens, forward.taps)
            self._first_logits = forward.logits
            made = (self._cache.state, self._drafters.arrays(), [] if forward.logits is None else forward.logits)
            if is_last:
                mx.async_eval(*made)
                self._describe()
            mx.eval(*made)
            yield self._cache.length

    def _describe(self) -> None:
        """Prepare the rounds, while the device is busy."""
        most = min(self._drafters.most, self._limit)
        self._target.describe(self._cache, self.taps, 1 + most)
        self._drafters.describe(most)

    def first(self) -> Step:
        """The first token of the answer, from the prefill's last row."""
        assert self._first_logits is not None
        decision = self._chooser.decide(self._first_logits, nothing(), self._committed)
        self._first_logits = None
        mx.eval(decision.arrays)
        return self._finish_step((ints(decision.tokens)[0],), decision, None)

    def step(self) -> Step:
        """One round of this request alone. At most as many tokens as there is room for."""
        (step,) = decode_round(self._target, (self,))
        if isinstance(step, SlipstreamError):
            raise step
        return step

    @property
    def taps(self) -> tuple[int, ...]:
        """Layers whose hidden states the drafters read."""
        return self._drafters.taps

    @property
    def contexts(self) -> list[mx.array]:
        """What the drafters have made of what was committed."""
        return self._drafters.arrays()

    # The parts of a round, in this order.

    def plan(self, part: Part, *, shared: bool) -> None:
        """Decide who drafts, or in a shared round who could, if that is ours to choose."""
        constraint = self._constraint
        if constraint is not None and self._drafters.may_draft:
            part.forced = constraint.forced()[: self._limit]
            if len(part.forced) >= ENOUGH_FORCED:
                part.source, part.proposal = GRAMMAR, _certain(part.forced)
                return
        policy = self._drafters.policy
        if shared and policy is not None:
            part.policy = policy
            part.candidates = self._drafters.candidates(
                policy, self._last, self._limit, self._draw, is_greedy=self._chooser.draws_likeliest
            )
        else:
            part.take(
                *self._drafters.plan(self._last, self._limit, self._draw, is_greedy=self._chooser.draws_likeliest)
            )

    @property
    def _draw(self) -> Draw:
        draws_from = self._committed
        return lambda logits, slot: self._chooser.draw(logits, draws_from + slot)

    def settle(self, part: Part) -> None:
        """What of the drafts a grammar lets pass, or what it forces instead."""
        if part.forced is None or self._constraint is None or part.source == GRAMMAR:
            return
        legal = self._constraint.legal_prefix(ints(part.proposal.tokens))
        # Only the first draft may decide between the two: were later ones to, those that are kept would no longer
        # be distributed as they were drawn, which the rejection rule relies on.
        if legal or not part.forced:
            part.proposal = part.proposal.first(legal)
        else:
            part.source, part.proposal = GRAMMAR, _certain(part.forced)

    def cut(self, part: Part) -> None:
        """Leave out the drafts that are not worth their verification, where their confidences can tell."""
        policy, proposal = self._drafters.policy, part.proposal
        if policy is not None and proposal.confidence is not None and policy.waits:
            mx.eval(proposal.tokens, proposal.confidence)
            part.offered = tuple(floats(proposal.confidence))
            part.cut(policy.cut(part.source, part.offered))

    def verifying(self, part: Part) -> tuple[mx.array, TargetCache]:
        """What the target is to run, after what its cache holds."""
        last = mx.array([self._last], dtype=mx.int32)
        return mx.concatenate([last, part.proposal.tokens]) if len(part.proposal) else last, self._cache

    def decide(self, part: Part) -> None:
        """Choose a token for each verified row. Lazy."""
        assert part.forward.logits is not None
        part.decision = self._chooser.decide(part.forward.logits, part.proposal, self._committed)

    def keep(self, part: Part, milliseconds: float | None) -> Seen:
        """Count what was accepted and forget the rest, after a round that took so long. None: it was not ours alone.

        Returns what the drafters are to see.
        """
        proposal, tokens = part.proposal, ints(part.decision.tokens)
        drafted = ints(proposal.tokens) if len(proposal) else []
        accepted = _accepted(drafted, tokens, part.decision.accepted)
        part.newest = tokens[accepted]
        confidence = None if proposal.confidence is None else tuple(floats(proposal.confidence))
        part.milliseconds = milliseconds
        # At the last committed token, whose forward this was.
        part.made = Round(self._committed - 1, part.source, tuple(drafted), accepted, confidence)
        self._cache.rewind(self._committed + accepted)
        kept = accepted + 1  # rows: the last committed token and the accepted drafts
        taps = part.forward.taps
        if accepted < len(drafted):
            taps = {tap: rows[:kept] for tap, rows in taps.items()}
        return Seen(self._drafters, [self._last, *drafted[:accepted]], taps)

    def finish(self, part: Part) -> None:
        """Once the drafters have seen it, while the device computes what they make of it."""
        accepted = part.made.accepted
        tokens = (*part.made.drafted[:accepted], part.newest)
        if (policy := self._drafters.policy) is not None:
            self._learn(policy, part)
            self._drafters.committed(tokens)
        part.step = self._finish_step(tokens, part.decision, part.made)

    def _learn(self, policy: Policy, part: Part) -> None:
        made = part.made
        drafted, accepted = len(made.drafted), made.accepted
        next_kept = None if part.left_out is None or accepted < drafted else part.newest == part.left_out
        offered = part.offered or made.confidence
        policy.learn(part.source, drafted, accepted, part.milliseconds, offered, next_kept=next_kept)

    @property
    def is_finished(self) -> bool:
        """The grammar is complete: nothing may follow."""
        return self._constraint is not None and self._constraint.is_finished

    @property
    def _committed(self) -> int:
        """Tokens of prompt and answer."""
        return len(self.tokens)

    @property
    def room(self) -> int:
        """Tokens that may still come."""
        return self._room

    @property
    def _limit(self) -> int:
        """Drafts worth making: the target adds one token by itself."""
        most = self._room - 1
        return most if self._options.max_draft is None else min(most, self._options.max_draft)

    def _finish_step(self, tokens: tuple[int, ...], decision: Decision, made: Round | None) -> Step:
        self._chooser.commit(tokens)
        self._last = tokens[-1]
        self.tokens += tokens
        self._room -= len(tokens)
        assert self._cache.length == self._committed - 1
        assert set(self._drafters.lengths) == {self._committed - 1}
        count = len(tokens) if self._constraint is None else self._constraint.commit(tokens)
        return Step(
            tokens[:count], made, self._chooser.choices(decision, count), self._chooser.margins(decision, count)
        )


def _certain(tokens: list[int]) -> Proposal:
    return Proposal(mx.array(tokens, dtype=mx.int32))


def _accepted(drafted: list[int], tokens: list[int], flags: mx.array | None) -> int:
    """How many drafts stand before the first that falls: by their `flags`, else those that are the row's token."""
    if flags is None:
        kept = [draft == token for draft, token in zip(drafted, tokens, strict=False)]
    else:
        kept = [bool(flag) for flag in ints(flags)]
    return kept.index(False) if False in kept else len(kept)
