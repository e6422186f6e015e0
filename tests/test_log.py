from __future__ import annotations

import logging

import pytest

from slipstream.log import Formatter

SECRET = "what the user asked"


def logged(error: Exception) -> str:
    """How an error raised in here, and caught, is written."""

    def fail() -> None:
        try:
            raise KeyError(SECRET)
        except KeyError:
            raise error  # noqa: B904 - the context is a part of the test

    try:
        fail()
    except Exception as caught:  # any kind
        record = logging.LogRecord("x", logging.ERROR, "x.py", 1, "it failed", (), (type(caught), caught, None))
        record.exc_info = (type(caught), caught, caught.__traceback__)
        return Formatter().format(record)
    raise AssertionError


@pytest.mark.parametrize(
    "error", [ValueError(SECRET), UnicodeEncodeError("ascii", SECRET, 0, 1, "no"), KeyError(SECRET)]
)
def test_the_log_gets_the_place_and_not_the_words(error: Exception) -> None:
    text = logged(error)
    assert SECRET not in text
    assert type(error).__name__ in text
    assert text.count("Traceback") == 2
    assert "in fail" in text


def test_what_machines_say_is_kept() -> None:
    assert "RuntimeError: [matmul] shapes do not fit" in logged(RuntimeError("[matmul] shapes do not fit"))
    assert "No space left" in logged(OSError(28, "No space left on device"))
