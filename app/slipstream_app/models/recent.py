"""Pairs that were loaded lately, kept across starts. The built-in pair is always among them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal, Slot

from slipstream.events import Ready, Status
from slipstream_app.bridge.pair import BUILT_IN, PairChoice
from slipstream_app.bridge.session import Session
from slipstream_app.settings import Settings

KEPT = 8
_KEY = "recent_pairs"


class RecentPairs(QObject):
    changed = Signal()

    def __init__(self, session: Session, settings: Settings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._settings = settings
        self._pairs = _read(settings.recall(_KEY, ""))
        session.bus.status_changed.connect(self._on_status)

    @property
    def pairs(self) -> tuple[PairChoice, ...]:
        """The last one first."""
        return (*self._pairs, *(() if BUILT_IN in self._pairs else (BUILT_IN,)))

    def forget(self, choice: PairChoice) -> None:
        self._pairs = [pair for pair in self._pairs if pair != choice]
        self._write()

    @Slot(object)
    def _on_status(self, status: Status) -> None:
        choice = self._session.choice
        if not isinstance(status, Ready) or choice is None or choice.is_safe or self._pairs[:1] == [choice]:
            return
        self._pairs = [choice, *(pair for pair in self._pairs if pair != choice)][:KEPT]
        self._write()

    def _write(self) -> None:
        self._settings.remember(_KEY, json.dumps([pair.as_json() for pair in self._pairs]))
        self.changed.emit()


def pair_from(stored: object) -> PairChoice | None:
    """One pair as JSON; None for anything else."""
    return next(iter(_read(f"[{stored or ''}]")), None)


def recent_pairs(settings: Settings) -> list[PairChoice]:
    """Those that were loaded lately, the last one first."""
    return _read(settings.recall(_KEY, ""))


def names_of(choice: PairChoice) -> tuple[str, ...]:
    """Under which a pair's halves lie on the disk; a conversion has its source's name."""
    if choice.target is None:
        return ()
    return (choice.target, Path(choice.target).stem, *(choice.drafters or ()))


def last_pair(settings: Settings) -> PairChoice:
    """What was loaded last, at this start or an earlier one."""
    return next(iter(_read(settings.recall(_KEY, ""))), BUILT_IN)


def _read(stored: object) -> list[PairChoice]:
    try:
        rows: list[dict[str, Any]] = json.loads(str(stored or "[]"))
        return [PairChoice.from_json(row) for row in rows]
    except (ValueError, TypeError, KeyError):
        return []  # of another version
