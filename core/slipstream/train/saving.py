"""Weights to files."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import Path

import mlx.core as mx

from slipstream.errors import reason


def save(path: Path, weights: Mapping[str, mx.array], metadata: Mapping[str, str] | None = None) -> None:
    """Raises OSError as other writing does: MLX calls a full disk a RuntimeError."""
    try:
        mx.save_safetensors(str(path), dict(weights), metadata=dict(metadata or {}))
    except RuntimeError as error:
        raise OSError(errno.EIO, reason(error), str(path)) from error
