"""DSpark: a block drafted in one pass, each token then corrected by the one before it (drafters.md §2)."""

from __future__ import annotations

import mlx.core as mx

from slipstream.drafters.descriptor import Checkpoint
from slipstream.drafters.network import BlockDrafter, BlockState, Tables
from slipstream.drafters.protocol import Draw, Proposal
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
        d = self.descriptor
        limit = min(limit, self.block)
        hidden = self.hidden(state, last, limit)
        base = self.base_logits(hidden[d.first :][:limit]).astype(mx.float32)
        if self._w1 is None:
            base = self.spread(base)
            return Proposal(draw(base, 0), self._confidence(hidden[d.first :][:limit], None), base)
        return self._chain(hidden, base, last, draw)

    def _chain(self, hidden: mx.array, base: mx.array, last: int, draw: Draw) -> Proposal:
        """Draft one token after the other: each adds a bias by the token before it."""
        first = self.descriptor.first
        memory: mx.array | None = None
        token = mx.array([last], dtype=mx.int32)
        if first and self._joint is not None:  # the recurrence starts at slot 0 even where it predicts nothing
            _, _, memory = self.bias(token, hidden[:1], memory)
        tokens: list[mx.array] = []
        embedded: list[mx.array] = []
        logits: list[mx.array] = []
        for index in range(base.shape[0]):
            at = hidden[first + index : first + index + 1]
            bias, previous, memory = self.bias(token, at, memory)
            row = self.spread(base[index : index + 1] + bias)
            token = draw(row, index)
            tokens.append(token)
            embedded.append(previous)
            logits.append(row)
        rows = hidden[first : first + len(tokens)]
        return Proposal(
            mx.concatenate(tokens), self._confidence(rows, mx.concatenate(embedded)), mx.concatenate(logits)
        )

    def bias(
        self, previous: mx.array, hidden: mx.array, memory: mx.array | None
    ) -> tuple[mx.array, mx.array, mx.array | None]:
        """The Markov head for one slot: previous token [1], hidden [1, hidden], recurrent state [1, rank].

        Returns the bias [1, vocabulary], the previous token's embedding [1, rank] and the new state.
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
        """Probability that each draft is kept, given that those before it are [n]."""
        logits = self.confidence_logits(hidden, embedded)
        if logits is None:
            return None
        if temperatures := self.descriptor.confidence_temperatures:
            logits = logits / mx.array(temperatures)[: logits.shape[0]]
        return mx.sigmoid(logits)

    def confidence_logits(self, hidden: mx.array, embedded: mx.array | None) -> mx.array | None:
        if self._judge is None:
            return None
        weight, bias = self._judge
        if self.descriptor.confidence_with_markov and embedded is not None:
            hidden = mx.concatenate([hidden, embedded], axis=-1)
        return (hidden.astype(mx.float32) @ weight.T.astype(mx.float32) + bias.astype(mx.float32))[:, 0]

    def _small(self, checkpoint: Checkpoint, path: str) -> tuple[mx.array, mx.array]:
        """A little matrix and its bias, never quantised."""
        weights = checkpoint.weights
        return weights[f"{path}.weight"].astype(self._dtype), weights[f"{path}.bias"].astype(self._dtype)
