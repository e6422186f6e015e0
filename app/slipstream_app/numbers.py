"""Numbers as the window shows them, as the user's language writes them. Reports, CSV and JSON keep Python's writing."""

from __future__ import annotations

from PySide6.QtCore import QLocale

NOTHING = "–"  # for what there is nothing of
_UNITS = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))  # decimal, as in the Finder


def _locale() -> QLocale:
    """A system without a language has no writing of its own: 32768 would stay ungrouped."""
    found = QLocale()
    return QLocale(QLocale.Language.English) if found.language() is QLocale.Language.C else found


def count_text(count: int) -> str:
    """32,768, or 32.768 in German."""
    return _locale().toString(count)


def number_text(value: float | None, digits: int = 1) -> str:
    """With so many digits after the point, rounded as Python does, whose writing is in the reports."""
    return NOTHING if value is None else _locale().toString(round(float(value), digits), ord("f"), digits)


def close_text(value: float, digits: int = 3) -> str:
    """With so many digits in all, for what may be very small."""
    return _locale().toString(float(value), ord("g"), digits)


def brief_text(count: int) -> str:
    """12.3k rather than 12,345."""
    return count_text(count) if count < 10_000 else f"{number_text(count / 1000)}k"


def size_text(count: int) -> str:
    """Of bytes."""
    for unit, factor in _UNITS:
        if count >= factor:
            return f"{number_text(count / factor, 1 if count / factor < 100 else 0)} {unit}"
    return f"{count_text(count)} B"


def part_text(part: int, whole: int) -> str:
    """Bytes in the unit of the whole, so that both can be compared at a glance: 0.4 / 18.0 GB."""
    for unit, factor in _UNITS:
        if whole >= factor:
            return f"{number_text(part / factor)} / {number_text(whole / factor)} {unit}"
    return f"{part} / {whole} B"


def context_text(tokens: int) -> str:
    """32,768 is "32k", as people say it; rounded down."""
    return f"{tokens // 1024}k" if tokens >= 1024 else str(tokens)


def share_text(share: float | None) -> str:
    """0.714 is "71 %"."""
    return NOTHING if share is None else f"{number_text(share * 100, 0)}\N{NO-BREAK SPACE}%"


def span_text(seconds: float) -> str:
    """How long something takes, roughly."""
    if seconds < 90:
        return f"{number_text(seconds, 0)} s"
    return f"{number_text(seconds / 60, 0)} min" if seconds < 7200 else f"{number_text(seconds / 3600)} h"
