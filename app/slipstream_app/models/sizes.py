"""Bytes and shares in words."""

from __future__ import annotations


def size_text(count: int) -> str:
    """In decimal units, as the Finder shows them."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            number = count / factor
            return f"{number:.1f} {unit}" if number < 100 else f"{number:.0f} {unit}"
    return f"{count} B"


def part_text(part: int, whole: int) -> str:
    """In the unit of the whole, so that both can be compared at a glance: 0.4 / 18.0 GB."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if whole >= factor:
            return f"{part / factor:.1f} / {whole / factor:.1f} {unit}"
    return f"{part} / {whole} B"


def context_text(tokens: int) -> str:
    """32,768 is "32k", as people say it; rounded down."""
    return f"{tokens // 1024}k" if tokens >= 1024 else str(tokens)


def share_text(share: float | None) -> str:
    """0.714 is "71 %"; a dash for what there is nothing of."""
    return "–" if share is None else f"{share * 100:.0f}\N{NO-BREAK SPACE}%"
