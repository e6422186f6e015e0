"""How long each pair stays loaded while nothing is asked: as in Settings, for some minutes, or always."""

from __future__ import annotations

import json
from typing import Any

from PySide6.QtCore import QObject, Signal, Slot

from slipstream_app.bridge.pair import PairChoice
from slipstream_app.settings import Settings
from slipstream_app.settings_table import BY_KEY

PINNED = 0  # minutes of a pair that is never unloaded by itself
OFFERED = (5, 15, 30, 60, 240)  # minutes
USUAL = "performance/unload_minutes"  # what holds for a pair with no word of its own
_KEY = "keep_alive"


class KeepAlive(QObject):
    """Kept across starts, by what a pair is made of, so that two of one name do not share it."""

    changed = Signal()

    def __init__(self, settings: Settings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self._own = _read(settings.recall(_KEY, ""))
        settings.changed.connect(self._on_setting)

    def own(self, choice: PairChoice) -> int | None:
        """The pair's own minutes, or PINNED; None: as in Settings."""
        return self._own.get(_name(choice))

    def is_pinned(self, choice: PairChoice) -> bool:
        return self.own(choice) == PINNED

    def minutes(self, choice: PairChoice) -> int:
        """What holds for it. 0: it stays."""
        own = self.own(choice)
        return self.usual if own is None else own

    @property
    def usual(self) -> int:
        return self._settings.number(USUAL)

    def set(self, choice: PairChoice, minutes: int | None) -> None:
        """Minutes, PINNED, or None: as in Settings."""
        if minutes == self.own(choice):
            return
        self._own.pop(_name(choice), None)
        if minutes is not None:
            self._own[_name(choice)] = minutes
        self._settings.remember(_KEY, json.dumps(self._own))
        self.changed.emit()

    @Slot(str)
    def _on_setting(self, key: str) -> None:
        if key == USUAL:
            self.changed.emit()


def _name(choice: PairChoice) -> str:
    return json.dumps([choice.target, choice.drafters])


def _read(stored: object) -> dict[str, int]:
    """What another version or hand wrote there and cannot be is left out."""
    try:
        given: Any = json.loads(str(stored or "{}"))  # Any: JSON
    except ValueError:
        return {}
    row = BY_KEY[USUAL]
    found = given.items() if isinstance(given, dict) else ()
    return {name: minutes for name, minutes in found if type(minutes) is int and row.low <= minutes <= row.high}
