"""Settings › Models: what models take, and a list that is shown before anything goes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QTreeWidgetItem
from pytestqt.qtbot import QtBot

from slipstream.errors import SlipstreamError
from slipstream.store.room import Leaving, Taken
from slipstream_app.bridge.pair import PairChoice
from slipstream_app.models.updates import UpdateCheck
from slipstream_app.screens.base import AppContext
from slipstream_app.windows.model_space import MakeRoom, ModelSpace
from slipstream_app.windows.settings_window import SettingsWindow


class Rooms:
    """Three files of 20 GB each, by name."""

    def __init__(self, folder: Path) -> None:
        self.files = {name: folder / name / "weights" for name in ("old", "middle", "loaded")}
        for file in self.files.values():
            file.parent.mkdir(parents=True)
            file.touch()
        self.error: SlipstreamError | None = None

    def taken(self) -> Taken:
        if self.error is not None:
            raise self.error
        return Taken(20 * 10**9 * sum(file.exists() for file in self.files.values()), 0)

    def could_go(self) -> list[Leaving]:
        here = [name for name, file in self.files.items() if file.exists()]
        return [Leaving(name, 86400.0 * n, ((self.files[name], 20 * 10**9),), None) for n, name in enumerate(here)]


@pytest.fixture
def rooms(tmp_path: Path) -> Rooms:
    return Rooms(tmp_path / "models")


@pytest.fixture
def space(qtbot: QtBot, context: AppContext, rooms: Rooms) -> Iterator[ModelSpace]:
    made = ModelSpace(context.theme, context.settings, lambda: ["loaded"], rooms)
    qtbot.addWidget(made)
    made.show()
    qtbot.waitUntil(lambda: "60.0\xa0GB" in made.words.text(), timeout=5000)
    yield made


def listed(qtbot: QtBot, space: ModelSpace) -> MakeRoom:
    space.make_room.click()
    qtbot.waitUntil(lambda: space.dialog is not None, timeout=5000)
    assert space.dialog is not None
    return space.dialog


def rows(dialog: MakeRoom) -> list[QTreeWidgetItem]:
    found = [dialog.tree.topLevelItem(row) for row in range(dialog.tree.topLevelItemCount())]
    return [item for item in found if item is not None]


def test_what_is_over_the_limit_is_said_and_deletes_nothing(
    qtbot: QtBot, context: AppContext, space: ModelSpace, rooms: Rooms
) -> None:
    assert "limit" not in space.words.text()
    context.settings.set("models/limit_gb", 50)
    assert "10.0\xa0GB over the limit" in space.words.text()
    assert all(file.exists() for file in rooms.files.values())
    rooms.error = SlipstreamError("the disk is gone; plug it in")
    space.look()
    qtbot.waitUntil(lambda: "plug it in" in space.words.text(), timeout=5000)


def test_the_list_names_each_file_ticks_the_oldest_and_never_the_loaded_one(
    qtbot: QtBot, context: AppContext, space: ModelSpace, rooms: Rooms
) -> None:
    context.settings.set("models/limit_gb", 50)
    dialog = listed(qtbot, space)
    tops = rows(dialog)
    assert [top.text(0) for top in tops] == ["old", "middle"]
    assert [top.child(0).text(0) for top in tops] == [str(rooms.files["old"]), str(rooms.files["middle"])]
    assert tops[0].child(0).toolTip(0) == str(rooms.files["old"])
    assert [one.name for one in dialog.chosen] == ["old"]
    assert dialog.words.text() == "1 file(s), 20.0\xa0GB, would go."
    dialog.keep.click()
    assert all(file.exists() for file in rooms.files.values())


def test_what_was_loaded_lately_goes_last(qtbot: QtBot, context: AppContext, space: ModelSpace) -> None:
    pairs = [PairChoice("middle", "middle"), PairChoice("old + x", "old", ("x",))]
    context.settings.remember("recent_pairs", json.dumps([pair.as_json() for pair in pairs]))
    context.settings.set("models/limit_gb", 50)
    space._in_use = lambda: []
    dialog = listed(qtbot, space)
    assert [row.text(0) for row in rows(dialog)] == ["loaded", "old", "middle"]
    assert [one.name for one in dialog.chosen] == ["loaded"]
    dialog.reject()


def test_only_what_was_ticked_goes_and_only_after_a_yes(
    qtbot: QtBot, context: AppContext, space: ModelSpace, rooms: Rooms
) -> None:
    dialog = listed(qtbot, space)
    assert dialog.chosen == []
    assert not dialog.remove.isEnabled()
    rows(dialog)[1].setCheckState(0, Qt.CheckState.Checked)
    assert dialog.remove.isEnabled()
    dialog.remove.click()
    qtbot.waitUntil(lambda: "40.0\xa0GB" in space.words.text(), timeout=5000)
    assert [name for name, file in rooms.files.items() if file.exists()] == ["old", "loaded"]


def test_what_was_loaded_while_the_list_was_read_stays(qtbot: QtBot, space: ModelSpace, rooms: Rooms) -> None:
    dialog = listed(qtbot, space)
    for row in rows(dialog):
        row.setCheckState(0, Qt.CheckState.Checked)
    space._in_use = lambda: ["old"]
    dialog.remove.click()
    qtbot.waitUntil(lambda: "40.0\xa0GB" in space.words.text(), timeout=5000)
    assert [name for name, file in rooms.files.items() if file.exists()] == ["old", "loaded"]


def test_the_settings_have_it(qtbot: QtBot, context: AppContext) -> None:
    window = SettingsWindow(
        context.theme, context.settings, context.session, UpdateCheck(context.settings), context.calibrating
    )
    qtbot.addWidget(window)
    window.open_at("models/bits")
    assert window.space.isVisible()
    assert set(window.editors) >= {"models/bits", "models/limit_gb", "chat/titles", "updates/channel"}
