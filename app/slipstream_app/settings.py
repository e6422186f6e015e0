"""Every setting is one row here: its key, kind, default and words. The Settings window is made from the table."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import cast

from PySide6.QtCore import QObject, QSettings, Signal

from slipstream.store.paths import data_dir
from slipstream_app.strings import mark

logger = logging.getLogger(__name__)

Value = bool | int | str
CONTEXT = "Settings"  # of the translations


class Page(StrEnum):
    GENERAL = "general"
    APPEARANCE = "appearance"
    CHAT = "chat"
    MODELS = "models"
    PERFORMANCE = "performance"
    SERVER = "server"
    UPDATES = "updates"
    PRIVACY = "privacy"
    ABOUT = "about"


@dataclass(frozen=True, slots=True)
class Setting:
    """One row. `choices` maps stored values to words; numbers have bounds and a unit."""

    key: str
    page: Page
    default: Value
    label: str
    help: str = ""
    choices: Mapping[str, str] = field(default_factory=dict[str, str])
    low: int = 0
    high: int = 0
    unit: str = ""
    is_folder: bool = False
    is_secret: bool = False  # never in the exported file
    for_engine: bool = False  # the command line and the server honour it too

    def check(self, value: object) -> Value | None:
        """The value in this row's kind, or None when it is not one."""
        match self.default:
            case bool():
                if isinstance(value, bool):
                    return value
                return {"true": True, "false": False}.get(str(value).lower())
            case int():
                try:
                    number = int(cast(str, value))
                except (TypeError, ValueError):
                    return None
                return number if self.low <= number <= self.high else None
            case str():
                text = str(value)
                return text if not self.choices or text in self.choices else None


SETTINGS: tuple[Setting, ...] = (
    Setting("general/keep_in_menu_bar", Page.GENERAL, True, mark("Settings", "Show in the menu bar")),
    Setting(
        "general/detail",
        Page.GENERAL,
        "standard",
        mark("Settings", "Detail"),
        mark("Settings", "How much is shown. Nothing behaves differently."),
        choices={
            "simple": mark("Settings", "Simple: speed, fit, stop"),
            "standard": mark("Settings", "Standard"),
            "expert": mark("Settings", "Expert: curves, rounds, raw JSON"),
        },
    ),
)

BY_KEY = {row.key: row for row in SETTINGS}


class Settings(QObject):
    """Values by key, kept across starts. A bad stored value falls back to its default and is logged once."""

    changed = Signal(str)  # key

    def __init__(self, file: Path | None = None, parent: QObject | None = None) -> None:
        """`file`: an ini file instead of the system's place, for tests."""
        super().__init__(parent)
        if file is None:
            self._store = QSettings()
        else:
            self._store = QSettings(str(file), QSettings.Format.IniFormat)
        self._export = (file.parent if file is not None else data_dir()) / "settings.json"
        self._complained: set[str] = set()

    def get(self, key: str) -> Value:
        row = BY_KEY[key]
        stored = self._store.value(key)
        if stored is None:
            return row.default
        value = row.check(stored)
        if value is None:
            if key not in self._complained:
                self._complained.add(key)
                logger.warning("setting %s has the value %r, which it cannot have; using %r", key, stored, row.default)
            return row.default
        return value

    def flag(self, key: str) -> bool:
        value = self.get(key)
        assert isinstance(value, bool), key
        return value

    def number(self, key: str) -> int:
        value = self.get(key)
        assert isinstance(value, int), key
        return value

    def text(self, key: str) -> str:
        value = self.get(key)
        assert isinstance(value, str), key
        return value

    def set(self, key: str, value: Value) -> None:
        """Raises ValueError for a value the row cannot have."""
        row = BY_KEY[key]
        checked = row.check(value)
        if checked is None:
            raise ValueError(f"{key} cannot be {value!r}")
        if checked == self.get(key):
            return
        self._store.setValue(key, checked)
        if row.for_engine:
            self._write_export()
        self.changed.emit(key)

    def reset(self, key: str) -> None:
        self.set(key, BY_KEY[key].default)

    # What is remembered without being a setting: geometry, the last screen, recent pairs.

    def recall(self, key: str, default: object = None) -> object:
        return self._store.value(f"state/{key}", default)

    def remember(self, key: str, value: object) -> None:
        self._store.setValue(f"state/{key}", value)

    def sync(self) -> None:
        self._store.sync()

    def _write_export(self) -> None:
        """The settings of the engine as JSON, for the command line and the server outside the app."""
        values = {row.key: self.get(row.key) for row in SETTINGS if row.for_engine and not row.is_secret}
        self._export.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self._export.with_suffix(".tmp")
        unfinished.write_text(json.dumps(values, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        unfinished.replace(self._export)
