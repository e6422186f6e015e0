"""How log lines are written: never with what users or models wrote."""

from __future__ import annotations

import logging
import traceback
from types import TracebackType

# Their messages are about machines: shapes, files, memory. Those of other errors may quote a prompt or an answer.
_SPEAKING = (RuntimeError, MemoryError)  # and OSError with its kinds

LINE = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"

_ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class Formatter(logging.Formatter):
    """Tracebacks as usual, but of most errors the kind alone: their words may be somebody's prompt."""

    def formatException(self, ei: _ExcInfo) -> str:  # noqa: N802 - logging's own name
        _, error, _ = ei
        blocks: list[str] = []
        while error is not None:
            frames = "".join(traceback.format_tb(error.__traceback__)).rstrip()
            says = f": {error}" if isinstance(error, OSError) or type(error) in _SPEAKING else ""
            blocks.append(f"Traceback (most recent call last):\n{frames}\n{type(error).__qualname__}{says}")
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        return "\n\nwhich came of\n\n".join(blocks)


def to_stderr() -> None:
    """Warnings and errors to standard error, where no other handler is."""
    root = logging.getLogger()
    if not root.handlers:
        handler = logging.StreamHandler()
        handler.setLevel(logging.WARNING)
        handler.setFormatter(Formatter())
        root.addHandler(handler)
