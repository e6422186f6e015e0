"""The seam between the round and whoever drafts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import mlx.core as mx

from slipstream.types import Mode

Draw = Callable[[mx.array, int], mx.array]
"""draw(logits [n, vocabulary], slot) -> tokens [n]: the request's own rule and noise, for drafts slot, slot + 1, …"""


@dataclass(slots=True)
class Proposal:
    """Drafted tokens, still lazy where a network made them."""

    tokens: mx.array  # [k], int32; k may be 0
    confidence: mx.array | None = None  # [k]: probability of each draft to be kept, given the ones before
    logits: mx.array | None = None  # [k, vocabulary]: what the drafts were drawn from; None: certain

    def __len__(self) -> int:
        return self.tokens.shape[0]

    def first(self, count: int) -> Proposal:
        """Its first `count` drafts."""
        if count == len(self):
            return self
        confidence, logits = self.confidence, self.logits
        return Proposal(
            self.tokens[:count],
            None if confidence is None else confidence[:count],
            None if logits is None else logits[:count],
        )


class State(Protocol):
    """What a drafter remembers of one request."""

    @property
    def length(self) -> int: ...  # committed tokens it has seen; one less than committed between rounds


class Drafter(Protocol):
    """Makes proposals for one target. Nothing it does can change the text, only how fast it comes."""

    @property
    def mode(self) -> Mode: ...
    @property
    def taps(self) -> tuple[int, ...]: ...  # target layers whose hidden states it reads
    @property
    def block(self) -> int: ...  # the most tokens it proposes

    def begin(self) -> Any:
        """Fresh state for a request."""
        ...

    def observe(self, state: Any, tokens: Sequence[int], taps: Mapping[int, mx.array]) -> None:
        """The next committed tokens, in order, and the target's hidden states [n, hidden] at them."""
        ...

    def arrays(self, state: Any) -> list[mx.array]:
        """What `observe` left to be computed, so that the round can start it early."""
        ...

    def propose(self, state: Any, last: int, limit: int, draw: Draw) -> Proposal:
        """Up to `limit` tokens to follow `last`, which is committed and not yet observed."""
        ...


@dataclass(slots=True)
class Wish:
    """What one request wants of its drafter in a round: the arguments of `propose`."""

    drafter: Drafter
    state: Any
    last: int
    limit: int
    draw: Draw
    is_greedy: bool = False  # `draw` takes the likeliest token, and nothing else

    @property
    def source(self) -> str:
        return self.drafter.mode.value


@runtime_checkable
class DraftsTogether(Protocol):
    """A drafter whose network runs once for several requests. Each gets what it would get alone, up to rounding."""

    def propose_together(self, wishes: Sequence[Wish]) -> list[Proposal]: ...

    def observe_together(
        self, states: Sequence[Any], tokens: Sequence[Sequence[int]], taps: Sequence[Mapping[int, mx.array]]
    ) -> None: ...


@runtime_checkable
class Describes(Protocol):
    """A drafter whose first passes of each length take longer than later ones, unless they are prepared."""

    def describe(self, state: Any, most: int) -> None:
        """Prepare drafts of up to `most` tokens."""
        ...


@runtime_checkable
class KeepsRows(Protocol):
    """A drafter that reads hidden states, whose own state can be kept beside the target's and put back.

    One without taps needs none of this: it observes the tokens again. One with taps and without this is served, and
    nothing is kept for its requests.
    """

    def buffers(self, state: Any) -> Mapping[str, mx.array]:
        """What `observe` made of the tokens: a row for each on the third axis, and perhaps room behind them."""
        ...

    def restore(self, buffers: Mapping[str, mx.array], length: int) -> Any:
        """The state after `length` tokens, from such buffers. They are the state's own from now on."""
        ...
