"""One request's answer in the making: what came so far, where it ends, and the text that may be shown."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from slipstream.engine.round import Decoding, Step
from slipstream.engine.stops import StopStrings
from slipstream.engine.text import Detokeniser
from slipstream.events import Delta, Finish
from slipstream.types import Options


class Answer:
    """`take` each step; it is over once it has a `reason`."""

    def __init__(
        self,
        decode: Callable[..., str],
        options: Options,
        end_ids: tuple[int, ...],
        decoding: Decoding,
    ) -> None:
        self.count = 0  # tokens, the end token included
        self.rounds = 0
        self.first_s = 0.0
        self.last_s = 0.0
        self.reason: Finish | None = None
        self._ends = frozenset(options.stop_ids) | (frozenset() if options.ignore_eos else frozenset(end_ids))
        self._text = Detokeniser(decode)
        self._stops = StopStrings(options.stop)
        self._decoding = decoding

    @property
    def stop(self) -> str | None:
        return self._stops.matched

    def take(self, step: Step) -> Delta:
        """One step's tokens up to where the answer ends. An end token counts as output and has no text."""
        self.last_s = time.monotonic()
        self.first_s = self.first_s or self.last_s
        self.rounds += step.round is not None
        if not self._stops.has_any:
            count, text = self._take_all(step)
        else:
            count, text = self._take_each(step)
        self.count += count
        if self.reason is None and self._decoding.is_finished:
            self.reason = Finish.STOP
        if self.reason is None and self._decoding.room <= 0:
            self.reason = Finish.LENGTH
        made = step.round
        if made is not None and made.accepted > count:  # what was kept beyond the end is not part of the answer
            made = replace(made, accepted=count)
        return Delta(text, step.tokens[:count], made, step.logprobs[:count], step.margins[:count])

    def _take_all(self, step: Step) -> tuple[int, str]:
        end = next((i for i, token in enumerate(step.tokens) if token in self._ends), None)
        if end is None:
            return len(step.tokens), self._text.feed(step.tokens)
        self.reason = Finish.STOP
        return end + 1, self._text.feed(step.tokens[:end])

    def _take_each(self, step: Step) -> tuple[int, str]:
        """Token by token, so that nothing after the token that completes a stop string counts."""
        shown = ""
        for index, token in enumerate(step.tokens):
            if token in self._ends:
                self.reason = Finish.STOP
                return index + 1, shown
            shown += self._stops.feed(self._text.feed([token]))
            if self._stops.matched is not None:
                self.reason = Finish.STOP
                return index + 1, shown
        return len(step.tokens), shown

    def end(self, reason: Finish) -> None:
        self.reason = reason

    def rest(self) -> str:
        """Text that was held back and is now final. Nothing after a stop string."""
        if self._stops.matched is not None:
            return ""
        return self._stops.feed(self._text.finish()) + self._stops.finish()
