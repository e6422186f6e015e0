"""Measures what the loaded model's passes cost on this machine: verification by width and context, drafting, prefill.

On the engine's thread, one pass at a time, so that other jobs keep their turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mlx.core as mx

from slipstream.curves import Curves
from slipstream.drafters.protocol import Drafter, KeepsRows, Wish
from slipstream.engine.planner import draft
from slipstream.models import kept
from slipstream.models.cache import TargetCache
from slipstream.models.target import Target
from slipstream.types import Mode

CONTEXTS = (128, 1024, 4096)  # tokens in the cache
WIDE = (16, 33)  # rows of lookup's longest rounds, beside the drafters' own widths
SEED_ROWS = 32  # of the cache that longer ones are made of
REPEATS = 5  # of each measurement, as far as the time reaches; the least counts, since others only add time
BUDGET_S = 4.0  # that passes may take; one that is not expected to fit into what is left is not begun
ATTENTION = 2048  # tokens of context that are expected to double what a row costs, before any was measured there


@dataclass(frozen=True, slots=True)
class Point:
    """One thing to measure. `source`: a drafter's mode, or one of the two below."""

    source: str
    context: int
    size: int  # rows of a forward, tokens drafted, or tokens of a chunk


TARGET, PREFILL, BANDWIDTH = "target", "prefill", "bandwidth"
STREAMED_ROWS = 2**13
STREAMED_TIMES = 3  # at once: the first brings the matrix's pages in
STREAMED_BYTES = 2**27  # of the matrix by which bandwidth is measured: more than any cache holds


