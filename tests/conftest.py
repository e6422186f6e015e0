"""Options and fixtures of the whole suite."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
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


@pytest.fixture(scope="session", autouse=True)
def known_pairs() -> Iterator[Callable[[Path, Path], bool] | None]:
    """Drafters count as measured before: random ones never pass, and measuring is nearly all of a tiny pair's load.

    The measuring itself is in `tests/engine/test_self_test.py`, which asks for `unknown_pairs`. Gives what was there.
    """
    module = sys.modules.get("slipstream.engine.self_test")  # not there: nothing that was collected loads a pair
    if module is None:
        yield None
        return
    with pytest.MonkeyPatch.context() as patch:
        own = module.has_passed
        patch.setattr(module, "has_passed", lambda target, drafter: True)
        yield own


@pytest.fixture
def unknown_pairs(known_pairs: Callable[[Path, Path], bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Drafters are measured when they are first loaded, as for users."""
    monkeypatch.setattr("slipstream.engine.self_test.has_passed", known_pairs)
