"""A picture of a run as it goes: loss, tokens per round, and what is right at each position. SVG, written by hand.

Standard library alone. What it shows is kept beside it, so that a run that goes on has its whole course in one picture.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path

from slipstream.errors import InvalidRequest
from slipstream.store.atomic import write_text
from slipstream.train.lines import append, entries

WIDTH, HEIGHT, PANEL = 1240, 400, (340, 270)  # of the whole, and of each of the three panels
LEFT, TOP, BETWEEN = 60, 64, 70
POINTS = 400  # of a line at most
BACKGROUND, INK, PALE, GRID = "#ffffff", "#1d1d1f", "#6e6e73", "#e5e5ea"
LOSS, GREEDY, DRAWN = "#0a60c2", "#0a60c2", "#b35900"
FIRST, LAST = (10, 96, 194), (225, 150, 40)  # colours of the first and the last position


@dataclass(frozen=True, slots=True)
class Moment:
    """What a report showed. By position: the share of drafts that were the target's choice, those before them given."""

    step: int
    loss: float
    same: float  # tokens per round, greedily
    chance: float  # and expected at temperature 1
    agrees: tuple[float, ...]


class Picture:
    """`add` after each report, `write` now and then. Raises InvalidRequest when the file cannot be one."""

    def __init__(self, path: Path, title: str) -> None:
        if path.suffix.lower() != ".svg":
            raise InvalidRequest(f"--picture must be an .svg file, not {path.name!r}", option="picture")
        self.path = path
        self._title = title
        self._kept = path.with_suffix(".jsonl")
        self._moments: list[Moment] = []
        if self._kept.exists():
            for entry in entries(self._kept.read_bytes()):
                entry["agrees"] = tuple(entry["agrees"])
                self._moments.append(Moment(**entry))

    def add(self, moment: Moment) -> None:
        """Later ones of an earlier sitting that was not saved are forgotten: they are made again."""
        kept = [one for one in self._moments if one.step < moment.step]
        is_going_on = len(kept) == len(self._moments)
        self._moments = [*kept, moment]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if is_going_on:
            append(self._kept, asdict(moment))
        else:
            write_text(self._kept, "".join(json.dumps(asdict(one)) + "\n" for one in self._moments))

    def write(self) -> None:
        """Whole or not at all, whoever looks at it meanwhile."""
        if self._moments:
            write_text(self.path, drawn(self._title, self._moments))


def drawn(title: str, moments: Sequence[Moment]) -> str:
    """The SVG. `moments`: at least one, by ascending step."""
    last = moments[-1]
    positions = len(last.agrees)
    stride = max(1, math.ceil(len(moments) / POINTS))
    shown = [*moments[:-1:stride], last]
    steps = [one.step for one in shown]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="-apple-system, Helvetica, Arial, sans-serif" font-size="12" fill="{INK}" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{BACKGROUND}"/>',
        _text(LEFT, 26, f"{title}, step {last.step:,}", size=15, weight=600),
    ]
    lowest = min(one.loss for one in shown)
    highest = max(one.loss for one in shown)
    loss = _Panel(0, steps, (math.floor(lowest * 10) / 10, max(math.ceil(highest * 10) / 10, lowest + 0.1)))
    parts += [*loss.frame(f"loss {last.loss:.3f}"), loss.line([one.loss for one in shown], LOSS)]
    top = max(2.0, math.ceil(max(max(one.same, one.chance) for one in shown) * 2) / 2)
    rounds = _Panel(1, steps, (1.0, top))
    parts += rounds.frame("tokens per round")
    at = LEFT + PANEL[0] + BETWEEN
    parts.append(_text(at, HEIGHT - 14, f"greedy: {last.same:.2f}", color=GREEDY, size=11))
    parts.append(_text(at + 110, HEIGHT - 14, f"at temperature 1: {last.chance:.2f}", color=DRAWN, size=11))
    parts += [
        rounds.line([one.chance for one in shown], DRAWN),
        rounds.line([one.same for one in shown], GREEDY),
    ]
    right = _Panel(2, steps, (0.0, 1.0))
    parts += right.frame("right drafts, by position")
    for position in range(positions):
        color = _color(position / max(positions - 1, 1))
        parts.append(right.line([one.agrees[position] for one in shown], color))
        at = LEFT + 2 * (PANEL[0] + BETWEEN) + position * PANEL[0] / max(positions, 1)
        parts.append(_text(at, HEIGHT - 14, f"{position + 1}: {last.agrees[position]:.2f}", color=color, size=11))
    return "\n".join([*parts, "</svg>"]) + "\n"


class _Panel:
    """One of the three, by its place from the left: values of `span` over steps."""

    def __init__(self, place: int, steps: Sequence[int], span: tuple[float, float]) -> None:
        self._left = LEFT + place * (PANEL[0] + BETWEEN)
        self._steps, self._span = steps, span

    def _x(self, step: float) -> float:
        first, last = self._steps[0], max(self._steps[-1], self._steps[0] + 1)
        return self._left + PANEL[0] * (step - first) / (last - first)

    def _y(self, value: float) -> float:
        low, high = self._span
        return TOP + PANEL[1] * (1 - (min(max(value, low), high) - low) / (high - low))

    def frame(self, title: str) -> list[str]:
        low, high = self._span
        out = [_text(self._left, TOP - 12, title, weight=600)]
        for index in range(5):
            value = low + (high - low) * index / 4
            y = self._y(value)
            out.append(
                f'<line x1="{self._left}" x2="{self._left + PANEL[0]}" y1="{y:.1f}" y2="{y:.1f}" stroke="{GRID}"/>'
            )
            out.append(_text(self._left - 8, y + 4, f"{value:.2f}", color=PALE, anchor="end"))
        for step, anchor in ((self._steps[0], "start"), (self._steps[-1], "end")):
            out.append(_text(self._x(step), TOP + PANEL[1] + 18, f"{step:,}", color=PALE, anchor=anchor))
        return out

    def line(self, values: Sequence[float], color: str) -> str:
        points = " ".join(
            f"{self._x(step):.1f},{self._y(value):.1f}" for step, value in zip(self._steps, values, strict=True)
        )
        if len(values) == 1:  # a line of one point is not seen
            x, y = points.split(",")
            return f'<circle cx="{x}" cy="{y}" r="3" fill="{color}"/>'
        return f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.6"/>'


def _text(
    x: float, y: float, text: str, *, color: str = INK, size: int = 12, weight: int = 400, anchor: str = "start"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{color}" font-size="{size}" font-weight="{weight}" '
        f'text-anchor="{anchor}">{escape(text)}</text>'
    )


def _color(share: float) -> str:
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in zip(FIRST, LAST, strict=True))
