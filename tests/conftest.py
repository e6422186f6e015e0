"""Options and fixtures of the whole suite."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

os.environ.setdefault("MLX_ENABLE_TF32", "0")  # as the program does: float32 is float32 on NVIDIA GPUs
os.environ.setdefault("MLX_DISABLE_COMPILE", "1")  # on Linux it would run g++ for each new function
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

DATA = Path(__file__).parent / "data"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("slipstream")
    group.addoption("--goldens", type=Path, default=DATA / "goldens", help="folder of golden folders to check")
    group.addoption("--traces", type=Path, default=None, help="a trace file to check instead of the small default")
    group.addoption("--limit", type=int, default=None, help="check only so many rows of the trace file")
    group.addoption("--drafters", type=Path, default=None, help="folder with the drafters that the traces were made by")
