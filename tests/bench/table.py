"""From single runs to medians, spreads and ratios, and to a Markdown table. Knows nothing of how they were made."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slipstream.events import decode_tps


@dataclass(frozen=True, slots=True)
class Run:
    """One answer of one arm."""

    arm: str
    trial: int
    prompt: int
    source: str
    ids: Sequence[int]
    first_token_s: float
    last_token_s: float
    rounds: int
    widths: Mapping[str, int]
    network_rounds: int


@dataclass(frozen=True, slots=True)
class Spread:
    median: float
    low: float
    high: float

    @staticmethod
    def of(values: Sequence[float]) -> Spread:
        return Spread(statistics.median(values), min(values), max(values))

    def words(self, digits: int, unit: str = "") -> str:
        return f"{self.median:.{digits}f}{unit} ({self.low:.{digits}f}–{self.high:.{digits}f})"


@dataclass(frozen=True, slots=True)
class Row:
    """One arm's results. Each trial counts as one measurement: all its tokens over all their time."""

    arm: str
    tps: Spread
    over_plain: Spread
    over_peer: Spread | None
    by_source: Mapping[str, float]  # median ratio to plain
    tokens_per_round: float
    identical: int  # answers equal to plain's
    answers: int
    differences: Sequence[tuple[int, int]]  # (prompt, first differing position), each once


@dataclass(frozen=True, slots=True)
class Bound:
    """What the curves of this run allow an arm, and how much of it was reached."""

    arm: str
    width: float  # mean rows of a forward
    tokens_per_round: float
    target_ms: float  # mean T(width)
    draft_ms: float  # T_draft, as often as a network drafted
    bound_tps: float
    bound_over_plain: float  # over 1 / T(1)
    reached: float


def total_tps(runs: Iterable[Run]) -> float:
    """Tokens after the first of all runs, over the time they took: each run weighs by its length."""
    runs = list(runs)
    tokens = sum(len(run.ids) - 1 for run in runs)
    return decode_tps(1 + tokens, 0.0, sum(run.last_token_s - run.first_token_s for run in runs))


def tokens_per_round(runs: Iterable[Run]) -> float:
    runs = list(runs)
    rounds = sum(run.rounds for run in runs)
    return sum(len(run.ids) - 1 for run in runs) / rounds if rounds else 0.0


def first_difference(one: Sequence[int], two: Sequence[int]) -> int | None:
    """Where two answers part; None when they are equal."""
    if list(one) == list(two):
        return None
    pairs = zip(one, two, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(two)))


def rows(runs: Sequence[Run], plain: str, peers: Sequence[str]) -> list[Row]:
    """A row for each arm, in the order of `runs`. Ratios are taken within a trial.

    The peer is the fastest of `peers`; the ratio to it is left out where none of them ran.
    """
    arms = list(dict.fromkeys(run.arm for run in runs))
    trials = sorted({run.trial for run in runs})

    def of(arm: str, trial: int | None = None, source: str | None = None) -> list[Run]:
        return [run for run in runs if run.arm == arm and trial in (None, run.trial) and source in (None, run.source)]

    def speeds(arm: str, source: str | None = None) -> list[float]:
        return [total_tps(of(arm, trial, source)) for trial in trials]

    def ratio(arm: str, to: str, source: str | None = None) -> Spread:
        both = zip(speeds(arm, source), speeds(to, source), strict=True)
        return Spread.of([one / other if other else 0.0 for one, other in both])

    ran = [arm for arm in peers if arm in arms]
    best = max(ran, key=lambda arm: statistics.median(speeds(arm))) if ran else None
    sources = list(dict.fromkeys(run.source for run in runs))
    wanted = {(run.trial, run.prompt): run.ids for run in of(plain)}
    out: list[Row] = []
    for arm in arms:
        places = [(run.prompt, first_difference(wanted[run.trial, run.prompt], run.ids)) for run in of(arm)]
        out.append(
            Row(
                arm,
                Spread.of(speeds(arm)),
                ratio(arm, plain),
                None if best is None else ratio(arm, best),
                {source: ratio(arm, plain, source).median for source in sources},
                tokens_per_round(of(arm)),
                sum(place is None for _, place in places),
                len(places),
                sorted({(prompt, place) for prompt, place in places if place is not None}),
            )
        )
    return out


def bound(row: Row, runs: Iterable[Run], target_ms: Mapping[str, float], draft_ms: float) -> Bound:
    """tokens per round / (T(width) + T_draft), each round at its own width."""
    runs = [run for run in runs if run.arm == row.arm]
    rounds = sum(run.rounds for run in runs)
    widths: dict[int, int] = {}
    for run in runs:
        for width, count in run.widths.items():
            widths[int(width)] = widths.get(int(width), 0) + count
    curve = {int(width): ms for width, ms in target_ms.items()}
    target = sum(at(curve, width) * count for width, count in widths.items()) / rounds
    drafting = draft_ms * sum(run.network_rounds for run in runs) / rounds
    bound_tps = 1000 * row.tokens_per_round / (target + drafting)
    return Bound(
        row.arm,
        sum(width * count for width, count in widths.items()) / rounds,
        row.tokens_per_round,
        target,
        drafting,
        bound_tps,
        bound_tps * curve[1] / 1000,
        row.tps.median / bound_tps,
    )


def at(curve: Mapping[int, float], width: int) -> float:
    """A curve's value at a width, on the line between its neighbours; the last value beyond the end."""
    below = max((known for known in curve if known <= width), default=min(curve))
    above = min((known for known in curve if known >= width), default=max(curve))
    if above == below:
        return curve[below]
    return curve[below] + (curve[above] - curve[below]) * (width - below) / (above - below)


def markdown(table: Sequence[Row], bounds: Sequence[Bound], curves: Mapping[str, Any] | None) -> str:
    sources = list(table[0].by_source) if table else []
    head = ["arm", "tok/s, median (min–max)", "× mlx-lm", "× mlx-dspark", *(f"{source} ×" for source in sources)]
    drawn = _grid(
        [*head, "tokens per round", "ids as mlx-lm"],
        [
            [
                row.arm,
                row.tps.words(1),
                row.over_plain.words(2),
                "–" if row.over_peer is None else row.over_peer.words(2),
                *(f"{row.by_source[source]:.2f}" for source in sources),
                f"{row.tokens_per_round:.2f}",
                _same(row),
            ]
            for row in table
        ],
    )
    if bounds:
        drawn += "\n\n" + _grid(
            ["arm", "rows", "tokens per round", "T(rows) ms", "T_draft ms", "bound tok/s", "bound × T(1)", "reached"],
            [
                [
                    made.arm,
                    f"{made.width:.1f}",
                    f"{made.tokens_per_round:.2f}",
                    f"{made.target_ms:.2f}",
                    f"{made.draft_ms:.2f}",
                    f"{made.bound_tps:.1f}",
                    f"{made.bound_over_plain:.2f}",
                    f"{made.reached:.0%}",
                ]
                for made in bounds
            ],
        )
    if curves is not None:
        target: Mapping[str, float] = curves["target_ms"]
        drawn += "\n\n" + _grid(["rows", *target], [["T ms", *(f"{ms:.2f}" for ms in target.values())]])
    return drawn


def _grid(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *lines))


def _same(row: Row) -> str:
    if row.identical == row.answers:
        return f"{row.identical}/{row.answers} identical"
    shown = ", ".join(f"{prompt} at {place}" for prompt, place in row.differences[:4])
    more = f" and {len(row.differences) - 4} more" if len(row.differences) > 4 else ""
    return f"{row.identical}/{row.answers}; prompt {shown}{more}"
