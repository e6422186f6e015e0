"""DFlash: every slot of a block drafted at once, each by itself; DFlash 2 then walks along the likeliest candidates."""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx

from slipstream.drafters.descriptor import Checkpoint
from slipstream.drafters.network import BlockDrafter, Picked, Tables, spread_over
from slipstream.drafters.protocol import Wish
from slipstream.types import Mode


class DFlash(BlockDrafter):
    mode = Mode.DFLASH

    def __init__(self, checkpoint: Checkpoint, target: Tables, *, dtype: mx.Dtype, bits: int) -> None:
        super().__init__(checkpoint, target, dtype=dtype, bits=bits)
        self._selector = _Selector(checkpoint) if self.descriptor.selector_rank else None

    def pick(self, hidden: mx.array, last: mx.array, wishes: Sequence[Wish] | None) -> Picked:
        predicting = hidden[:, self.descriptor.first :]
        logits = self.base_logits(predicting).astype(mx.float32)
        if self._selector is None:
            return self.drawn_at_once(wishes, logits), self.spread(logits), None
        return self._walk(predicting, logits, last, wishes)

    def _walk(self, hidden: mx.array, logits: mx.array, last: mx.array, wishes: Sequence[Wish] | None) -> Picked:
        """Choose among the likeliest tokens of each slot by the token before, a slot of all requests at once."""
        tokens: list[mx.array] = []
        rows: list[mx.array] = []
        token = last
        candidates = self.candidates(logits)
        for slot in range(logits.shape[1]):
            among = candidates[:, slot]
            row = spread_over(self.scores(logits[:, slot], among, hidden[:, slot], token), among, logits.shape[-1])
            token = self.drawn(wishes, row, slot)
            tokens.append(token)
            rows.append(row)
        return mx.stack(tokens, axis=1).astype(mx.int32), self.spread(mx.stack(rows, axis=1)), None

    def candidates(self, logits: mx.array) -> mx.array:
        """The likeliest tokens of each slot [..., top], in no order."""
        top = min(self.descriptor.selector_top, logits.shape[-1])
        return mx.argpartition(-logits, top - 1, axis=-1)[..., :top]

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
