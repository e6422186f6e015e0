"""DFlash: every slot of a block drafted at once, each by itself; DFlash 2 then walks along the likeliest candidates."""

from __future__ import annotations

import mlx.core as mx

from slipstream.drafters.descriptor import Checkpoint
from slipstream.drafters.network import BlockDrafter, BlockState, Tables, spread_over
from slipstream.drafters.protocol import Draw, Proposal
from slipstream.types import Mode


class DFlash(BlockDrafter):
    mode = Mode.DFLASH

    def __init__(self, checkpoint: Checkpoint, target: Tables, *, dtype: mx.Dtype, bits: int) -> None:
        super().__init__(checkpoint, target, dtype=dtype, bits=bits)
        self._selector = _Selector(checkpoint) if self.descriptor.selector_rank else None

    def propose(self, state: BlockState, last: int, limit: int, draw: Draw) -> Proposal:
        first, limit = self.descriptor.first, min(limit, self.block)
        hidden = self.hidden(state, last, limit)[first : first + limit]
        logits = self.base_logits(hidden).astype(mx.float32)
        if self._selector is None:
            logits = self.spread(logits)
            return Proposal(draw(logits, 0), logits=logits)
        tokens: list[mx.array] = []
        rows: list[mx.array] = []
        token = mx.array([last], dtype=mx.int32)
        candidates = self.candidates(logits)
        for slot in range(limit):
            scores = self.scores(logits[slot : slot + 1], candidates[slot : slot + 1], hidden[slot : slot + 1], token)
            row = spread_over(scores, candidates[slot : slot + 1], logits.shape[-1])
            token = draw(row, slot)
            tokens.append(token)
            rows.append(row)
        return Proposal(mx.concatenate(tokens), logits=mx.concatenate(rows))

    def candidates(self, logits: mx.array) -> mx.array:
        """The likeliest tokens of each slot [n, top], in no order."""
        top = min(self.descriptor.selector_top, logits.shape[-1])
        return mx.argpartition(-logits, top - 1, axis=-1)[:, :top]

    def scores(self, logits: mx.array, candidates: mx.array, hidden: mx.array, previous: mx.array) -> mx.array:
        """Scores [n, top] of candidates given the token before each slot [n] (drafters.md §3.4)."""
        assert self._selector is not None
        own = mx.take_along_axis(logits, candidates, axis=-1)
        return own + self._selector.affinity(candidates, hidden, previous)


class _Selector:
    """DFlash 2's bilinear form between a token and the one after it, weighted by the slot. In float32, as trained."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        def part(name: str) -> mx.array:
            return checkpoint.weights[f"candidate_selector.{name}"]

        self._before, self._after = part("predecessor_codebook"), part("successor_codebook")  # [vocabulary, rank]
        self._project = part("hidden_projection.weight").astype(mx.float32)  # [rank, hidden]
        mx.eval(self._before, self._after, self._project)

    def affinity(self, candidates: mx.array, hidden: mx.array, previous: mx.array) -> mx.array:
        weighted = self._before[previous].astype(mx.float32) * (
            hidden.astype(mx.float32) @ self._project.T
        )  # [n, rank]
        after = self._after[candidates].astype(mx.float32)  # [n, top, rank]
        return (after @ weighted[:, :, None])[..., 0]
