"""Memory that nobody uses any more, and that MLX and the C library keep for the next time. On the engine's thread."""

from __future__ import annotations

import ctypes
import sys

import mlx.core as mx

MOST_CACHED = 2**30  # bytes of buffers kept for reuse on a GPU; MLX's own limit there is nearly all memory


def bound() -> None:
    """Keep no more than so much: every length a cache of keys grows through is a buffer of another size."""
    if mx.default_device() == mx.gpu:
        mx.set_cache_limit(min(MOST_CACHED, _memory() // 32))


def give_back() -> None:
    """To the system. What is asked for next costs a little more."""
    mx.clear_cache()
    if _trim is not None:
        _trim(0)


def _memory() -> int:
    return int(mx.device_info().get("memory_size") or mx.device_info().get("total_memory") or 32 * MOST_CACHED)


def _find_trim() -> ctypes._NamedFuncPointer | None:
    """glibc keeps what was freed between things that are in use, until it is told not to."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None


_trim = _find_trim()
