"""One answer being written: from the prompt to the last token, saved as it grows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum, auto
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from slipstream.errors import SlipstreamError
from slipstream.events import Delta, Done, Event, Failed, Finish, Measured, Prefill, Queued, decode_tps
from slipstream.measure.result import options_json
from slipstream.prompt.output import Content, OutputParser, Part, Thinking, ToolArguments, ToolCut, ToolEnd, ToolStart
from slipstream.prompt.reasoning import ReasoningCounter
from slipstream.types import ModelInfo, Request, Tokens
from slipstream_app.bridge.session import Session
from slipstream_app.history import History
from slipstream_app.markdown import Block, Splitter
from slipstream_app.messages import Call, Json, Message, State
from slipstream_app.models.chat_jobs import JobFollower
from slipstream_app.models.chat_prompt import Prepared, Prompter, Work

SAVE_MS = 1000  # at most so long is anything unsaved
BLOCK_SAVE_S = 0.25  # finished blocks that come faster are saved together


class Phase(Enum):
    PREPARING = auto()  # the prompt is being made
    WAITING = auto()  # behind other jobs
    READING = auto()  # prefill
    WRITING = auto()
    ENDED = auto()


@dataclass(slots=True)
class Progress:
    """Of the prefill."""

    done: int = 0
    total: int = 0
    reused: int = 0
    began_s: float = 0.0
    told: tuple[float, float] | None = None  # the engine's own estimate of what is left, and when it came

    def left_s(self, now: float) -> float | None:
        """How long it may still take; None before there is anything to go by."""
        if self.told is not None:
            left, at = self.told
            return max(0.0, left - (now - at))
        read = self.done - self.reused
        if read <= 0 or now <= self.began_s:
            return None
        return (self.total - self.done) * (now - self.began_s) / read


@dataclass(slots=True)
class Segment:
    """What one job said. Answers that were continued have several."""

    digest: str  # of its prompt
    prompt_tokens: int
    options: Json
    prefix: str  # the text it went on from, where that was not its tokens
    tokens: list[int] = field(default_factory=list[int])
    steps: list[tuple[str, int, int, int]] = field(default_factory=list[tuple[str, int, int, int]])
    # each: source ("" for the prefill's token), drafted, accepted, tokens

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class Reply(QObject):
    """Fills a running message. Ends exactly once, whatever happens."""

    changed = Signal()  # phase, progress or text
    ended = Signal()

    def __init__(self, history: History, message: Message, facts: Json, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.message = message
        self.phase = Phase.PREPARING
        self.progress = Progress()
        self.blocks: list[Block] = []  # finished
        self.text = ""
        self.thinking = ""
        self.calls: list[Call] = []
        self.thought_s = 0.0
        self.output_tokens = 0
        self._history = history
        self._facts: dict[str, Any] = dict(facts)
        self._splitter = Splitter()
        self._parser: OutputParser | None = None
        self._counter = ReasoningCounter()
        self._segments: list[dict[str, Any]] = []
        self._segment = Segment("", 0, {}, "")
        self._raw = ""
        self._follower: JobFollower | None = None
        self._is_cancelled = False
        self._thinks_since: float | None = None
        self._first_s = self._last_s = 0.0
        self._saved_s = 0.0
        self._ticket = 0
        self._ask: Callable[[Prepared], JobFollower] | None = None
        self._prompter: Prompter | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SAVE_MS)
        self._timer.timeout.connect(self._save)

    # Beginning and end.

    def start(
        self, session: Session, prompter: Prompter, info: ModelInfo, work: Work, trace: Json | None = None
    ) -> None:
        """`work` gives the Prepared prompt; `trace` holds the segments before, of an answer that goes on."""
        self._facts |= {"model": info.name, "dtype": info.dtype, "quantisation": info.quantisation}
        self._facts |= {"context": info.context, "drafters": [mode.value for mode in info.drafters]}
        if trace is not None:
            self._segments = list(trace["segments"])
        self._ask = lambda prepared: JobFollower(session, Request(Tokens(prepared.ids), prepared.options), "chat", self)
        self._prompter = prompter
        prompter.answered.connect(self._prepared)
        self._ticket = prompter.ask(info, work)

    def stop(self) -> None:
        self._is_cancelled = True
        if self._follower is not None:
            self._follower.cancel()
        elif self.phase is not Phase.ENDED:
            self._end(State.STOPPED)

    def abandon(self) -> None:
        """The app ends: keep what there is, now."""
        self.stop()
        if self.phase is not Phase.ENDED:
            self._facts["stopped_by"] = "quit"
            self._end(State.INTERRUPTED)

    @property
    def is_over(self) -> bool:
        return self.phase is Phase.ENDED

    @property
    def tail(self) -> Block | None:
        """The block that may still change."""
        return self._splitter.tail

    @property
    def is_thinking(self) -> bool:
        return self._thinks_since is not None

    @property
    def thought_tokens(self) -> int:
        """So far."""
        return self._counter.finish()

    @property
    def thinking_s(self) -> float:
        """Time spent on thoughts so far."""
        running = 0.0 if self._thinks_since is None else time.monotonic() - self._thinks_since
        return self.thought_s + running

    @property
    def tps(self) -> float:
        return decode_tps(self.output_tokens, self._first_s, self._last_s)

    @Slot(int, object)
    def _prepared(self, ticket: int, answer: object) -> None:
        if ticket != self._ticket or self.phase is not Phase.PREPARING:
            return
        self._let_prompter_go()
        if isinstance(answer, SlipstreamError):
            self._fail(answer)
            return
        assert isinstance(answer, Prepared)
        self.begin(answer)
        assert self._ask is not None
        try:
            self._follower = self._ask(answer)
        except SlipstreamError as error:
            self._fail(error)
            return
        self._follower.said.connect(self.hear)
        self.phase = Phase.WAITING
        self.changed.emit()

    def begin(self, prepared: Prepared) -> None:
        """Get ready to hear what the job says."""
        self._parser = OutputParser(prepared.style, prepared.tools, prepared.opens_in_thinking)
        options = options_json(prepared.options)
        was_cut_at_text = bool(prepared.raw) and not self._segments
        self._segment = Segment(prepared.digest, len(prepared.ids), options, prepared.raw if was_cut_at_text else "")
        self._facts |= {"options": options, "mode": prepared.options.mode.value}
        if prepared.raw:
            self._raw = prepared.raw
            self._take(self._parser.feed(prepared.raw))

    # What the job says.

    @Slot(object)
    def hear(self, event: Event) -> None:
        if self.phase is Phase.ENDED:
            return
        match event:
            case Queued():
                self.phase = Phase.WAITING
            case Prefill(done, total, reused, left_s):
                now = time.monotonic()
                if self.phase is not Phase.READING:
                    self.progress.began_s = now
                self.phase = Phase.READING
                self.progress.told = None if left_s is None else (left_s, now)
                self.progress.done, self.progress.total, self.progress.reused = done, total, reused
            case Delta():
                self._add(event)
            case Done():
                self._finish(event)
                return
            case Failed(error):
                self._fail(error)
                return
            case Measured():  # of a calibration, which answers nobody
                return
        self.changed.emit()

    def _add(self, delta: Delta) -> None:
        assert self._parser is not None
        self.phase = Phase.WRITING
        self._last_s = time.monotonic()
        self._first_s = self._first_s or self._last_s
        made = delta.round
        source, drafted, accepted = ("", 0, 0) if made is None else (made.source, len(made.drafted), made.accepted)
        if delta.tokens:
            self._segment.steps.append((source, drafted, accepted, len(delta.tokens)))
            self._segment.tokens += delta.tokens
            self.output_tokens += len(delta.tokens)
        self._raw += delta.text
        parts = self._parser.feed(delta.text) if delta.text else []
        self._counter.add(len(delta.tokens), parts)
        has_finished_block = self._take(parts)
        if has_finished_block and time.monotonic() - self._saved_s >= BLOCK_SAVE_S:
            self._save()
        elif not self._timer.isActive():
            self._timer.start()

    def _take(self, parts: list[Part]) -> bool:
        """True when a block was finished."""
        before = len(self.blocks)
        for part in parts:
            self._time_thought(isinstance(part, Thinking))
            match part:
                case Content(text):
                    self.text += text
                    self.blocks += self._splitter.feed(text)
                case Thinking(text):
                    self.thinking += text
                case ToolStart(_, call_id, name):
                    self.calls.append(Call(call_id, name, ""))
                case ToolArguments(_, fragment):
                    last = self.calls[-1]
                    self.calls[-1] = Call(last.id, last.name, last.arguments + fragment)
                case ToolEnd(_, call) | ToolCut(_, call):
                    arguments = call.arguments_json if isinstance(part, ToolEnd) else self.calls[-1].arguments
                    self.calls[-1] = Call(call.id, call.name, arguments)
        return len(self.blocks) > before

    def _time_thought(self, is_thought: bool) -> None:
        now = time.monotonic()
        if is_thought and self._thinks_since is None:
            self._thinks_since = now
        elif not is_thought and self._thinks_since is not None:
            self.thought_s += now - self._thinks_since
            self._thinks_since = None

    def _finish(self, done: Done) -> None:
        assert self._parser is not None
        parts = self._parser.finish(done.was_cut)
        self._counter.add(0, parts)
        self._take(parts)
        was_stopped = done.reason is Finish.CANCELLED
        self._facts |= {
            "reason": done.reason.value,
            "timings": {**_timings(done), **self._drafts()},
            "stopped_by": ("user" if self._is_cancelled else "engine") if was_stopped else None,
        }
        self._end(State.STOPPED if was_stopped else State.DONE)

    def _drafts(self) -> Mapping[str, int]:
        """Of this run, as its timings are."""
        steps = self._segment.steps
        return {"drafted": sum(step[1] for step in steps), "accepted": sum(step[2] for step in steps)}

    def _fail(self, error: SlipstreamError) -> None:
        if self._parser is not None:
            self._take(self._parser.finish(cut=True))
        self._facts["error"] = {"code": error.code, "message": error.message}
        self._end(State.FAILED)

    def _end(self, state: State) -> None:
        self._let_prompter_go()
        self._timer.stop()
        self.phase = Phase.ENDED
        if self._parser is None:  # it never began: what an answer that was to go on says already stays as it is
            self._history.save(self.message.id, facts=self._facts, state=state)
        else:
            self._save_all(state)
        self.message = self._history.message(self.message.id)
        self.ended.emit()

    def _save_all(self, state: State) -> None:
        self._time_thought(False)
        self.blocks += self._splitter.finish()
        if self.thinking:
            before_s, before = self._facts.get("thought_s", 0.0), self._facts.get("thought_tokens", 0)
            self._facts["thought_s"] = round(before_s + self.thought_s, 3)
            self._facts["thought_tokens"] = before + self._counter.finish()
        segments = [*self._segments, *([self._segment.as_json()] if self._segment.tokens else [])]
        trace = {"segments": segments, "raw": self._raw} if segments else None
        self._history.save(
            self.message.id, text=self.text, thinking=self.thinking, calls=self.calls, facts=self._facts, state=state,
            trace=trace,
        )  # fmt: skip

    def _let_prompter_go(self) -> None:
        if self._prompter is not None:
            self._prompter.answered.disconnect(self._prepared)
            self._prompter = None

    @Slot()
    def _save(self) -> None:
        self._timer.stop()
        self._saved_s = time.monotonic()
        self._history.save(self.message.id, text=self.text, thinking=self.thinking, calls=self.calls)


def _timings(done: Done) -> Mapping[str, float]:
    """As the API's reply for the same request has them."""
    timings = done.timings
    return {
        "ttft_s": timings.ttft_s,
        "prefill_tps": timings.prefill_tps,
        "decode_tps": timings.decode_tps,
        "tokens_per_round": timings.tokens_per_round,
        "prompt_tokens": timings.prompt_tokens,
        "reused_tokens": timings.reused_tokens,
        "output_tokens": timings.output_tokens,
        "rounds": timings.rounds,
    }
