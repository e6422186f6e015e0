"""What the engine's events amount to: rounds, speeds and shares, by source. Fixed memory, no timers, no widgets."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from slipstream.events import Delta, Done, Event, Failed, Finish, Prefill, Timings, decode_tps
from slipstream.types import Mode, Request
from slipstream_app.bridge.bus import Bus

if TYPE_CHECKING:  # it imports starlette
    from slipstream.server.request_log import RequestRecord

ROUNDS = 3600  # kept for the charts
WINDOW_S = 60.0  # shown by the speed chart
BIN_S = 1.0
MIN_PLAIN_TOKENS = 16  # a shorter plain answer says too little of its speed
ALL = ""  # the filter that lets every source through

DRAFTER, NGRAM, MODEL = "D", "N", "M"


@dataclass(frozen=True, slots=True)
class RoundPoint:
    """One round, or the token that came from the prompt."""

    at_s: float  # monotonic
    job: int
    source: str  # "chat", "race", or a client's name
    letter: str  # who drafted what was kept: D, N, or M for the model alone
    drafted: int
    accepted: int
    tokens: int


@dataclass(slots=True)
class Figures:
    """Totals of one source. Shares are None until there is something to share."""

    requests: int = 0
    prompt_tokens: int = 0
    reused_tokens: int = 0
    output_tokens: int = 0
    rounds: int = 0
    round_tokens: int = 0  # that came from rounds: all but each answer's first
    drafted: int = 0
    accepted: int = 0
    offered_at: list[int] = field(default_factory=list[int])  # by position in the draft
    accepted_at: list[int] = field(default_factory=list[int])
    by_letter: dict[str, int] = field(default_factory=dict[str, int])  # rounds
    last: Timings | None = None  # of the request that ended last

    def add_round(self, point: RoundPoint) -> None:
        self.rounds += 1
        self.round_tokens += point.tokens
        self.drafted += point.drafted
        self.accepted += point.accepted
        self.by_letter[point.letter] = self.by_letter.get(point.letter, 0) + 1
        while len(self.offered_at) < point.drafted:
            self.offered_at.append(0)
            self.accepted_at.append(0)
        for position in range(point.drafted):
            self.offered_at[position] += 1
            self.accepted_at[position] += position < point.accepted

    def add_request(self, timings: Timings) -> None:
        self.requests += 1
        self.prompt_tokens += timings.prompt_tokens
        self.reused_tokens += timings.reused_tokens
        self.output_tokens += timings.output_tokens
        self.last = timings

    def add(self, other: Figures) -> None:
        self.requests += other.requests
        self.prompt_tokens += other.prompt_tokens
        self.reused_tokens += other.reused_tokens
        self.output_tokens += other.output_tokens
        self.rounds += other.rounds
        self.round_tokens += other.round_tokens
        self.drafted += other.drafted
        self.accepted += other.accepted
        for letter, count in other.by_letter.items():
            self.by_letter[letter] = self.by_letter.get(letter, 0) + count
        missing = len(other.offered_at) - len(self.offered_at)
        self.offered_at += [0] * missing
        self.accepted_at += [0] * missing
        for position, offered in enumerate(other.offered_at):
            self.offered_at[position] += offered
            self.accepted_at[position] += other.accepted_at[position]
        if other.last is not None and (self.last is None or other.last.last_token_s > self.last.last_token_s):
            self.last = other.last

    @property
    def tokens_per_round(self) -> float | None:
        return self.round_tokens / self.rounds if self.rounds else None

    @property
    def accepted_share(self) -> float | None:
        return self.accepted / self.drafted if self.drafted else None

    @property
    def cached_share(self) -> float | None:
        return self.reused_tokens / self.prompt_tokens if self.prompt_tokens else None

    @property
    def by_position(self) -> tuple[float, ...]:
        """The share of drafts kept at each position of the draft, first to last."""
        return tuple(kept / offered for kept, offered in zip(self.accepted_at, self.offered_at, strict=True) if offered)


@dataclass(slots=True)
class Running:
    """A job under way."""

    source: str
    mode: Mode
    began_s: float = 0.0
    first_s: float = 0.0
    last_s: float = 0.0
    tokens: int = 0
    read: tuple[int, int] = (0, 0)  # of the prompt, and its length

    @property
    def tps(self) -> float:
        return decode_tps(self.tokens, self.first_s, self.last_s)


@dataclass(frozen=True, slots=True)
class Ended:
    """A finished request, for the history."""

    at_s: float  # wall clock
    source: str
    timings: Timings


class Telemetry(QObject):
    """Listens from the program's start, so that a screen opened later knows all. On the main thread."""

    ended = Signal(object)  # Ended

    def __init__(self, clock: Callable[[], float] = time.monotonic, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._clock = clock
        self.points: deque[RoundPoint] = deque(maxlen=ROUNDS)
        self.running: dict[int, Running] = {}
        self.plain_tps: float | None = None  # measured since the program's start
        self.idle_since_s: float | None = None  # wall clock; None before the first request, and while one runs
        self.version = 0  # counts changes, so that a screen knows whether to paint
        self._figures: dict[str, Figures] = {}

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(self._figures)

    def figures(self, source: str = ALL) -> Figures:
        """The session's totals of one source or of all."""
        if source != ALL:
            return self._figures.get(source, Figures())
        total = Figures()
        for figures in self._figures.values():
            total.add(figures)
        return total

    def rounds(self, source: str = ALL) -> Iterator[RoundPoint]:
        return (point for point in self.points if source in (ALL, point.source))

    def live_tps(self, source: str = ALL) -> float | None:
        """Of the job that spoke last, else of the one that ended last."""
        speaking = [job for job in self.running.values() if source in (ALL, job.source) and job.tps]
        if speaking:
            return max(speaking, key=lambda job: job.last_s).tps
        last = self.figures(source).last
        return last.decode_tps if last is not None and last.decode_tps else None

    def speed_line(self, source: str = ALL) -> list[tuple[float, float]]:
        """(seconds before now, tokens in that second) over the last minute, oldest first."""
        return speed_line(self.rounds(source), self._clock())

    def listen(self, bus: Bus) -> None:
        bus.opened.connect(self.on_opened)
        bus.said.connect(self.on_said)

    @Slot(object)
    def on_request(self, record: RequestRecord) -> None:
        """The server says which client its jobs belong to, right after they were queued."""
        for job in record.jobs:
            if (running := self.running.get(job)) is not None:
                running.source = record.client

    def clear(self) -> None:
        self.points.clear()
        self._figures.clear()
        self.version += 1

    @Slot(int, str, object)
    def on_opened(self, job: int, source: str, request: Request) -> None:
        self.running[job] = Running(source, request.options.mode, began_s=self._clock())
        self.idle_since_s = None
        self.version += 1

    @Slot(int, object)
    def on_said(self, job: int, event: Event) -> None:
        running = self.running.get(job)
        if running is None:
            return
        match event:
            case Prefill(done, total):
                running.read = (done, total)
            case Delta():
                self._add(job, running, event)
            case Done(reason, timings):
                self._end(job)
                if reason is not Finish.CANCELLED or timings.output_tokens:
                    self._of(running.source).add_request(timings)
                    self.ended.emit(Ended(time.time(), running.source, timings))
                if running.mode is Mode.BASELINE and timings.output_tokens >= MIN_PLAIN_TOKENS:
                    self.plain_tps = timings.decode_tps
            case Failed():
                self._end(job)
            case _:
                pass
        self.version += 1

    def _end(self, job: int) -> None:
        del self.running[job]
        if not self.running:
            self.idle_since_s = time.time()

    def _of(self, source: str) -> Figures:
        return self._figures.setdefault(source, Figures())

    def _add(self, job: int, running: Running, event: Delta) -> None:
        now = self._clock()
        running.first_s = running.first_s or now
        running.last_s = now
        running.tokens += len(event.tokens)
        made = event.round
        drafted, accepted = (0, 0) if made is None else (len(made.drafted), made.accepted)
        letter = letter_of("plain" if made is None else made.source, accepted)
        point = RoundPoint(now, job, running.source, letter, drafted, accepted, len(event.tokens))
        self.points.append(point)
        if made is not None:
            self._of(running.source).add_round(point)


def letter_of(source: str, accepted: int) -> str:
    """Who a round's tokens are owed to. Where no draft was kept, the model made its token alone."""
    if source == "plain" or not accepted:
        return MODEL
    return NGRAM if source == "lookup" else DRAFTER


def speed_line(points: Iterable[RoundPoint], now: float) -> list[tuple[float, float]]:
    """Empty when nothing was said in the window."""
    bins = [0] * int(WINDOW_S / BIN_S)
    is_empty = True
    for point in points:
        index = int((now - point.at_s) / BIN_S)
        if 0 <= index < len(bins):
            bins[index] += point.tokens
            is_empty = False
    if is_empty:
        return []
    return [(-index * BIN_S, bins[index] / BIN_S) for index in range(len(bins) - 1, -1, -1)]


def rounds_csv(points: Iterable[RoundPoint]) -> str:
    """A line for each round, times from the first."""
    lines = ["seconds,job,source,letter,drafted,accepted,tokens"]
    began: float | None = None
    for point in points:
        began = point.at_s if began is None else began
        lines.append(
            f"{point.at_s - began:.4f},{point.job},{csv_text(point.source)},{point.letter},"
            f"{point.drafted},{point.accepted},{point.tokens}"
        )
    return "\n".join(lines) + "\n"


def csv_text(text: str) -> str:
    """A client chooses its own name: quoted where it must be, and never a formula to a spreadsheet."""
    safe = f"'{text}" if text[:1] in "=+-@\t\r" else text
    return '"' + safe.replace('"', '""') + '"' if any(c in safe for c in ',"\r\n') else safe
