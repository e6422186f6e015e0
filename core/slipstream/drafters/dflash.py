"""DFlash: every slot of a block drafted at once, each by itself (drafters.md §3.1)."""

from __future__ import annotations

import mlx.core as mx

from slipstream.drafters.network import BlockDrafter, BlockState
from slipstream.drafters.protocol import Draw, Proposal
from slipstream.types import Mode


class DFlash(BlockDrafter):
    mode = Mode.DFLASH

    def propose(self, state: BlockState, last: int, limit: int, draw: Draw) -> Proposal:
        first = self.descriptor.first
        # All slots run, since they see each other; only the first `limit` predictions are used.
        hidden = self.hidden(state, last)[first : first + min(limit, self.block)]
        logits = self.base_logits(hidden).astype(mx.float32)
        return Proposal(draw(logits, 0), logits=logits)
