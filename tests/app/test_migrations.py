"""Settings and chats of every earlier version open in this one, with everything that was in them."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from PySide6.QtCore import QSettings

from slipstream_app import settings as stored
from slipstream_app.history import MIGRATIONS, History, open_history
from slipstream_app.models.speedups import Speedups
from slipstream_app.settings import SCHEMA, Settings


def chats_of_schema(version: int, path: Path) -> None:
    """A database as that version left it, with a chat in it. The columns used here are in every version."""
    with sqlite3.connect(path) as db:
        for number, script in enumerate(MIGRATIONS[:version], 1):
            db.executescript(f"BEGIN; {script} PRAGMA user_version = {number}; COMMIT;")
        db.execute("INSERT INTO chats VALUES (1, 'An old chat', 1.0, 2.0, 2, '{\"parameters\": {\"seed\": 7}}', NULL)")
        for row in ((1, None, "user", "Question about parsers"), (2, 1, "assistant", "An old answer")):
            identity, parent, role, text = row
            db.execute(
                "INSERT INTO messages VALUES (?, 1, ?, ?, ?, 'done', 1.0, '', NULL, NULL, NULL)",
                (identity, parent, role, text),
            )
            db.execute("INSERT INTO found (rowid, text) VALUES (?, ?)", (identity, text))
    db.close()


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS) + 1))
def test_chats_of_each_earlier_schema_are_all_there(version: int, tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    chats_of_schema(version, path)
    history = open_history(path)
    assert history.problem is None
    row = history.chat(1)
    assert row is not None
    assert (row.title, row.leaf, row.parameters) == ("An old chat", 2, {"parameters": {"seed": 7}})
    assert [message.text for message in history.messages(1)] == ["Question about parsers", "An old answer"]
    assert [hit.message for hit in history.search("parsers")] == [1]
    # And every part of this version works on it.
    history.set_model_defaults("a model", {"seed": 1})
    assert history.model_defaults("a model") == {"seed": 1}
    added = history.add(1, 2, "user", "A new question")
    assert history.message(added.id).text == "A new question"
    history.close()
    (number,) = sqlite3.connect(path).execute("PRAGMA user_version").fetchone()
    assert number == len(MIGRATIONS)


def test_a_migration_that_dies_half_way_leaves_the_earlier_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "chats.db"
    chats_of_schema(1, path)
    broken = (MIGRATIONS[0], "CREATE TABLE half (x); NOT SQL AT ALL;")
    monkeypatch.setattr("slipstream_app.history.MIGRATIONS", broken)
    with pytest.raises(sqlite3.OperationalError):
        History(path)
    monkeypatch.undo()
    history = open_history(path)
    assert history.problem is None
    assert [message.text for message in history.messages(1)] == ["Question about parsers", "An old answer"]
    history.close()


def settings_of_schema(version: int, file: Path) -> None:
    store = QSettings(str(file), QSettings.Format.IniFormat)
    store.setValue("appearance/zoom", 120)
    store.setValue("server/port", 9000)
    store.setValue("state/screen", "race")
    if version == 1:
        store.setValue("state/speedup/SmolLM2 135M + DSpark", "2.67×")
        store.setValue("state/speedup/another", "fast")
    else:
        store.setValue("schema", version)
        store.setValue("state/measured/SmolLM2 135M + DSpark", json.dumps({"auto": 2.67}))
    store.sync()


@pytest.mark.parametrize("version", range(1, SCHEMA + 1))
def test_settings_of_each_earlier_schema_hold(version: int, tmp_path: Path) -> None:
    file = tmp_path / "settings.ini"
    settings_of_schema(version, file)
    settings = Settings(file)
    assert (settings.number("appearance/zoom"), settings.number("server/port")) == (120, 9000)
    assert settings.recall("screen") == "race"
    assert Speedups(settings).best("SmolLM2 135M + DSpark") == 2.67
    assert Speedups(settings).best("another") is None
    settings.sync()
    assert int(str(QSettings(str(file), QSettings.Format.IniFormat).value("schema"))) == SCHEMA


def test_settings_of_a_newer_version_stay_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "settings.ini"
    store = QSettings(str(file), QSettings.Format.IniFormat)
    store.setValue("schema", SCHEMA + 5)
    store.setValue("appearance/zoom", "huge")  # in that version's words
    store.sync()
    settings = Settings(file)
    assert settings.number("appearance/zoom") == 100
    settings.sync()
    again = QSettings(str(file), QSettings.Format.IniFormat)
    assert (str(again.value("schema")), again.value("appearance/zoom")) == (str(SCHEMA + 5), "huge")


def test_every_schema_has_its_step() -> None:
    assert len(stored.MIGRATIONS) + 1 == SCHEMA
