"""Verify: an answer once more, by the model alone, with the same prompt, options and seed; then the verdict."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal, Slot

from slipstream.errors import InvalidRequest, SlipstreamError
from slipstream.events import Delta, Done, Event, Failed, Finish, Margin
from slipstream.measure.result import options_from_json
from slipstream.measure.verdict import Comparison, Verdict, compare, first_difference
from slipstream.types import Mode, ModelInfo, Options, Request, Tokens
from slipstream_app.bridge.session import Session
from slipstream_app.messages import Json, Message
from slipstream_app.models.chat_jobs import JobFollower
from slipstream_app.models.chat_parameters import Parameters
from slipstream_app.models.chat_prompt import Prompter, digest, encode

if TYPE_CHECKING:
    from slipstream.server.backend import ServerTokeniser


@dataclass(frozen=True, slots=True)
class Replay:
    """One segment of the answer: its prompt, how it was made, what it said."""

    ids: tuple[int, ...]
    options: Options
    said: tuple[int, ...]
    is_whole: bool = False  # it ended by itself, so that the model alone has to end there too

    @property
    def limit(self) -> int:
        """Tokens to ask for: one more than were said shows whether the model alone would go on."""
        return min(len(self.said) + 1, self.options.max_tokens) if self.is_whole else len(self.said)


def replays(
    tokeniser: ServerTokeniser, path: Sequence[Message], parameters: Parameters, trace: Json
) -> tuple[Replay, ...]:
    """For the last message of `path`. Raises InvalidRequest when its prompt cannot be made again."""
    question = path[:-1]
    ids: list[int] = []
    out: list[Replay] = []
    for segment in trace["segments"]:
        if not ids or segment["prefix"]:
            ids = encode(tokeniser, question, parameters, segment["prefix"])
        if digest(ids) != segment["digest"]:
            raise InvalidRequest(
                "this answer's prompt is not the one it was made from any more (another model or template is loaded); "
                "load the pair that wrote it"
            )
        said = tuple(segment["tokens"])
        out.append(Replay(tuple(ids), options_from_json(segment["options"]), said))
        ids = [*ids, *said]
    if out and path[-1].facts.get("reason") == Finish.STOP.value:
        out[-1] = replace(out[-1], is_whole=True)
    return tuple(out)


class Verification(QObject):
    """Runs as jobs of the one inbox. Ends exactly once: with `compared` or `failed`."""

    progressed = Signal(int, int)  # tokens compared, tokens in all
    compared = Signal(object)  # Comparison
    failed = Signal(object)  # SlipstreamError; None when it was cancelled

    def __init__(self, session: Session, info: ModelInfo, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._info = info
        self._queue: list[Replay] = []
        self._current: Replay | None = None
        self._own: list[int] = []
        self._margins: list[Margin] = []
        self._wanted: list[Options] = []  # runs whose margins are still to be taken, plain first
        self._position = 0
        self._found: list[Margin] = []
        self._follower: JobFollower | None = None
        self._done = self._total = 0
        self._ticket = 0
        self._prompter: Prompter | None = None
        self._is_over = False

    def start(self, prompter: Prompter, path: Sequence[Message], parameters: Parameters, trace: Json) -> None:
        self._prompter = prompter
        prompter.answered.connect(self._prepared)
        self._ticket = prompter.ask(self._info, lambda tokeniser: replays(tokeniser, path, parameters, trace))

    def cancel(self) -> None:
        if not self._is_over:
            self._end(None)

    @Slot(int, object)
    def _prepared(self, ticket: int, answer: object) -> None:
        if ticket != self._ticket or self._is_over:
            return
        if isinstance(answer, SlipstreamError):
            self._end(answer)
            return
        assert isinstance(answer, tuple)
        self._queue = list(answer)
        self._total = sum(len(replay_.said) for replay_ in self._queue)
        self._next()

    def _next(self) -> None:
        if not self._queue:
            self._end(Comparison(Verdict.IDENTICAL))
            return
        self._current = self._queue.pop(0)
        self._own = []
        self._ask(replace(self._current.options, mode=Mode.BASELINE, max_tokens=self._current.limit, logprobs=None))

    def _ask(self, options: Options) -> None:
        assert self._current is not None
        try:
            self._follower = JobFollower(self._session, Request(Tokens(self._current.ids), options), "verify", self)
        except SlipstreamError as error:
            self._end(error)
            return
        self._follower.said.connect(self._hear)

    @Slot(object)
    def _hear(self, event: Event) -> None:
        if self._is_over:
            return
        match event:
            case Failed(error):
                self._end(error)
            case Delta() if self._wanted:
                self._margins += event.margins
                if len(self._margins) > self._position:
                    self._take_margin()
            case Delta():
                self._own += event.tokens
                self.progressed.emit(self._done + len(self._own), self._total)
            case Done(reason=Finish.CANCELLED):
                self._end(None)
            case Done() if self._wanted:
                self._end(InvalidRequest("the run ended before the token that differed, so it does not repeat itself"))
            case Done():
                self._judge()
            case _:
                pass

    def _judge(self) -> None:
        assert self._current is not None
        said = list(self._current.said)
        own = self._own
        self._done += len(said)
        position = first_difference(own, said)
        if position is None:
            self._next()
        elif position >= min(len(own), len(said)):
            self._end(compare(own, said, None, self._info.dtype))
        else:
            self._position, self._found, self._margins = position, [], []
            chosen = replace(self._current.options, margins=True, logprobs=None)
            self._wanted = [replace(chosen, mode=Mode.BASELINE), chosen]
            self._ask(self._wanted[0])

    def _take_margin(self) -> None:
        assert self._current is not None
        assert self._follower is not None
        self._follower.forget()
        self._found.append(self._margins[self._position])
        self._margins = []
        self._wanted.pop(0)
        if self._wanted:
            self._ask(self._wanted[0])
            return
        said = list(self._current.said)
        margins = (self._found[0], self._found[1])
        self._end(compare(self._own, said, margins, self._info.dtype))

    def _end(self, outcome: Comparison | SlipstreamError | None) -> None:
        self._is_over = True
        if self._prompter is not None:
            self._prompter.answered.disconnect(self._prepared)
            self._prompter = None
        if self._follower is not None:
            self._follower.forget()
        if isinstance(outcome, Comparison):
            self.compared.emit(outcome)
        else:
            self.failed.emit(outcome)


def verdict_json(comparison: Comparison, tokens: int) -> dict[str, Any]:
    """As a message keeps it: with its date, as a verdict is of one run on one day."""
    return {
        "verdict": comparison.verdict.value,
        "position": comparison.position,
        "margins": None if comparison.margins is None else [asdict(margin) for margin in comparison.margins],
        "tokens": tokens,
        "at_s": time.time(),
    }
