"""What MLX must find before it is first imported. Nothing here imports it.

MLX's Linux wheel carries the reference BLAS, which is many times slower than OpenBLAS; on a Mac there is nothing to do.
"""

from __future__ import annotations

import ctypes
import logging
import os
import platform
import sys
from pathlib import Path

logger = logging.getLogger(__name__)

# Where Debian, Fedora and Arch keep OpenBLAS.
_PLACES = (
    "/usr/lib/{arch}-linux-gnu/openblas-pthread/libopenblas.so.0",
    "/usr/lib/{arch}-linux-gnu/libopenblas.so.0",
    "/usr/lib64/libopenblasp.so.0",
    "/usr/lib64/libopenblas.so.0",
    "/usr/lib/libopenblas.so.0",
)

_loaded: Path | None = None


def prepare() -> Path | None:
    """Make MLX exact and fast: call before the first import of mlx in the process. Returns the OpenBLAS it will use.

    float32 products on NVIDIA GPUs are computed in float32, not in TF32, which has half the digits. cuDNN's attention
    is off there: MLX keeps one of its plans for every length of the context, and verification meets a new length in
    each round, so that every round would build new plans (tens of milliseconds each). A CUDA graph holds 40 operations
    instead of 20: a forward of a small model has about 160, and each graph costs the processor time, but the device
    waits for the first. New shapes of graphs are no fault: MLX counts them over a process's life and gives up after
    800, which a server of many widths comes to in the end.
    """
    os.environ.setdefault("MLX_ENABLE_TF32", "0")
    os.environ.setdefault("MLX_CUDA_USE_CUDNN_SDPA", "0")
    if sys.platform == "linux":  # Metal reads it too, and knows better
        os.environ.setdefault("MLX_MAX_OPS_PER_BUFFER", "40")
        os.environ.setdefault("MLX_ENABLE_CACHE_THRASHING_CHECK", "0")
    return _load_openblas()


def openblas() -> Path | None:
    """The OpenBLAS that MLX uses in this process, if any."""
    return _loaded


def _load_openblas() -> Path | None:
    global _loaded  # noqa: PLW0603 - a library is loaded once for a process
    if _loaded is not None or sys.platform != "linux" or "mlx.core" in sys.modules:
        return _loaded
    for place in _PLACES:
        path = Path(place.format(arch=platform.machine()))
        if not path.exists():
            continue
        try:
            ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            logger.warning("could not load %s: %s", path, error)
            continue
        _loaded = path
        break
    return _loaded
