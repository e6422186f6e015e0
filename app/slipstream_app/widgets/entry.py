"""A line of the palette, or of another list that is filtered by typing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    title: str
    run: Callable[[], object]
    detail: str = ""  # at the right: keys, or what it is
    is_match: bool = False  # found by its content, whatever its title
    value: object = None  # what it stands for
    dot: str = ""  # a colour of the theme, before `detail`, which says the same in words
