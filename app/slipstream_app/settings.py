"""The settings' values, kept across starts and brought over from older versions. The rows: `settings_table.py`."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, QSettings, Signal

from slipstream.store.paths import data_dir
from slipstream_app.setting import Detail, Value
from slipstream_app.settings_table import BY_KEY, SETTINGS

logger = logging.getLogger(__name__)


def _named_ratios(store: QSettings) -> None:
    """1 to 2: a pair's speed-up was a text ("2.67×") of whoever won; now it is a number for each mode."""
    store.beginGroup("state/speedup")
    old = {key: str(store.value(key)) for key in store.allKeys()}
    store.endGroup()
    for pair, text in old.items():
        try:
            store.setValue(f"state/measured/{pair}", json.dumps({"auto": float(text.rstrip("×"))}))
        except ValueError:
            logger.warning("the speed-up of %s was %r, which is no number; it is left out", pair, text)
    store.remove("state/speedup")


# Each brings the stored settings from its index + 1 to the next schema. Append only.
MIGRATIONS: tuple[Callable[[QSettings], None], ...] = (_named_ratios,)
SCHEMA = len(MIGRATIONS) + 1


def migrate(store: QSettings) -> None:
    """Settings of a newer version stay as they are: each row checks its own value."""
    stored = str(store.value("schema", 1))
    version = int(stored) if stored.isdigit() else 1
    for step in MIGRATIONS[version - 1 :]:
        step(store)
    if version < SCHEMA:
        store.setValue("schema", SCHEMA)


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
        migrate(self._store)
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

    @property
    def detail(self) -> Detail:
        return Detail(self.text("general/detail"))

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
