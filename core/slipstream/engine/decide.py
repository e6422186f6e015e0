"""How one request turns logits into tokens: x[t] = argmax(filter(logits[t]) / T + noise(seed, t)).

The target's tokens and the drafts are chosen by the same rule with the same noise, so that a draft is right as often
as it can be (Daliri, Musco, Suresh 2025), and the text does not depend on who drafted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import mlx.core as mx

from slipstream.drafters.protocol import Proposal
from slipstream.engine.sampling import Salt, gumbel, rejection, truncate, uniform
from slipstream.events import Choice, Margin
from slipstream.models.host import floats, ints, rows
from slipstream.types import Acceptance, Options

if TYPE_CHECKING:
    from slipstream.prompt.constraint import Constraint

LOWEST_TEMPERATURE = 1e-20  # far below any gap between logits, far above what float32 rounds to zero
LIKELIEST = 20  # tokens whose logits say how large a row's are


@dataclass(slots=True)
class Decision:
    """Lazy results of one verification of k drafts; `arrays` is what the round evaluates, once."""

    tokens: mx.array  # [k + 1]: row n is the token after n accepted drafts
    accepted: mx.array | None  # [k] bool, rejection only; otherwise a draft is kept when it equals its row's token
    logprobs: mx.array | None  # [k + 1, vocabulary] log-probabilities under the model, when asked for
    margins: tuple[mx.array, mx.array, mx.array] | None  # [k + 1] each: scale, gap, at the edge of truncation

    @property
    def arrays(self) -> list[mx.array]:
        optional = (self.accepted, self.logprobs, *(self.margins or ()))
        return [self.tokens, *(array for array in optional if array is not None)]


class Chooser:
    """One request's rule. Keeps count of what was said, for penalties."""

    def __init__(
        self, options: Options, vocabulary: int, prompt: Sequence[int], constraint: Constraint | None = None
    ) -> None:
        self.options = options
        self._constraint = constraint
        self._vocabulary = vocabulary
        self._bias = self._dense_bias()
        self._seen: mx.array | None = None  # [vocabulary] bool: in prompt or answer
        self._counts: mx.array | None = None  # [vocabulary]: in the answer
        if options.penalised:
            self._seen = self._one_hot(mx.array(list(prompt), dtype=mx.int32)).any(axis=0)
            self._counts = mx.zeros((vocabulary,), dtype=mx.float32)

    @property
    def is_sampling(self) -> bool:
        return self.options.temperature > 0

    @property
    def draws_likeliest(self) -> bool:
        """Whether `draw` is no more than argmax."""
        return not self.is_sampling and self._bias is None and self._seen is None

    @property
    def _uses_rejection(self) -> bool:
        return self.is_sampling and self.options.acceptance is Acceptance.REJECTION

    def decide(self, logits: mx.array, proposal: Proposal, position: int) -> Decision:
        """Choose for every row of a verification: logits [k + 1, vocabulary] for positions from `position` on."""
        options = self.options
        allowed = self._allowed(logits, proposal)
        logits = logits.astype(mx.float32)
        scores = self._filtered(logits, proposal.tokens, allowed=allowed)
        accepted, noise = None, None
        if self._uses_rejection:
            tokens, accepted = self._reject(scores, proposal, position, allowed)
        else:
            if self.is_sampling:
                noise = gumbel(options.seed, position, logits.shape[0], self._vocabulary)
                scores = scores + noise
            tokens = mx.argmax(scores, axis=-1).astype(mx.int32)
        logprobs = logits - mx.logsumexp(logits, axis=-1, keepdims=True) if options.logprobs is not None else None
        margins = self._margins(logits, proposal.tokens, scores, noise, tokens, allowed) if options.margins else None
        return Decision(tokens, accepted, logprobs, margins)

    def draw(self, logits: mx.array, position: int) -> mx.array:
        """Draft tokens [n] from a drafter's logits [n, vocabulary] for positions from `position` on."""
        if self.is_sampling or self._bias is not None or self._seen is not None:
            logits = self._filtered(logits, None)
        if self.is_sampling:
            salt = Salt.DRAFT if self._uses_rejection else Salt.CHOICE
            logits = logits + gumbel(self.options.seed, position, logits.shape[0], self._vocabulary, salt)
        return mx.argmax(logits, axis=-1).astype(mx.int32)

    def commit(self, tokens: Sequence[int]) -> None:
        """Count what was said."""
        if self._seen is not None and self._counts is not None and tokens:
            new = self._one_hot(mx.array(list(tokens), dtype=mx.int32))
            self._seen = self._seen | new.any(axis=0)
            self._counts = self._counts + new.sum(axis=0)

    def choices(self, decision: Decision, count: int) -> tuple[Choice, ...]:
        """Log-probabilities of the first `count` chosen tokens."""
        if decision.logprobs is None:
            return ()
        top = self.options.logprobs or 0
        table = decision.logprobs[:count]
        chosen = mx.take_along_axis(table, decision.tokens[:count, None], axis=-1)[:, 0]
        best = mx.argsort(-table, axis=-1)[:, :top]
        values = mx.take_along_axis(table, best, axis=-1)
        return tuple(
            Choice(logprob, tuple(zip(ids, logprobs, strict=True)))
            for logprob, ids, logprobs in zip(floats(chosen), rows(best), rows(values), strict=True)
        )

    def margins(self, decision: Decision, count: int) -> tuple[Margin, ...]:
        """How clear each of the first `count` decisions was, in units of logits."""
        if decision.margins is None:
            return ()
        return tuple(
            Margin(scale, gap, bool(at_edge))
            for scale, gap, at_edge in rows(mx.stack(list(decision.margins), axis=-1)[:count])
        )

    def _allowed(self, logits: mx.array, proposal: Proposal) -> mx.array | None:
        """[k + 1, vocabulary] bool: what the grammar allows, found while the device computes the logits."""
        if self._constraint is None:
            return None
        mx.async_eval(logits)
        return self._constraint.masks(ints(proposal.tokens))

    def _margins(
        self,
        logits: mx.array,
        drafts: mx.array,
        scores: mx.array,
        noise: mx.array | None,
        tokens: mx.array,
        allowed: mx.array | None,
    ) -> tuple[mx.array, mx.array, mx.array]:
        """Size of the likeliest logits, gap to the runner-up, whether truncation's edge is near enough to change it."""
        unit = self.options.temperature if self.is_sampling else 1.0
        best = mx.sort(mx.topk(scores, 2, axis=-1), axis=-1)
        at_edge = mx.zeros(tokens.shape, dtype=mx.bool_)
        if noise is not None:
            options = self.options
            for step in (-1, 1):
                moved = replace(
                    options,
                    top_k=max(1, options.top_k + step) if options.top_k else 0,
                    top_p=min(1.0, max(0.0, options.top_p + step * 0.005)) if options.top_p < 1 else 1.0,
                    min_p=min(1.0, options.min_p * (1 + step * 0.02)),
                )
                other = mx.argmax(self._filtered(logits, drafts, moved, allowed) + noise, axis=-1)
                at_edge = at_edge | (other != tokens)
        likeliest = mx.topk(logits, min(LIKELIEST, logits.shape[-1]), axis=-1)
        scale = mx.max(mx.where(mx.isfinite(likeliest), mx.abs(likeliest), 0.0), axis=-1)
        return scale, (best[:, 1] - best[:, 0]) * unit, at_edge.astype(mx.float32)

    def _filtered(
        self,
        logits: mx.array,
        drafts: mx.array | None,
        options: Options | None = None,
        allowed: mx.array | None = None,
    ) -> mx.array:
        """The request's chain: penalties, bias, grammar, temperature, truncation. Rows are at successive positions.

        `drafts`: tokens that row n has n of behind it, beside what is committed. None: rows are drafts themselves,
        and what was drafted before them in this block is not counted.
        """
        options = options or self.options
        if self._seen is not None and self._counts is not None:
            logits = self._penalised(logits, drafts, self._seen, self._counts)
        if self._bias is not None:
            logits = logits + self._bias
        if allowed is not None:
            logits = mx.where(allowed, logits, -mx.inf)
        if not self.is_sampling:
            return logits
        # Taking the maximum out first keeps a tiny temperature finite; one that float32 rounds to zero would be 0 / 0.
        scores = (logits - mx.max(logits, axis=-1, keepdims=True)) / max(options.temperature, LOWEST_TEMPERATURE)
        return truncate(scores, options.top_k, options.top_p, options.min_p)

    def _penalised(self, logits: mx.array, drafts: mx.array | None, seen: mx.array, counts: mx.array) -> mx.array:
        options = self.options
        rows_seen, rows_counts = seen[None], counts[None]
        if drafts is not None and drafts.shape[0]:
            new = mx.cumsum(self._one_hot(drafts).astype(mx.float32), axis=0)
            new = mx.concatenate([mx.zeros((1, self._vocabulary)), new], axis=0)
            rows_seen, rows_counts = rows_seen | (new > 0), rows_counts + new
        penalty = options.repetition_penalty
        if penalty != 1.0:
            weakened = mx.where(logits > 0, logits / penalty, logits * penalty)
            logits = mx.where(rows_seen, weakened, logits)
        said = (rows_counts > 0).astype(mx.float32)
        return logits - options.presence_penalty * said - options.frequency_penalty * rows_counts

    def _reject(
        self, scores: mx.array, proposal: Proposal, position: int, allowed: mx.array | None
    ) -> tuple[mx.array, mx.array | None]:
        seed, count = self.options.seed, len(proposal)
        target_probs = mx.softmax(scores, axis=-1, precise=True)
        accepted = None
        next_probs = target_probs
        if count:
            if proposal.logits is None:  # a certain proposal
                draft_probs = self._one_hot(proposal.tokens).astype(mx.float32)
            else:
                drafted = self._filtered(proposal.logits, None)
                # Drafts were drawn without the grammar, and those it forbids cut: what is left has this distribution.
                drafted = drafted if allowed is None else mx.where(allowed[:count], drafted, -mx.inf)
                draft_probs = mx.softmax(drafted, axis=-1, precise=True)
            coins = uniform(seed, position, count)
            accepted, next_probs = rejection(proposal.tokens, draft_probs, target_probs, coins)
        noise = gumbel(seed, position, count + 1, self._vocabulary, Salt.RESIDUAL)
        return mx.argmax(mx.log(next_probs) + noise, axis=-1).astype(mx.int32), accepted

    def _one_hot(self, tokens: mx.array) -> mx.array:
        return tokens[:, None] == mx.arange(self._vocabulary)[None]

    def _dense_bias(self) -> mx.array | None:
        if not self.options.logit_bias:
            return None
        bias = mx.zeros((self._vocabulary,), dtype=mx.float32)
        ids = mx.array(list(self.options.logit_bias), dtype=mx.int32)
        return bias.at[ids].add(mx.array(list(self.options.logit_bias.values()), dtype=mx.float32))
