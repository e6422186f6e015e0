"""Entries of a legend beside each other, in as many lines as they take."""

from __future__ import annotations

from collections.abc import Iterable


def flowed(widths: Iterable[int], room: int, gap: int) -> list[tuple[int, int]]:
    """Of each entry: how far from the left, in pixels, and in which line. `room`: how wide a line is."""
    found: list[tuple[int, int]] = []
    x = line = 0
    for wide in widths:
        if x and x + wide > room:
            x, line = 0, line + 1
        found.append((x, line))
        x += wide + gap
    return found
