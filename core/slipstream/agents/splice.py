"""Changes to a text by its places, so that all else stays to the byte."""

from __future__ import annotations


def spliced(text: str, *cuts: tuple[int, int, str]) -> str:
    """Each cut is where it begins and ends, and what comes there instead. They may be given in any order."""
    parts: list[str] = []
    at = 0
    for start, end, new in sorted(cuts, key=lambda cut: cut[0]):
        parts += [text[at:start], new]
        at = end
    return "".join(parts) + text[at:]
