"""Banners: one sentence above the screen, with what to do about it. The queue, and the strip that shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from PySide6.QtCore import QObject, Signal


class Kind(StrEnum):
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Banner:
    """`key` names the occasion: a second banner with it replaces the first."""

    key: str
    kind: Kind
    text: str
    action: str = ""  # the button's words
    run: Callable[[], None] | None = None
    details: str = ""


class Banners(QObject):
    """What there is to say now, the newest of the worst kind first."""

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._banners: list[Banner] = []

    def show(self, banner: Banner) -> None:
        self._banners = [other for other in self._banners if other.key != banner.key]
        self._banners.append(banner)
        self.changed.emit()

    def dismiss(self, key: str) -> None:
        kept = [banner for banner in self._banners if banner.key != key]
        if len(kept) != len(self._banners):
            self._banners = kept
            self.changed.emit()

    @property
    def current(self) -> Banner | None:
        order = {Kind.ERROR: 2, Kind.WARNING: 1, Kind.INFO: 0}
        newest_first = list(reversed(self._banners))
        return max(newest_first, key=lambda banner: order[banner.kind]) if newest_first else None

    def __len__(self) -> int:
        return len(self._banners)
