"""The calling thread's streams: MLX has them by thread, and once cleared they do not come back by themselves."""

from __future__ import annotations

from contextlib import suppress

import mlx.core as mx


def renew() -> None:
    """Give this thread new default streams where an engine that was closed on it has cleared them."""
    for device in (mx.cpu, *([mx.gpu] if _has_gpu() else [])):
        try:
            mx.eval(mx.add(mx.array(0), mx.array(0), stream=device))
        except RuntimeError:
            mx.set_default_stream(mx.new_stream(device))


def _has_gpu() -> bool:
    with suppress(RuntimeError):
        return bool(mx.is_available(mx.gpu))
    return False
