"""DSpark: a block drafted in one pass, each token then corrected by the one before it (drafters.md §2)."""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx

from slipstream.drafters.descriptor import Checkpoint
from slipstream.drafters.network import BlockDrafter, Picked, Tables
from slipstream.drafters.protocol import Wish
from slipstream.models.fused_kernels import choose
from slipstream.types import Mode

LARGEST_TABLE = 32 * 2**20  # bytes


class DSpark(BlockDrafter):
    mode = Mode.DSPARK

    def __init__(self, checkpoint: Checkpoint, target: Tables, *, dtype: mx.Dtype, bits: int) -> None:
        super().__init__(checkpoint, target, dtype=dtype, bits=bits)
        d = self.descriptor
        self._w1 = self._table(checkpoint, "markov_head.markov_w1", embedding=True) if d.markov else None
        self._w2 = self._table(checkpoint, "markov_head.markov_w2") if d.markov else None
        self._gate = self._small(checkpoint, "markov_head.gate_proj") if d.markov == "gated" else None
        self._joint = self._small(checkpoint, "markov_head.joint_proj") if d.markov == "rnn" else None
        # For the likeliest chain: the embedding unpacked, and which slot is whose.
        self._table_of_w1 = self._unpacked() if self._fused is not None and d.markov == "vanilla" else None
        self._indices = [mx.array([index], dtype=mx.int32) for index in range(self.block)]
        self._judge = self._small(checkpoint, "confidence_head.proj") if d.confidence else None

    def pick(self, hidden: mx.array, last: mx.array, wishes: Sequence[Wish] | None) -> Picked:
        predicting = hidden[:, self.descriptor.first :]
        base = self.base_logits(predicting)
        if self._w1 is None:
            logits = base.astype(mx.float32)
            return self.drawn_at_once(wishes, logits), self.spread(logits), self._confidence(predicting, None)
        if wishes is None and self._table_of_w1 is not None:
            tokens, embedded, logits = self._likeliest_chain(base, last)
        else:
            tokens, embedded, logits = self._chain(hidden, base.astype(mx.float32), last, wishes)
        return tokens.astype(mx.int32), self.spread(logits), self._confidence(predicting, embedded)

    def _chain(
        self, hidden: mx.array, base: mx.array, last: mx.array, wishes: Sequence[Wish] | None
    ) -> tuple[mx.array, mx.array, mx.array]:
        """Draft one token after the other, a step of all requests at once: each adds a bias by the token before it.

        Returns tokens [requests, n], the embedding of the token before each and the logits of each.
        """
        first = self.descriptor.first
        memory: mx.array | None = None
        token = last
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
        return mx.stack(tokens, axis=1), mx.stack(embedded, axis=1), mx.stack(logits, axis=1)

    def _likeliest_chain(self, base: mx.array, last: mx.array) -> tuple[mx.array, mx.array, mx.array]:
        """The same for greedy requests and a head without a gate or memory, in two operations a step."""
        assert self._w2 is not None
        assert self._table_of_w1 is not None
        rows, slots = base.shape[:2]
        newest = self._table_of_w1[last]
        found = (mx.zeros((rows, slots), mx.int32), mx.zeros((rows, slots, newest.shape[-1]), newest.dtype))
        biases: list[mx.array] = []
        for index in range(slots):
            biases.append(self._w2(newest))
            *found, newest = choose(
                base, biases[-1], self._indices[index], self.draft_ids, self._table_of_w1, newest, (found[0], found[1])
            )
        return found[0], found[1], base.astype(mx.float32) + mx.stack(biases, axis=1).astype(mx.float32)

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

    def _unpacked(self) -> mx.array | None:
        """The table of the Markov head's first half. None: it is too large to be kept twice."""
        assert self._w1 is not None
        d = self.descriptor
        if d.vocabulary * d.rank * self._dtype.size > LARGEST_TABLE:
            return None
        table = self._w1(mx.arange(d.vocabulary)).astype(self._dtype)
        mx.eval(table)
        return table

    def _small(self, checkpoint: Checkpoint, path: str) -> tuple[mx.array, mx.array]:
        """A little matrix and its bias, never quantised."""
        weights = checkpoint.weights
        return weights[f"{path}.weight"].astype(self._dtype), weights[f"{path}.bias"].astype(self._dtype)
