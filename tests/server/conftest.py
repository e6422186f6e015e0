"""Every test of the server leaves no thread behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from fakes import Served, serving
from server.requests import chat


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """One server for tests that ask it for nothing special."""
    with serving() as one:
        chat(one.url)  # its threads are all there now
        yield one


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + 2
    while left := [thread for thread in threading.enumerate() if thread not in before]:
        assert time.monotonic() < deadline, f"left running: {left}"
        time.sleep(0.01)