class Calibration:
    """`run` yields after each measurement; `curves` is what is known by then.

    `chunks`: lengths of prefill chunks to try, the one in use first. Once every point was measured, more rounds follow
    until `budget_s` is spent. `warm_up`: run each once untimed before, where the first run of a shape compiles.
    """

    def __init__(
        self,
        target: Target,
        drafters: Mapping[Mode, Drafter],
        *,
        kv_bits: int = 0,
        chunks: Sequence[int],
        warm_up: bool = False,
        contexts: Sequence[int] = CONTEXTS,
        budget_s: float = BUDGET_S,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._target = target
        self._drafters = {mode.value: drafter for mode, drafter in drafters.items() if drafter.block}
        self._kv_bits = kv_bits
        self._chunk, *self._other_chunks = chunks
        self._warm_up = warm_up
        self._budget_s = budget_s
        self._clock = clock
        self._can_draft = not target.fixed_kinds
        room = target.context - max(*chunks, *WIDE)
        self._contexts = [each for each in contexts if each <= room] or [SEED_ROWS]
        self._taps = tuple(sorted({tap for drafter in drafters.values() for tap in drafter.taps}))
        self._best: dict[Point, float] = {}
        self._spent: dict[Point, float] = {}  # seconds that measuring a point took
        self._caches: dict[int, TargetCache] = {}
        self._matrix: mx.array | None = None
        self._ids = [index % 7 % target.vocabulary for index in range(max(*chunks, SEED_ROWS, *WIDE))]

    @property
    def curves(self) -> Curves:
        tables: dict[str, dict[int, dict[int, float]]] = {}
        for point, milliseconds in self._best.items():
            tables.setdefault(point.source, {}).setdefault(point.context, {})[point.size] = round(milliseconds, 4)
        target, prefill = tables.pop(TARGET, {}), tables.pop(PREFILL, {})
        if any(len(row) > 1 for row in target.values()):
            # A context where the time ended after one width would say that all cost the same there.
            target = {context: row for context, row in target.items() if len(row) > 1}
        streamed = tables.pop(BANDWIDTH, {}).get(0, {}).get(STREAMED_BYTES)
        bandwidth = 1000 * STREAMED_BYTES / streamed if streamed else 0.0
        return Curves(target, tables, prefill, bandwidth, self._target.read_bytes, kept.row_bytes(self._short))

    @property
    def points(self) -> list[Point]:
        """The most telling first: should the time end early, the rest is read off the lines between them."""
        first, *longer = self._contexts
        widest = 1 + max((drafter.block for drafter in self._drafters.values()), default=7)
        ends = [1, widest] if self._can_draft else [1]
        between = [size for size in (4, 2, *range(3, widest), *WIDE) if size not in ends] if self._can_draft else []
        out = [Point(TARGET, first, size) for size in ends]
        out += [Point(name, first, drafter.block) for name, drafter in self._drafters.items() if self._can_draft]
        out += [Point(PREFILL, first, self._chunk), Point(BANDWIDTH, 0, STREAMED_BYTES)]
        out += [Point(TARGET, first, size) for size in between[:1]]
        for context in reversed(longer):
            out += [Point(TARGET, context, size) for size in ends]
            if self._can_draft:
                out += [Point(name, context, drafter.block) for name, drafter in self._drafters.items()]
            out += [Point(PREFILL, context, self._chunk)]
        out += [
            Point(name, first, 1) for name, drafter in self._drafters.items() if self._can_draft and drafter.block > 1
        ]
        out += [Point(TARGET, first, size) for size in between[1:]]
        out += [Point(PREFILL, first, size) for size in self._other_chunks]
        out += [Point(TARGET, context, size) for context in longer for size in between[:1]]
        return list(dict.fromkeys(out))

    def run(self) -> Iterator[None]:
        points = self.points
        began = self._clock()
        self._seed()
        if self._warm_up:
            before = self._clock()
            for point in points:
                self._measure(point)
                yield
            began += self._clock() - before  # compiling is not what the time is for
        for turn in range(REPEATS):
            for number, point in enumerate(points):
                left_s = began + self._budget_s - self._clock()
                if turn or number >= self._needed:
                    if left_s <= 0:
                        return
                    if self._expected_s(point) > left_s:
                        continue
                before = self._clock()
                milliseconds = self._measure(point)
                self._spent[point] = self._clock() - before
                self._best[point] = min(milliseconds, self._best.get(point, milliseconds))
                yield

    def _expected_s(self, point: Point) -> float:
        """How long measuring it will take, what is made for it included.

        As the last time; at first as the nearest that was measured of its source, and more behind a longer context.
        """
        if point in self._spent:
            return self._spent[point]
        like = [known for known in self._spent if known.source == point.source]
        if not like:
            return 0.0
        nearest = min(like, key=lambda known: (abs(known.context - point.context), abs(known.size - point.size)))
        rows = max(1.0, point.size / nearest.size) if point.source in (TARGET, PREFILL) else 1.0
        if point.source == TARGET:  # few rows wait for the same weights
            rows **= 0.5
        return self._spent[nearest] * rows * (ATTENTION + point.context) / (ATTENTION + nearest.context)

    @property
    def _needed(self) -> int:
        """Points without which curves say nothing: plain, widest, each drafter, prefill, bandwidth."""
        return 4 + len(self._drafters)

    def _seed(self) -> None:
        """A short real context, whose rows longer ones repeat: a pass costs the same whatever the numbers are."""
        self._short = self._target.make_cache(self._kv_bits)
        tokens = self._ids[:SEED_ROWS]
        forward = self._target.forward(mx.array(tokens, dtype=mx.int32), self._short, self._taps, rows=1)
        mx.eval(forward.logits, self._short.state)
        self._states = {}
        for name, drafter in self._drafters.items():
            state = drafter.begin()
            drafter.observe(state, tokens, forward.taps)
            mx.eval(drafter.arrays(state))
            self._states[name] = state
            if self._can_draft:  # its weights are read, or unpacked, when they are first used
                mx.eval(self._proposed(drafter, state, drafter.block))

    def _measure(self, point: Point) -> float:
        """Milliseconds of one pass."""
        if point.source == TARGET:
            return self._verify(point)
        if point.source == PREFILL:
            return self._read(point)
        if point.source == BANDWIDTH:
            return self._stream()
        return self._draft(point)

    def _verify(self, point: Point) -> float:
        cache = self._cache(point.context)
        began = self._clock()
        tokens = mx.array(self._ids[: point.size], dtype=mx.int32)
        forward = self._target.forward(tokens, cache, self._taps)
        assert forward.logits is not None
        mx.eval(mx.argmax(forward.logits.astype(mx.float32), axis=-1))
        spent = self._clock() - began
        self._back(cache, point.context)
        return 1000 * spent

    def _read(self, point: Point) -> float:
        cache = self._cache(point.context)
        began = self._clock()
        self._target.forward(mx.array(self._ids[: point.size], dtype=mx.int32), cache, self._taps, rows=0)
        mx.eval(cache.state)
        spent = self._clock() - began
        self._back(cache, point.context)
        return 1000 * spent

    def _stream(self) -> float:
        """One row times a matrix: what decoding does with every weight."""
        if self._matrix is None:
            dtype = self._target.dtype
            width = STREAMED_BYTES // dtype.size // STREAMED_ROWS
            self._matrix = mx.ones((STREAMED_ROWS, width), dtype=dtype)
            mx.eval(self._matrix)
        row = mx.ones((1, self._matrix.shape[1]), dtype=self._matrix.dtype)
        mx.eval(row)
        spent: list[float] = []
        for _ in range(STREAMED_TIMES):
            began = self._clock()
            mx.eval(row @ self._matrix.T)
            spent.append(self._clock() - began)
        return 1000 * min(spent)

    def _draft(self, point: Point) -> float:
        drafter, state = self._drafters[point.source], self._states[point.source]
        if isinstance(drafter, KeepsRows):
            short = kept.cut(drafter.buffers(state), 0, SEED_ROWS)
            state = drafter.restore(kept.join([kept.stretched(short, point.context)], point.context), point.context)
            mx.eval(drafter.arrays(state))
        began = self._clock()
        mx.eval(self._proposed(drafter, state, point.size))
        return 1000 * (self._clock() - began)

    def _proposed(self, drafter: Drafter, state: Any, count: int) -> list[mx.array]:
        (proposal,) = draft([Wish(drafter, state, self._ids[0], count, _likeliest, is_greedy=True)])
        return [proposal.tokens] if proposal.confidence is None else [proposal.tokens, proposal.confidence]

    def _cache(self, context: int) -> TargetCache:
        if context not in self._caches:
            self._caches[context] = cache = self._target.make_cache(self._kv_bits)
            kept.stretch(cache, self._short, context)
        return self._caches[context]

    def _back(self, cache: TargetCache, context: int) -> None:
        if cache.floor <= context:
            cache.rewind(context)
        else:
            del self._caches[context]  # a state that cannot go back; the next measurement makes it anew


def _likeliest(logits: mx.array, _: int) -> mx.array:
    return mx.argmax(logits, axis=-1)
