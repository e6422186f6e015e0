"""Recurrent layers that can go back: what a round's recurrences consumed, and the state after its first few rows.

mlx-lm's layers keep only their newest state. During a round we note what went into each recurrence and convolution;
taking rows back then repeats the recurrence alone, from the state before the round over the rows that stay
(drafters.md §6). No projection and no attention is computed twice, and nothing here knows an architecture by name.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.cache import ArraysCache

Replay = Callable[[int], mx.array]
"""The state after the first so many rows of the round, at least one."""


@dataclass(frozen=True, slots=True)
class Recurrence:
    """One of mlx-lm's step functions: it returns (outputs, new state)."""

    rows: tuple[str, ...]  # arguments that have a row per token
    axis: int  # of those rows, in the arguments and in the outputs
    state: str = "state"
    row_by_row: bool = False  # many rows at once round differently from one at a time


RECURRENCES = {
    "gated_delta_update": Recurrence(("q", "k", "v", "a", "b"), axis=1),
    # For several rows mlx-lm takes the chunked form of Mamba-2. A round is short, and steps one row at a time give
    # exactly what plain decoding gives.
    "ssm_update": Recurrence(("hidden_states", "B", "C", "dt"), axis=1, row_by_row=True),
    "recurrent_gla": Recurrence(("q", "k", "v"), axis=2, state="h"),
    "rnn_scan": Recurrence(("x", "a"), axis=1, state="h0"),
}
"""By the name under which mlx-lm's model files call them."""


class _Tape(threading.local):
    """What the forward that is under way on this thread has noted and nobody has claimed yet."""

    is_on = False

    def __init__(self) -> None:
        self.steps: list[tuple[mx.array, Replay]] = []  # a recurrence's new state, and how to get earlier ones
        self.windows: list[tuple[StateCache, int, mx.array]] = []  # conv windows whose convolution is still to come
        self.convolved: list[mx.array] = []  # inputs of convolutions whose window is still to come


_tape = _Tape()


@contextmanager
def noting() -> Generator[None]:
    """Within it, forwards note what they consume, so that their rows can be taken back."""
    _tape.is_on = True
    try:
        yield
    finally:
        _tape.is_on = False
        _tape.__init__()  # arrays must not outlive the forward here


class StateCache(ArraysCache):
    """A recurrent layer's state. It goes back within the last forward, if that one was noted and understood.

    `trim` may be called again for the same forward, to go back further. A state that cannot be rebuilt makes the
    layer untrimmable until the next forward.
    """

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._before: list[mx.array | None] | None = None  # the state before the last forward, if that was noted
        self._replays: dict[int, Replay] = {}
        self._rows = 0  # of the last forward
        self._kept = 0  # of those, how many have not been taken back

    def start(self, rows: int, *, noted: bool) -> None:
        """A forward of `rows` tokens begins."""
        self._before = list(self.cache) if noted else None
        self._replays = {}
        self._rows = self._kept = rows

    def __setitem__(self, idx: int, value: mx.array) -> None:
        super().__setitem__(idx, value)
        if not _tape.is_on or self._before is None:
            return
        for at, (state, replay) in enumerate(_tape.steps):
            if state is value:
                del _tape.steps[at]
                self._replays[idx] = replay
                return
        for at, padded in enumerate(_tape.convolved):
            if self._take_window(idx, value, padded):
                del _tape.convolved[at]
                return
        _tape.windows.append((self, idx, value))

    def _take_window(self, idx: int, window: mx.array, padded: mx.array) -> bool:
        """Whether `window` is the end of a convolution's input: its last rows, behind which `padded` has the rest."""
        keep = window.shape[1] if window.ndim == 3 else 0
        if not keep or padded.shape != (1, keep + self._rows, window.shape[2]):
            return False
        self._replays[idx] = lambda kept: mx.contiguous(padded[:, kept : kept + keep])
        return True

    @property
    def reach(self) -> int:
        """How many rows can be taken back."""
        return self._kept if self.is_trimmable() else 0

    def is_trimmable(self) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride] - mlx-lm's says Literal[False]
        return self._before is not None and len(self._replays) == len(self.cache)

    def trim(self, n: int) -> int:
        assert self._before is not None
        assert n <= self._kept
        self._kept -= n
        for idx, before in enumerate(self._before):
            self.cache[idx] = self._replays[idx](self._kept) if self._kept else before
        return n

    def copied(self) -> StateCache:
        copy = StateCache(len(self.cache))
        copy.cache = list(self.cache)  # a state is replaced, never written into
        copy._before, copy._replays = self._before, dict(self._replays)
        copy._rows, copy._kept = self._rows, self._kept
        return copy


def watch(model: nn.Module) -> None:
    """Make a loaded model's recurrences and convolutions known to the tape. Outside a round they are as before.

    Step functions are looked up by mlx-lm's model files in their own globals, so that is where they are wrapped.
    """
    for _, module in model.named_modules():
        if type(module) is nn.Conv1d:
            module.__class__ = _NotedConv1d
        file = sys.modules[type(module).__module__]
        for name, recurrence in RECURRENCES.items():
            step = getattr(file, name, None)
            if step is not None and not hasattr(step, "__wrapped__"):
                setattr(file, name, _noted(step, recurrence))


class _NotedConv1d(nn.Conv1d):
    def __call__(self, x: mx.array) -> mx.array:
        if _tape.is_on:
            for at, (cache, idx, window) in enumerate(_tape.windows):
                if cache._take_window(idx, window, x):
                    del _tape.windows[at]
                    break
            else:
                _tape.convolved.append(x)
        return super().__call__(x)


Step = Callable[..., tuple[mx.array, mx.array]]


def _noted(step: Step, recurrence: Recurrence) -> Step:
    names = tuple(inspect.signature(step).parameters)

    @wraps(step)
    def run(*args: Any, **kwargs: Any) -> tuple[mx.array, mx.array]:
        if not _tape.is_on:
            return step(*args, **kwargs)
        call = dict(zip(names, args, strict=False)) | kwargs
        count = call[recurrence.rows[0]].shape[recurrence.axis]

        def over(first: int, end: int, state: mx.array | None) -> tuple[mx.array, mx.array]:
            rows = {name: _rows(call[name], recurrence.axis, first, end) for name in recurrence.rows}
            return step(**call | rows | {recurrence.state: state})

        def steps(end: int) -> tuple[mx.array, mx.array]:
            before: mx.array | None = call.get(recurrence.state)
            if not recurrence.row_by_row:
                return over(0, end, before)
            output, state = over(0, 1, before)
            outputs = [output]
            for row in range(1, end):
                output, state = over(row, row + 1, state)
                outputs.append(output)
            return mx.concatenate(outputs, axis=recurrence.axis), state

        output, state = steps(count)
        _tape.steps.append((state, lambda kept: state if kept == count else steps(kept)[1]))
        return output, state

    return run


def _rows(array: mx.array, axis: int, first: int, end: int) -> mx.array:
    index = (slice(None),) * axis + (slice(first, end),)
    return array[index]
