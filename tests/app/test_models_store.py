"""The Models screen on the core's own store: a hub on this machine, real downloads, a real load, a real Bin."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from slipstream.store import local
from slipstream_app.bridge.pair import open_choice
from slipstream_app.bridge.session import Session
from slipstream_app.main import make_context
from slipstream_app.models.pairs import Fetch, FitWord, PairRow, Shelf
from slipstream_app.screens.base import AppContext
from slipstream_app.screens.models import ModelsScreen
from slipstream_app.settings import Settings
from store.conftest import home, stub
from stub_hub import Fault, StubHub
from tiny_runs import write_target

__all__ = ["home", "stub"]  # fixtures of the store's own tests
REPO = "mlx-community/Qwen3-4B-8bit"  # what the catalogue recommends of Qwen3-4B


@pytest.fixture
def context(qapp: object, tmp_path: Path) -> Iterator[AppContext]:
    session = Session(open_choice)
    made = make_context(session, Settings(tmp_path / "settings.ini"), tmp_path)
    yield made
    assert session.stop()
    made.history.close()
    made.speeds.close()


@pytest.fixture
def screen(qtbot: QtBot, context: AppContext, home: Path) -> Iterator[ModelsScreen]:
    made = ModelsScreen(context)
    qtbot.addWidget(made)
    made.resize(1000, 700)
    made.show()
    yield made
    made.closing()


@pytest.fixture
def published(stub: StubHub, tmp_path: Path) -> StubHub:
    """A tiny model under the name of a known one."""
    folder = write_target(tmp_path / "published")
    stub.add(REPO, {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()})
    return stub


def row_of(screen: ModelsScreen, key: str) -> PairRow | None:
    return next((row for row in screen.table.everything if row.key.startswith(key)), None)


def choose(qtbot: QtBot, screen: ModelsScreen, key: str) -> PairRow:
    qtbot.waitUntil(lambda: row_of(screen, key) is not None, timeout=20_000)
    row = row_of(screen, key)
    assert row is not None
    screen.sections.choose(list(Shelf).index(row.shelf))
    number = screen.table.number_of(row.key)
    assert number is not None
    screen.pairs.view.selectRow(number)
    return row


def test_a_suggested_pair_is_checked_fetched_loaded_and_deleted(
    qtbot: QtBot, screen: ModelsScreen, context: AppContext, published: StubHub, home: Path
) -> None:
    screen.visited(None)
    row = choose(qtbot, screen, "suggested Qwen3-4B")
    assert row.missing[0].repo == REPO
    assert "dspark" in row.missing[1].repo
    # Whether it fits is known before anything is fetched.
    screen.pairs.details.check.click()
    qtbot.waitUntil(lambda: screen.pairs.details.bar.isVisible(), timeout=20_000)  # noqa: PLW0108
    assert not list(home.rglob("*.safetensors"))
    screen.pairs.details.get.click()
    qtbot.waitUntil(lambda: screen.downloads.cards[REPO].state.fetch is Fetch.DONE, timeout=30_000)
    # The drafter is not on this hub: its own sentence, and the target is there all the same.
    drafter = row.missing[1].repo
    qtbot.waitUntil(lambda: screen.downloads.cards[drafter].state.fetch is Fetch.FAILED, timeout=30_000)
    assert "shows no" in screen.downloads.cards[drafter].words.text()
    mine = choose(qtbot, screen, REPO)
    assert mine.shelf is Shelf.ON_MAC
    assert [half.repo for half in mine.missing] == [drafter]
    assert row_of(screen, "suggested Qwen3-4B ") is None
    qtbot.waitUntil(lambda: screen.table.fit_of(mine) is not None, timeout=20_000)
    fit = screen.table.fit_of(mine)
    assert fit is not None
    assert fit.word is FitWord.FITS
    screen.pairs.details.load.click()
    qtbot.waitUntil(lambda: context.session.info is not None, timeout=60_000)
    assert context.session.info is not None
    assert context.session.info.drafters == ()
    context.session.unload()
    qtbot.waitUntil(screen.pairs.details.delete.isVisible, timeout=20_000)
    screen.pairs.details.delete.click()
    qtbot.waitUntil(screen.pairs.details.removal.isVisible, timeout=20_000)
    assert "model.safetensors" in screen.pairs.details.removal.files.toPlainText()
    screen.pairs.details.removal.remove.click()
    qtbot.waitUntil(lambda: row_of(screen, REPO) is None, timeout=20_000)
    assert not list(home.rglob("*.safetensors"))


def test_a_download_that_was_cut_is_resumed_by_the_next_run(
    qtbot: QtBot, screen: ModelsScreen, context: AppContext, published: StubHub
) -> None:
    published.fault("model.safetensors", Fault(stall_at=2000))
    screen.visited(None)
    choose(qtbot, screen, "suggested Qwen3-4B")
    screen.pairs.details.get.click()
    qtbot.waitUntil(
        lambda: REPO in screen.downloads.cards and screen.downloads.cards[REPO].state.fetch is Fetch.RUNNING,
        timeout=30_000,
    )
    qtbot.waitUntil(lambda: screen.downloads.cards[REPO].state.done > 2000, timeout=30_000)
    screen.downloads.cards[REPO].switch.click()  # Pause
    qtbot.waitUntil(lambda: screen.downloads.cards[REPO].state.fetch is Fetch.PAUSED, timeout=30_000)
    published.released.set()
    screen._store.close()
    again = ModelsScreen(context)
    qtbot.addWidget(again)
    again.visited(None)
    qtbot.waitUntil(lambda: REPO in again.downloads.cards, timeout=20_000)
    assert again.downloads.cards[REPO].state.fetch is Fetch.PAUSED
    assert row_of(again, REPO) is None  # a part is no model
    again.downloads.cards[REPO].switch.click()
    qtbot.waitUntil(lambda: again.downloads.cards[REPO].state.fetch is Fetch.DONE, timeout=30_000)
    qtbot.waitUntil(lambda: row_of(again, REPO) is not None, timeout=20_000)
    again.closing()


def test_the_built_in_pair_and_its_fit(qtbot: QtBot, screen: ModelsScreen) -> None:
    screen.visited(None)
    row = choose(qtbot, screen, "built in")
    assert row.is_built_in
    assert not row.is_removable
    qtbot.waitUntil(lambda: screen.table.fit_of(row) is not None, timeout=60_000)
    fit = screen.table.fit_of(row)
    assert fit is not None
    assert fit.total > 10**8
    assert len([one for one in screen.table.everything if one.shelf is Shelf.SUGGESTED]) >= 20


def test_p19_states_come_from_the_disk(
    qtbot: QtBot, screen: ModelsScreen, context: AppContext, published: StubHub, home: Path
) -> None:
    """A download that was left: incomplete, with how much, to go on with or to delete. A shard deleted by hand: too."""
    published.fault("model.safetensors", Fault(stall_at=2000))
    screen.visited(None)
    choose(qtbot, screen, "suggested Qwen3-4B")
    screen.pairs.details.get.click()
    qtbot.waitUntil(
        lambda: REPO in screen.downloads.cards and screen.downloads.cards[REPO].state.done > 2000, timeout=30_000
    )
    screen.downloads.cards[REPO].switch.click()  # Pause
    qtbot.waitUntil(lambda: screen.downloads.cards[REPO].state.fetch is Fetch.PAUSED, timeout=30_000)
    published.released.set()
    screen._store.close()

    def started_again() -> ModelsScreen:
        made = ModelsScreen(context)
        qtbot.addWidget(made)
        made.resize(1000, 700)
        made.show()
        made.visited("downloads")
        qtbot.waitUntil(lambda: REPO in made.downloads.cards, timeout=20_000)
        return made

    again = started_again()
    card = again.downloads.cards[REPO]
    assert re.match(r"Incomplete, [\d.]+\xa0kB of [\d.]+\xa0kB\.", card.words.text())
    assert card.switch.text() == "Resume"
    qtbot.waitUntil(card.discard.isVisible, timeout=5000)
    built_in = choose(qtbot, again, "built in")
    assert built_in.is_ready  # every other row is as usable as before
    again.sections.choose(2)
    card.switch.click()
    qtbot.waitUntil(lambda: again.downloads.cards[REPO].state.fetch is Fetch.DONE, timeout=30_000)
    qtbot.waitUntil(lambda: row_of(again, REPO) is not None, timeout=20_000)
    again.closing()

    (weights,) = home.rglob("model.safetensors")
    weights.resolve().unlink()
    third = started_again()
    assert row_of(third, REPO) is None  # cannot be loaded
    assert REPO not in [model.name for model in local.models()]  # nor is it offered to API clients
    card = third.downloads.cards[REPO]
    assert card.words.text().startswith("Incomplete, ")
    qtbot.waitUntil(card.discard.isVisible, timeout=5000)
    card.discard.click()
    assert card.discard.text() == "Really delete"
    card.discard.click()
    qtbot.waitUntil(lambda: REPO not in third.downloads.cards, timeout=20_000)
    assert not [model for model in local.scan() if model.name == REPO]
    third.closing()
