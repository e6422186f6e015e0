"""Figures about what the server did, as Prometheus text and as JSON, and the rounds as they happen. No texts."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncGenerator, Iterator
from typing import TYPE_CHECKING, Any

from slipstream.events import Delta, Done, Event, Failed, Finish, Measured, Prefill, Queued, Round, Timings
from slipstream.jobs import Job
from slipstream.server.request_log import current

if TYPE_CHECKING:
    from slipstream.server.backend import Backend

MAX_WAITING_EVENTS = 1000  # for a telemetry reader that does not keep up; older ones are dropped

_LATENCY_BOUNDS_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_CANCEL_BOUNDS_S = (0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0, 5.0)
_RATE_BOUNDS = (1.0, 5.0, 10.0, 25.0, 50.0, 100.0, 200.0, 400.0)


class Histogram:
    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)  # by bucket, the last without an upper bound
        self.total = 0.0
        self.largest = 0.0

    def add(self, value: float) -> None:
        index = next((i for i, bound in enumerate(self.bounds) if value <= bound), len(self.bounds))
        self.counts[index] += 1
        self.total += value
        self.largest = max(self.largest, value)

    def lines(self, name: str) -> Iterator[str]:
        cumulative = list(itertools.accumulate(self.counts))
        for bound, count in zip((*self.bounds, "+Inf"), cumulative, strict=True):
            yield f'{name}_bucket{{le="{bound}"}} {count}'
        yield f"{name}_sum {self.total:g}"
        yield f"{name}_count {cumulative[-1]}"


class Metrics:
    """Counts the events of the server's own jobs. On the server's loop alone."""

    def __init__(self) -> None:
        self.finished: dict[str, int] = {}  # requests, by how they ended
        self.failed: dict[str, int] = {}  # by error code
        self.prompt_tokens = 0
        self.reused_tokens = 0
        self.output_tokens = 0
        self.rounds = 0
        self.drafted = 0
        self.accepted = 0
        self.ttft_cold = Histogram(_LATENCY_BOUNDS_S)
        self.ttft_cached = Histogram(_LATENCY_BOUNDS_S)
        self.decode = Histogram(_RATE_BOUNDS)
        self.cancel = Histogram(_CANCEL_BOUNDS_S)
        self._readers: set[asyncio.Queue[dict[str, Any] | None]] = set()

    def observe(self, job: Job, event: Event) -> None:
        match event:
            case Delta():
                if event.round is not None:
                    self.rounds += 1
                    self.drafted += len(event.round.drafted)
                    self.accepted += event.round.accepted
            case Done(reason, timings):
                self.finished[reason.value] = self.finished.get(reason.value, 0) + 1
                self._add(timings)
                # What was still to be read when the client left may have ended by itself.
                if job.cancelled_s is not None and reason is Finish.CANCELLED:
                    self.cancel.add(time.monotonic() - job.cancelled_s)
            case Failed(error):
                self.failed[error.code] = self.failed.get(error.code, 0) + 1
            case _:
                pass
        if self._readers:
            line = {"job": job.number, **_told(event)}
            for reader in self._readers:
                if reader.full():
                    reader.get_nowait()
                reader.put_nowait(line)

    def _add(self, timings: Timings) -> None:
        self.prompt_tokens += timings.prompt_tokens
        self.reused_tokens += timings.reused_tokens
        self.output_tokens += timings.output_tokens
        if timings.output_tokens:
            # A cached first token says nothing about a cold one: never in one average.
            (self.ttft_cached if timings.reused_tokens else self.ttft_cold).add(timings.ttft_s)
        if timings.decode_tps:
            self.decode.add(timings.decode_tps)

    async def follow(self) -> AsyncGenerator[dict[str, Any], None]:
        """Events as they happen, without any text or token, until `end_followers`."""
        reader: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue(MAX_WAITING_EVENTS)
        self._readers.add(reader)
        try:
            while (line := await reader.get()) is not None:
                yield line
        finally:
            self._readers.discard(reader)

    def end_followers(self) -> None:
        for reader in self._readers:
            if reader.full():
                reader.get_nowait()
            reader.put_nowait(None)


def extras(timings: Timings) -> dict[str, Any]:
    """What Slipstream adds to an answer: the one set of figures, the same in the window and in every dialect."""
    kind = "ttft_cached_s" if timings.reused_tokens else "ttft_s"
    short = timings.shortfall
    entry = current.get()
    return {
        kind: round(timings.ttft_s, 4),
        "prefill_tps": round(timings.prefill_tps, 1),
        "decode_tps": round(timings.decode_tps, 1),
        "tokens_per_round": round(timings.tokens_per_round, 3),
        "rounds": timings.rounds,
        "prompt_tokens": timings.prompt_tokens,
        "reused_tokens": timings.reused_tokens,
        "output_tokens": timings.output_tokens,
        # Why no more of the prompt was reused, and from which token on.
        **({} if short is None else {"not_reused": short.reason.value, "not_reused_from": short.position}),
        **({"ignored": list(entry.record.ignored)} if entry is not None and entry.record.ignored else {}),
        **({"dropped_messages": entry.record.dropped} if entry is not None and entry.record.dropped else {}),
    }


def _told(event: Event) -> dict[str, Any]:
    told: dict[str, Any]
    match event:
        case Queued(position):
            told = {"type": "queued", "position": position}
        case Prefill(done, total, reused, left_s):
            told = {"type": "prefill", "done": done, "total": total, "reused": reused}
            if left_s is not None:  # an estimate of the time to the first token
                told["left_s"] = round(left_s, 2)
        case Measured(done, total):
            told = {"type": "measured", "done": done, "total": total}
        case Delta(tokens=tokens, round=Round() as done):
            told = {
                "type": "round",
                "position": done.position,
                "source": done.source,
                "drafted": len(done.drafted),
                "accepted": done.accepted,
                "tokens": len(tokens),
            }
        case Delta(tokens=tokens):
            told = {"type": "unverified", "tokens": len(tokens)}  # the prompt's own token, or text that was held back
        case Done(reason, timings):
            told = {"type": "done", "reason": reason.value, **extras(timings)}
        case Failed(error):
            told = {"type": "failed", "code": error.code}
    return told


def as_json(backend: Backend) -> dict[str, Any]:
    metrics = backend.metrics
    return {
        "active": len(backend.streams),
        "waiting": len(backend.inbox),
        "held": backend.inbox.held,
        "seconds_since_progress": round(backend.seconds_since_progress, 3),
        "finished": metrics.finished,
        "failed": metrics.failed,
        "prompt_tokens": metrics.prompt_tokens,
        "reused_tokens": metrics.reused_tokens,
        "output_tokens": metrics.output_tokens,
        "rounds": metrics.rounds,
        "drafted_tokens": metrics.drafted,
        "accepted_tokens": metrics.accepted,
        "kept_responses": {"count": len(backend.responses), "bytes": backend.responses.bytes},
        "cancel_s": {
            "count": sum(metrics.cancel.counts),
            "largest": round(metrics.cancel.largest, 4),
            "within": dict(zip(metrics.cancel.bounds, itertools.accumulate(metrics.cancel.counts), strict=False)),
        },
    }


def as_prometheus(backend: Backend) -> str:
    metrics = backend.metrics
    lines: list[str] = []

    def head(name: str, kind: str, text: str) -> str:
        lines.extend((f"# HELP {name} {text}", f"# TYPE {name} {kind}"))
        return name

    def plain(name: str, kind: str, text: str, value: float) -> None:
        lines.append(
            f"{head(name, kind, text)} {value:g}" if isinstance(value, float) else f"{head(name, kind, text)} {value}"
        )

    plain("slipstream_requests_active", "gauge", "Requests that are queued or running.", len(backend.streams))
    plain("slipstream_requests_waiting", "gauge", "Requests that no engine has begun.", len(backend.inbox))
    plain("slipstream_requests_held", "gauge", "Of those, held back while something is measured.", backend.inbox.held)
    plain(
        "slipstream_seconds_since_progress", "gauge", "Since anything moved.", round(backend.seconds_since_progress, 3)
    )
    name = head("slipstream_requests_finished_total", "counter", "Requests answered, by how the answer ended.")
    lines += [f'{name}{{reason="{reason}"}} {count}' for reason, count in sorted(metrics.finished.items())]
    name = head("slipstream_requests_failed_total", "counter", "Requests that failed in the engine, by error code.")
    lines += [f'{name}{{code="{code}"}} {count}' for code, count in sorted(metrics.failed.items())]
    plain("slipstream_prompt_tokens_total", "counter", "Prompt tokens, reused ones included.", metrics.prompt_tokens)
    plain("slipstream_reused_tokens_total", "counter", "Prompt tokens taken from the cache.", metrics.reused_tokens)
    plain("slipstream_output_tokens_total", "counter", "Tokens of answers.", metrics.output_tokens)
    plain("slipstream_rounds_total", "counter", "Target forwards after the prompt.", metrics.rounds)
    plain("slipstream_drafted_tokens_total", "counter", "Tokens proposed by drafters.", metrics.drafted)
    plain("slipstream_accepted_tokens_total", "counter", "Proposed tokens that were kept.", metrics.accepted)
    for name, text, histogram in (
        ("slipstream_ttft_seconds", "To the first token, whole prompt computed.", metrics.ttft_cold),
        ("slipstream_ttft_cached_seconds", "To the first token, part of the prompt cached.", metrics.ttft_cached),
        ("slipstream_cancel_seconds", "From a client's leaving to the end of its work.", metrics.cancel),
        ("slipstream_decode_tokens_per_second", "Decoding speed of an answer.", metrics.decode),
    ):
        lines += histogram.lines(head(name, "histogram", text))
    return "\n".join(lines) + "\n"
