"""Taps: layers that leave their outputs where drafters find them, during one forward."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import mlx.core as mx
import mlx.nn as nn

EARLY = 8  # layers of several rows, which Python describes for long enough to let the device begin with them


class Recorder:
    """Where tapped layers leave their outputs during one forward."""

    def __init__(self) -> None:
        self.wanted: frozenset[int] = frozenset()
        self.rows: dict[int, mx.array] = {}
        self.calls: Counter[int] = Counter()  # of each layer, in this forward
        self.starts_early = False  # the device, while Python still describes later layers

    @contextmanager
    def recording(self, taps: Sequence[int], *, starts_early: bool = False) -> Generator[dict[int, mx.array]]:
        self.wanted, self.rows, self.calls, self.starts_early = frozenset(taps), {}, Counter(), starts_early
        try:
            yield self.rows
        finally:
            # The arrays must not outlive the round: they would pin its whole graph.
            self.wanted, self.rows, self.starts_early = frozenset(), {}, False


def tap(layer: nn.Module, index: int, count: int, recorder: Recorder) -> None:
    """Make one of `count` layers record its output. The class changes, not the module: weights and paths stay."""
    plain: Any = type(layer)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        out = plain.__call__(self, *args, **kwargs)
        if recorder.wanted:
            step = recorder.calls[index] * count + index
            recorder.calls[index] += 1
            if index == 0 and step - 1 in recorder.wanted:
                # Before the first layer is the embedding; between two loops a norm, and the tap is behind it.
                recorder.rows[step - 1] = args[0]
            if step in recorder.wanted:
                recorder.rows[step] = out[0] if isinstance(out, tuple) else out
        if recorder.starts_early and (index + 1) % EARLY == 0:
            mx.async_eval(out[0] if isinstance(out, tuple) else out)
        return out

    layer.__class__ = type(f"Tapped{plain.__name__}", (plain,), {"__call__": call})
