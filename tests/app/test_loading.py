"""While a pair is loaded: how far it is, by bytes, wherever that is shown, and a Cancel that works."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from fakes import FakeEngine
from slipstream.events import Empty, Loading, Report
from slipstream_app.bridge.pair import PairChoice
from slipstream_app.bridge.session import Session
from slipstream_app.numbers import part_text
from slipstream_app.screens.base import AppContext
from slipstream_app.screens.onboarding_ready import ReadyCard
from slipstream_app.widgets.load_bar import LoadBar
from slipstream_app.windows.shell import Shell

GB = 10**9
PAIR = PairChoice("Qwen3.8 27B + DFlash 2", "/nowhere")


class Loader:
    """Reads a piece when it is told to."""

    def __init__(self) -> None:
        self.pieces = [0, 3 * GB, 18 * GB]
        self.more = threading.Semaphore(0)
        self.given_up = False

    def open(self, _: PairChoice, report: Report) -> FakeEngine:
        for done in self.pieces:
            self.more.acquire(timeout=10)
            try:
                report(done, 18 * GB)
            except Exception:
                self.given_up = True
                raise
        return FakeEngine()


@pytest.fixture
def loader() -> Loader:
    return Loader()


@pytest.fixture
def session(qapp: object, loader: Loader) -> Iterator[Session]:
    made = Session(loader.open)
    yield made
    for _ in range(9):
        loader.more.release()
    assert made.stop()


def read(qtbot: QtBot, session: Session, loader: Loader, done: int) -> None:
    loader.more.release()
    title = PAIR.title
    qtbot.waitUntil(lambda: session.status == Loading(title, done, 18 * GB), timeout=5000)


def test_the_bar_goes_by_bytes_and_knows_no_end_before_they_are_known(qtbot: QtBot) -> None:
    bar = LoadBar()
    qtbot.addWidget(bar)
    assert bar.isHidden()
    bar.show_status(Loading("x"))
    assert not bar.isHidden()
    assert (bar.minimum(), bar.maximum()) == (0, 0)
    bar.show_status(Loading("x", 9 * GB, 18 * GB))
    assert bar.value() * 2 == bar.maximum() > 0
    assert bar.accessibleDescription() == "9.0 / 18.0\xa0GB"
    bar.show_status(Empty())
    assert bar.isHidden()


@pytest.mark.parametrize(
    ("part", "whole", "words"),
    [
        (4 * 10**8, 18 * GB, "0.4 / 18.0\xa0GB"),
        (0, 123 * 10**6, "0.0 / 123.0\xa0MB"),
        (5, 2000, "0.0 / 2.0\xa0kB"),
        (5, 9, "5 / 9\xa0B"),
    ],
)
def test_a_part_has_the_unit_of_its_whole(part: int, whole: int, words: str) -> None:
    assert part_text(part, whole) == words


def test_the_window_shows_it_and_cancel_gives_it_up(
    qtbot: QtBot, shell: Shell, session: Session, loader: Loader
) -> None:
    window = shell.window
    window.show()
    session.load(PAIR)
    qtbot.waitUntil(window.toolbar.loading.isVisible, timeout=5000)
    read(qtbot, session, loader, 0)
    read(qtbot, session, loader, 3 * GB)
    assert "16%" in window.pill.text()
    assert window.toolbar.facts.toolTip() == "3.0 / 18.0\xa0GB"
    assert window.popover.read.text() == "3.0 / 18.0\xa0GB"
    assert window.popover.unload.text() == "Cancel"
    window.toolbar.cancel.click()
    loader.more.release()
    qtbot.waitUntil(lambda: session.status == Empty(), timeout=5000)
    assert loader.given_up
    assert not window.toolbar.loading.isVisible()
    assert not window.toolbar.cancel.isVisible()
    assert window.toolbar.facts.toolTip() == ""


def test_another_pair_that_is_chosen_meanwhile_is_loaded_instead(
    qtbot: QtBot, context: AppContext, session: Session, loader: Loader
) -> None:
    session.load(PAIR)
    read(qtbot, session, loader, 0)
    other = PairChoice("another", "/elsewhere")
    session.load(other)
    for _ in range(4):
        loader.more.release()
    qtbot.waitUntil(lambda: session.info is not None, timeout=5000)
    assert loader.given_up
    assert session.choice == other


def test_the_first_start_shows_it_too(qtbot: QtBot, context: AppContext, session: Session, loader: Loader) -> None:
    card = ReadyCard(context)
    qtbot.addWidget(card)
    card.show()
    session.load(PAIR)
    read(qtbot, session, loader, 0)
    read(qtbot, session, loader, 3 * GB)
    assert card.state.text() == "Loading Qwen3.8 27B + DFlash 2: 3.0 / 18.0\xa0GB"
    assert card.bar.value() == 166
    card.cancel.click()
    loader.more.release()
    qtbot.waitUntil(lambda: session.status == Empty(), timeout=5000)
    assert not card.cancel.isVisible()


@pytest.mark.slow
def test_the_real_pair_reports_its_real_bytes(tmp_path: Path) -> None:
    """As the window opens it: by names, through the command line's own words."""
    from slipstream_app.bridge.pair import BUILT_IN, open_choice

    told: list[tuple[int, int]] = []
    ended: list[BaseException] = []

    def load() -> None:
        try:
            open_choice(BUILT_IN, lambda *at: told.append(at)).close()
        except BaseException as error:  # the test's own thread shows it
            ended.append(error)

    thread = threading.Thread(target=load)
    thread.start()
    thread.join(60)
    assert not ended
    done, total = told[-1]
    assert done == total
    assert 80 * 10**6 < total < 250 * 10**6  # 4-bit target and two bf16 drafters
    assert len(told) > 3
