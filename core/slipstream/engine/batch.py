"""Requests that decode together. The service's turns stay what they are: a job's turn gives it one round's step.

Whoever's turn comes first runs the round for all that wait for one; the others find their step at their own turn.
So rows join and leave between rounds, and between two rounds every prompt that is being read gets one chunk.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from slipstream.engine.round import Decoding, Step, decode_round
from slipstream.engine.share import Share
from slipstream.errors import SlipstreamError
from slipstream.models.target import Target


class Batch:
    """`most` rows share a round; 1: each has its own."""

    def __init__(self, target: Target, most: int) -> None:
        self._target = target
        self._most = most
        self._share = Share()
        self._rows: list[Decoding] = []  # by the turn of their last round, the latest at the end
        self._ready: dict[Decoding, Step | SlipstreamError] = {}

    @property
    def is_waiting(self) -> bool:
        """Whether requests that share rounds wait for their next one."""
        return self._most > 1 and bool(self._rows)

    @contextmanager
    def joined(self, row: Decoding) -> Generator[None]:
        """While a request decodes."""
        self._rows.append(row)
        try:
            yield
        finally:
            self._rows.remove(row)
            self._ready.pop(row, None)

    def step(self, row: Decoding) -> Step:
        """The row's next step. Raises what its own request could not do; any other error is the whole round's."""
        if row not in self._ready:
            waiting = [other for other in self._rows if other is not row and other not in self._ready]
            together = [row, *waiting[: self._most - 1]]
            for member in together:
                self._rows.remove(member)
                self._rows.append(member)
            steps = decode_round(self._target, together, self._share if len(together) > 1 else None)
            self._ready |= dict(zip(together, steps, strict=True))
        step = self._ready.pop(row)
        if isinstance(step, SlipstreamError):
            raise step
        return step
