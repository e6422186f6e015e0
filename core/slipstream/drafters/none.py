"""Nobody drafts: with it the round is plain decoding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import mlx.core as mx

from slipstream.drafters.protocol import Draw, Proposal
from slipstream.types import Mode


class NoState:
    def __init__(self) -> None:
        self.length = 0


class NoDrafter:
    mode = Mode.BASELINE
    taps: tuple[int, ...] = ()
    block = 0

    def begin(self) -> NoState:
        return NoState()

    def observe(self, state: NoState, tokens: Sequence[int], taps: Mapping[int, mx.array]) -> None:
        del taps
        state.length += len(tokens)

    def arrays(self, state: NoState) -> list[mx.array]:
        del state
        return []

    def propose(self, state: NoState, last: int, limit: int, draw: Draw) -> Proposal:
        del state, last, limit, draw
        return Proposal(mx.array([], dtype=mx.int32))
