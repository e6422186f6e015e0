"""How much memory the loaded model and this process take, as far as that can be told without the engine."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from pathlib import Path

_FOOTPRINT_AT = 72  # bytes into rusage_info_v0 (sys/resource.h): the figure that Activity Monitor shows
_RUSAGE_V0_BYTES = 96


def weights_bytes(folder: Path) -> int:
    """The model's weight files, whose bytes lie in memory once it is loaded. 0 for what is no folder."""
    try:
        return sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    except OSError:
        return 0


def peak_bytes() -> int:
    """The most this process ever held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def held_bytes() -> int:
    """What this process holds now, the GPU's share included where memory is one; where nobody says, the most ever."""
    if sys.platform == "darwin":
        return _footprint() or peak_bytes()
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return peak_bytes()
    return pages * os.sysconf("SC_PAGE_SIZE")


def _footprint() -> int:
    """0: the system did not say."""
    told = ctypes.create_string_buffer(4 * _RUSAGE_V0_BYTES)
    try:
        failed = ctypes.CDLL("/usr/lib/libproc.dylib").proc_pid_rusage(os.getpid(), 0, told)
    except (OSError, AttributeError):
        return 0
    return 0 if failed else int.from_bytes(told.raw[_FOOTPRINT_AT : _FOOTPRINT_AT + 8], sys.byteorder)
