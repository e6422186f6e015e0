"""The same answer plainly and with drafts, right after a pair was loaded: how much faster it is here."""

from __future__ import annotations

from collections.abc import Sequence

from slipstream.errors import SlipstreamError
from slipstream.events import Delta, Done, Event, Failed, Timings
from slipstream.jobs import Job
from slipstream.types import Chat, Mode, Options, Request
from slipstream_app.bridge.session import Session

TEST_TOKENS = 64
# A draft is easiest to guess right where the text is code.
TEST_PROMPT = "Write a Python function that returns the n-th Fibonacci number, with a docstring."


class SelfTest:
    """The same request plainly, then with drafts. Not on the main thread's time: it only listens."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._modes = [Mode.BASELINE, Mode.AUTO]
        self._job: Job | None = None
        self._tokens: list[list[int]] = []
        self._timings: list[Timings] = []
        self._is_cancelled = False
        self.error = ""
        self._next()

    def take(self, number: int, event: Event) -> bool:
        """True when the test is over."""
        if self._job is None or number != self._job.number:
            return False
        match event:
            case Delta(tokens=tokens):
                self._tokens[-1].extend(tokens)
            case Failed(error):
                self.error = error.message
                return True
            case Done(timings=timings):
                self._timings.append(timings)
                if self._is_cancelled or not self._modes:
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
    def speedup(self) -> float | None:
        if self._is_cancelled or len(self._timings) < 2 or not self.plain:
            return None
        return self.fast / self.plain

    @property
    def plain(self) -> float:
        return self._timings[0].decode_tps

    @property
    def fast(self) -> float:
        return self._timings[1].decode_tps

    @property
    def is_same(self) -> bool:
        return self._tokens[0] == self._tokens[1]

    def _next(self) -> None:
        messages: Sequence[dict[str, str]] = ({"role": "user", "content": TEST_PROMPT},)
        options = Options(max_tokens=TEST_TOKENS, mode=self._modes.pop(0), ignore_eos=True)
        self._tokens.append([])
        self._job = self._session.submit(Request(Chat(tuple(messages)), options), source="self-test")
