"""The same answers plainly and with drafts, right after a pair was loaded: how much faster it is here."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from slipstream.errors import SlipstreamError
from slipstream.events import Delta, Done, Event, Failed, Timings
from slipstream.jobs import Job
from slipstream.types import Chat, Mode, Options, Request
from slipstream_app.bridge.session import Session

TEST_TOKENS = 64


class Kind(StrEnum):
    """How easily a text can be drafted differs by what it is."""

    CODE = "code"
    PROSE = "prose"


PROMPTS = {
    Kind.CODE: "Write a Python function that returns the n-th Fibonacci number, with a docstring.",
    Kind.PROSE: "Write the opening paragraph of a story that is set in a lighthouse.",
}


@dataclass(slots=True)
class Run:
    """One answer."""

    kind: Kind
    mode: Mode
    tokens: list[int] = field(default_factory=list[int])
    timings: Timings | None = None

    @property
    def tps(self) -> float:
        return 0.0 if self.timings is None else self.timings.decode_tps


class SelfTest:
    """Each prompt plainly, then with drafts. Not on the main thread's time: it only listens."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._left = [(kind, mode) for kind in Kind for mode in (Mode.BASELINE, Mode.AUTO)]
        self._job: Job | None = None
        self._runs: list[Run] = []
        self._is_cancelled = False
        self.error = ""
        self._next()

    def take(self, number: int, event: Event) -> bool:
        """True when the test is over."""
        if self._job is None or number != self._job.number:
            return False
        match event:
            case Delta(tokens=tokens):
                self._runs[-1].tokens.extend(tokens)
            case Failed(error):
                self.error = error.message
                return True
            case Done(timings=timings):
                self._runs[-1].timings = timings
                if self._is_cancelled or not self._left:
                    return True
                try:
                    self._next()
                except SlipstreamError as error:  # the engine was lost, or is busy, between the two
                    self.error = error.message
                    return True
            case _:
                pass
        return False

    def cancel(self) -> None:
        self._is_cancelled = True
        if self._job is not None:
            self._job.cancel()

    @property
    def speedups(self) -> dict[Kind, float]:
        """Of plain decoding's speed; empty unless the whole test was made."""
        if self._is_cancelled or self._left or not all(run.tps for run in self._runs):
            return {}
        return {kind: self._speed(kind, Mode.AUTO) / self._speed(kind, Mode.BASELINE) for kind in Kind}

    @property
    def speedup(self) -> float | None:
        """Over all kinds, each counting alike."""
        found = self.speedups
        return math.prod(found.values()) ** (1 / len(found)) if found else None

    @property
    def plain(self) -> float:
        """Tokens a second over all kinds, as `speedup`."""
        return math.prod(self._speed(kind, Mode.BASELINE) for kind in Kind) ** (1 / len(Kind))

    @property
    def is_same(self) -> bool:
        return all(one.tokens == other.tokens for one, other in zip(self._runs[::2], self._runs[1::2], strict=False))

    def _speed(self, kind: Kind, mode: Mode) -> float:
        return next(run.tps for run in self._runs if (run.kind, run.mode) == (kind, mode))

    def _next(self) -> None:
        kind, mode = self._left.pop(0)
        options = Options(max_tokens=TEST_TOKENS, mode=mode, ignore_eos=True)
        self._runs.append(Run(kind, mode))
        request = Request(Chat(({"role": "user", "content": PROMPTS[kind]},)), options)
        self._job = self._session.submit(request, source="self-test")
