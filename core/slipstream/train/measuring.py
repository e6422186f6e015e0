"""What forwards of a target cost on this machine, and how surely."""

from __future__ import annotations

import time

import mlx.core as mx

from slipstream.models.target import Target

CONTEXT, TIMES = 64, 5


def forward_seconds(target: Target, rows: int) -> list[tuple[float, float]]:
    """A forward of one token and one of `rows` behind a short context, in turn, a few times."""
    ids = mx.array([1, 2] * (CONTEXT // 2), dtype=mx.int32)
    cache = target.make_cache()
    mx.eval(target.forward(ids, cache, rows=1).logits)

    def once(count: int) -> float:
        began = time.perf_counter()
        mx.eval(target.forward(ids[:count], cache, rows=count).logits)
        return time.perf_counter() - began

    for count in (1, rows):
        once(count)  # kernels are compiled at their first use
    return [(once(1), once(rows)) for _ in range(TIMES)]
