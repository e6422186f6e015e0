"""How `slipstream train` is paused and stopped from outside."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from slipstream.train.loop import Control
from slipstream.train.process import PAUSE, RESUME


class Listener:
    """Ctrl-C and SIGTERM stop after the step or file that is being made; a second Ctrl-C stops at once.

    A second SIGTERM does not: systems and windows send it again to whoever takes long to save.
    """

    def __init__(self, control: Control) -> None:
        self._control = control
        self._is_interrupted = False

    @property
    def code(self) -> int:
        """What a stopped command ends with: 130 after Ctrl-C, as the other commands."""
        return 130 if self._is_interrupted else 0

    @contextmanager
    def listening(self) -> Generator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        heard: dict[int, Any] = {
            signal.SIGINT: self._interrupt,
            signal.SIGTERM: lambda *_: self._control.stop(),
            PAUSE: lambda *_: self._control.pause(),
            RESUME: lambda *_: self._control.resume(),
        }
        before = {number: signal.signal(number, handler) for number, handler in heard.items()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _interrupt(self, *_: object) -> None:
        self._is_interrupted = True
        self._control.stop()
        signal.signal(signal.SIGINT, signal.default_int_handler)
