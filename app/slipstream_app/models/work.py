"""Work that must not stall the window: done on a thread of its own, its outcome brought back to the main one."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from PySide6.QtCore import QObject, Signal, Slot

from slipstream.errors import SlipstreamError

logger = logging.getLogger(__name__)

Result = TypeVar("Result")


class Work(QObject):
    """`do(work, then, or_else)`: exactly one of the last two is called, on the main thread."""

    _over = Signal(object)  # a function of no arguments

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._over.connect(self._on_over)

    def do(
        self,
        work: Callable[[], Result],
        then: Callable[[Result], object],
        or_else: Callable[[SlipstreamError], object],
        name: str = "slipstream-work",
    ) -> None:
        def run() -> None:
            try:
                result = work()
            except SlipstreamError as error:
                refused = error
                self._tell(lambda: or_else(refused))
            except Exception as error:
                logger.exception("%s failed", name)
                unforeseen = SlipstreamError(f"this failed ({type(error).__name__}: {error}); see the log")
                self._tell(lambda: or_else(unforeseen))
            else:
                self._tell(lambda: then(result))

        # It may wait for another program: the app does not wait for it when it ends.
        threading.Thread(target=run, name=name, daemon=True).start()

    def _tell(self, outcome: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the window is gone
            self._over.emit(outcome)

    @Slot(object)
    def _on_over(self, outcome: Callable[[], object]) -> None:
        outcome()
