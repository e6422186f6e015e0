"""What macOS hands over: addresses of ours go to a screen and do no more, and a model's file is loaded."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from slipstream_app.bridge.pair import PairChoice
from slipstream_app.screens.registry import PLACES
from slipstream_app.windows import opening
from slipstream_app.windows.shell import Shell


def hand_over(url: QUrl) -> None:
    app = QApplication.instance()
    assert app is not None
    QApplication.sendEvent(app, QFileOpenEvent(url))


@pytest.mark.parametrize("name", [place.name for place in PLACES])
def test_an_address_goes_to_its_screen(qtbot: QtBot, shell: Shell, name: str) -> None:
    shell.window.hide()
    hand_over(QUrl(f"slipstream://{name}"))
    qtbot.waitUntil(lambda: shell.window.place == name, timeout=5000)
    assert shell.window.isVisible()


def test_a_models_file_is_loaded(qtbot: QtBot, shell: Shell) -> None:
    hand_over(QUrl.fromLocalFile("/models/Qwen3 4B.gguf"))
    wanted = PairChoice("Qwen3 4B", "/models/Qwen3 4B.gguf")
    qtbot.waitUntil(lambda: shell.app.session.choice == wanted, timeout=5000)


@pytest.mark.parametrize(
    "address",
    [
        "slipstream://settings",
        "slipstream://race/start",
        "slipstream://chat?prompt=hello",
        "slipstream://chat#send",
        "https://race",
        "slipstream:race",
    ],
)
def test_an_address_with_more_than_a_screens_name_does_nothing(address: str) -> None:
    assert opening.place_of(QUrl(address)) is None
    assert opening.pair_of(QUrl(address)) is None


def test_other_files_and_far_ones_are_no_models() -> None:
    assert opening.pair_of(QUrl.fromLocalFile("/models/notes.txt")) is None
    assert opening.pair_of(QUrl("https://example.com/model.gguf")) is None
