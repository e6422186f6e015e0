"""DSpark: a block drafted in one pass, each token then corrected by the one before it (drafters.md §2)."""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx

from slipstream.drafters.descriptor import Checkpoint
from slipstream.drafters.network import BlockDrafter, BlockState, Tables, proposals
from slipstream.drafters.protocol import Draw, Proposal, Wish
from slipstream.types import Mode


class DSpark(BlockDrafter):
    mode = Mode.DSPARK

    def __init__(self, checkpoint: Checkpoint, target: Tables, *, dtype: mx.Dtype, bits: int) -> None:
        super().__init__(checkpoint, target, dtype=dtype, bits=bits)
        d = self.descriptor
        self._w1 = self._table(checkpoint, "markov_head.markov_w1", embedding=True) if d.markov else None
        self._w2 = self._table(checkpoint, "markov_head.markov_w2") if d.markov else None
        self._gate = self._small(checkpoint, "markov_head.gate_proj") if d.markov == "gated" else None
        self._joint = self._small(checkpoint, "markov_head.joint_proj") if d.markov == "rnn" else None
        self._judge = self._small(checkpoint, "confidence_head.proj") if d.confidence else None

    def propose(self, state: BlockState, last: int, limit: int, draw: Draw) -> Proposal:
        return self.propose_together([Wish(self, state, last, limit, draw)])[0]

    def propose_together(self, wishes: Sequence[Wish]) -> list[Proposal]:
        hidden = self.hidden(wishes)
        predicting = hidden[:, self.descriptor.first :]
        base = self.base_logits(predicting).astype(mx.float32)
        if self._w1 is not None:
            return self._chain(wishes, hidden, base)
        return proposals(
            wishes, self.drawn_at_once(wishes, base), self.spread(base), self._confidence(predicting, None)
        )

    def _chain(self, wishes: Sequence[Wish], hidden: mx.array, base: mx.array) -> list[Proposal]:
        """Draft one token after the other, a step of all requests at once: each adds a bias by the token before it."""
        first = self.descriptor.first
        memory: mx.array | None = None
        token = mx.array([wish.last for wish in wishes], dtype=mx.int32)
        if first and self._joint is not None:  # the recurrence starts at slot 0 even where it predicts nothing
            _, _, memory = self.bias(token, hidden[:, 0], memory)
        tokens: list[mx.array] = []
        embedded: list[mx.array] = []
        logits: list[mx.array] = []
        for index in range(base.shape[1]):
            bias, previous, memory = self.bias(token, hidden[:, first + index], memory)
            rows = base[:, index] + bias
            token = self.drawn(wishes, rows, index)
            tokens.append(token)
            embedded.append(previous)
            logits.append(rows)
        confidence = self._confidence(hidden[:, first:], mx.stack(embedded, axis=1))
        drawn = mx.stack(tokens, axis=1).astype(mx.int32)
        return proposals(wishes, drawn, self.spread(mx.stack(logits, axis=1)), confidence)

    def bias(
        self, previous: mx.array, hidden: mx.array, memory: mx.array | None
    ) -> tuple[mx.array, mx.array, mx.array | None]:
        """The Markov head for one slot of n requests: previous token [n], hidden [n, hidden], state [n, rank].

        Returns the bias [n, vocabulary], the previous token's embedding [n, rank] and the new state.
        """
        assert self._w1 is not None
        assert self._w2 is not None
        embedded = self._w1(previous).astype(self._dtype)
        through = embedded
        if self._gate is not None:
            weight, bias = self._gate
            through = mx.sigmoid(mx.concatenate([hidden, embedded], axis=-1) @ weight.T + bias) * embedded
        elif self._joint is not None:
            weight, bias = self._joint
            if memory is None:
                memory = mx.zeros_like(embedded)
            joint = mx.concatenate([memory, embedded, hidden], axis=-1) @ weight.T + bias
            gate, candidate, out = mx.split(joint, 3, axis=-1)
            keep = mx.sigmoid(gate)
            # `out` was computed from the old state, as the reference does.
            memory = keep * memory + (1 - keep) * mx.tanh(candidate)
            through = mx.tanh(out)
        return self._w2(through).astype(mx.float32), embedded, memory

    def _confidence(self, hidden: mx.array, embedded: mx.array | None) -> mx.array | None:
        """Probability that each draft is kept, given that those before it are: [requests, n]."""
        logits = self.confidence_logits(hidden, embedded)
        if logits is None:
            return None
        if temperatures := self.descriptor.confidence_temperatures:
            logits = logits / mx.array(temperatures)[: logits.shape[-1]]
        return mx.sigmoid(logits)

    def confidence_logits(self, hidden: mx.array, embedded: mx.array | None) -> mx.array | None:
        if self._judge is None:
            return None
        weight, bias = self._judge
        if self.descriptor.confidence_with_markov and embedded is not None:
            hidden = mx.concatenate([hidden, embedded], axis=-1)
        return (hidden.astype(mx.float32) @ weight.T.astype(mx.float32) + bias.astype(mx.float32))[..., 0]

    def _small(self, checkpoint: Checkpoint, path: str) -> tuple[mx.array, mx.array]:
        """A little matrix and its bias, never quantised."""
        weights = checkpoint.weights
        return weights[f"{path}.weight"].astype(self._dtype), weights[f"{path}.bias"].astype(self._dtype)
