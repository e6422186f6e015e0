"""Numbers as the window shows them, as the user's language writes them. Reports, CSV and JSON keep Python's writing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QLocale

NOTHING = "–"  # for what there is nothing of
GAP = "\N{NO-BREAK SPACE}"  # no line ends between a number and its unit
_BYTES = (("B", 1), ("kB", 10**3), ("MB", 10**6), ("GB", 10**9), ("TB", 10**12))  # decimal, as in the Finder
_COUNTS = (("k", 10**3), ("M", 10**6), ("G", 10**9))
_SPACED = {  # languages with a space before the sign, as CLDR has it
    QLocale.Language[name]
    for name in (
        *("Croatian", "Czech", "Danish", "Finnish", "French", "German", "NorwegianBokmal", "Romanian"),
        *("Russian", "Slovak", "Slovenian", "Spanish", "Swedish"),
    )
}


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
    """In three digits: 12.3k rather than 12,345, and 1.25M."""
    if count < 10_000:
        return count_text(count)
    unit, factor = _unit(count, _COUNTS, _three)
    return number_text(count / factor, _three(count / factor)) + unit


def size_text(count: int) -> str:
    """Of bytes: "1.5 GB", "150 MB"."""
    unit, factor = _unit(count, _BYTES, _at_most_one)
    if factor == 1:
        return count_text(count) + GAP + unit
    return number_text(count / factor, _at_most_one(count / factor)) + GAP + unit


def part_text(part: int, whole: int) -> str:
    """Bytes in the unit of the whole, so that both can be compared at a glance: 0.4 / 18.0 GB."""
    unit, factor = _unit(whole, _BYTES, _at_most_one)
    if factor == 1:
        return f"{count_text(part)} / {count_text(whole)}{GAP}{unit}"
    return f"{number_text(part / factor)} / {number_text(whole / factor)}{GAP}{unit}"


def context_text(tokens: int) -> str:
    """32,768 is "32k", as people say it; rounded down."""
    return f"{tokens // 1024}k" if tokens >= 1024 else str(tokens)


def percent_text(number: str) -> str:
    """71% in English, 71 % in German."""
    return f"{number}{GAP if _locale().language() in _SPACED else ''}%"


def share_text(share: float | None) -> str:
    """0.714 is 71%."""
    return NOTHING if share is None else percent_text(number_text(share * 100, 0))


def span_text(seconds: float) -> str:
    """How long something takes, roughly."""
    if seconds < 90:
        return f"{number_text(seconds, 0)}{GAP}s"
    return f"{number_text(seconds / 60, 0)}{GAP}min" if seconds < 7200 else f"{number_text(seconds / 3600)}{GAP}h"


def _unit(count: int, units: Sequence[tuple[str, int]], digits: Callable[[float], int]) -> tuple[str, int]:
    """The first in which it is less than a thousand, as written with so many `digits` after the point."""
    return next((one for one in units if round(count / one[1], digits(count / one[1])) < 1000), units[-1])


def _at_most_one(value: float) -> int:
    return 1 if round(value, 1) < 100 else 0


def _three(value: float) -> int:
    return 2 if round(value, 2) < 10 else _at_most_one(value)
