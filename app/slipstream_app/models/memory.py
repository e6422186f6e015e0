"""How much memory the loaded model and this process take, as far as that can be told without the engine."""

from __future__ import annotations

import resource
import sys
from pathlib import Path


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
