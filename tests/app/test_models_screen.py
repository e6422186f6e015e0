"""The Models screen on a scripted store: every state of a pair and of a download."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from app.scripted_store import DRAFTER, GB, ScriptedStore
from slipstream.errors import InvalidRequest, SlipstreamError
from slipstream_app.bridge.pair import BUILT_IN
from slipstream_app.models.pairs import CONTEXTS, PEAK, STATE, DownloadState, Fetch, FitWord, Missing, PairFit
from slipstream_app.models.store import open_store
from slipstream_app.screens.base import AppContext
from slipstream_app.screens.models import DOWNLOADS, SUGGESTED, ModelsScreen


@pytest.fixture
def store() -> ScriptedStore:
    return ScriptedStore(lambda _: None)


@pytest.fixture
def screen(qtbot: QtBot, context: AppContext, store: ScriptedStore) -> Iterator[ModelsScreen]:
    def open_(notify: object) -> ScriptedStore:
        store.notify = notify  # pyright: ignore[reportAttributeAccessIssue]
        return store

    made = ModelsScreen(context, open_=open_)
    qtbot.addWidget(made)
    made.resize(1000, 700)
    made.show()
    yield made
    made.closing()
    assert store.asked[-1] == ("close", None)


def visit(qtbot: QtBot, screen: ModelsScreen) -> None:
    screen.visited(None)
    qtbot.waitUntil(lambda: any(screen.table.fit_of(row) for row in screen.table.everything), timeout=5000)


def choose(screen: ModelsScreen, key: str) -> None:
    number = screen.table.number_of(key)
    assert number is not None, key
    screen.pairs.view.selectRow(number)


def cell(screen: ModelsScreen, key: str, column: int) -> str:
    number = screen.table.number_of(key)
    assert number is not None, key
    return str(screen.table.index(number, column).data())


def test_before_the_answer_it_looks(screen: ModelsScreen) -> None:
    assert screen.pairs.nothing.text() == "Looking for models on this machine…"
    assert not screen.pairs.details.panel.isVisible()


def test_pairs_are_listed_with_their_fit_in_words(qtbot: QtBot, screen: ModelsScreen) -> None:
    visit(qtbot, screen)
    assert screen.table.rowCount() == 5
    assert cell(screen, "qwen", PEAK) == "fits, 23.1\xa0GB / 36.0\xa0GB"
    assert cell(screen, "qwen", STATE) == "Ready"
    assert cell(screen, "gemma", STATE) == "Drafter missing, 1.4\xa0GB"
    assert cell(screen, "wrong", STATE) == "Cannot be used"
    index = screen.table.index(1, STATE)
    assert index.data(Qt.ItemDataRole.AccessibleTextRole) == "State: Ready"
    screen.sections.choose(SUGGESTED)
    assert screen.table.rowCount() == 2
    assert cell(screen, "glm", PEAK).startswith("too large")
    assert cell(screen, "glm", STATE) == "Needs 5× the memory here"
    assert cell(screen, "small", STATE) == "Not downloaded"
    assert cell(screen, "small", PEAK) == "unknown"


def test_a_short_model_fits_at_its_own_length(qtbot: QtBot, screen: ModelsScreen) -> None:
    visit(qtbot, screen)
    choose(screen, "built in")
    assert screen.pairs.details.fit_words.text().startswith("Fits at 8,192 tokens")


def test_the_bar_follows_the_context(qtbot: QtBot, screen: ModelsScreen) -> None:
    visit(qtbot, screen)
    choose(screen, "qwen")
    assert "Fits at 32,768 tokens" in screen.pairs.details.fit_words.text()
    assert screen.pairs.details.bar.isVisible()
    screen.pairs.context.setValue(CONTEXTS.index(131_072))
    qtbot.waitUntil(
        lambda: (
            "131,072" in screen.pairs.details.fit_words.text() and "more than" in screen.pairs.details.fit_words.text()
        ),
        timeout=5000,
    )
    assert "It fits up to" in screen.pairs.details.fit_words.text()
    assert screen.pairs.details.fit_words.property("role") == "bad"
    assert sum(part.bytes for part in screen.pairs.details.bar.parts) > 36 * GB


def test_search_and_fits_only(qtbot: QtBot, screen: ModelsScreen) -> None:
    visit(qtbot, screen)
    screen.search.setText("gemma 8-bit")
    assert screen.table.rowCount() == 1
    screen.search.setText("nothing like it")
    assert screen.pairs.nothing.text() == "No pair matches."
    assert screen.pairs.nothing.isVisible()
    assert not screen.pairs.details.panel.isVisible()
    screen.search.clear()
    screen.sections.choose(SUGGESTED)
    screen.fits_only.click()
    assert screen.table.rowCount() == 0


def test_nothing_found_says_where_to_look(qtbot: QtBot, screen: ModelsScreen, store: ScriptedStore) -> None:
    store.rows = ()
    screen.visited(None)
    assert not screen.pairs.suggest.isVisible()
    qtbot.waitUntil(lambda: "Nothing was found" in screen.pairs.nothing.text(), timeout=5000)
    assert screen.pairs.add.isVisible()
    screen.pairs.suggest.click()
    assert screen.sections.index == SUGGESTED


def test_nothing_that_matches_is_no_reason_to_look_elsewhere(qtbot: QtBot, screen: ModelsScreen) -> None:
    visit(qtbot, screen)
    screen.search.setText("nothing like it")
    assert screen.pairs.nothing.isVisible()
    assert not screen.pairs.suggest.isVisible()
    screen.search.clear()
    assert not screen.pairs.add.isVisible()


def test_a_folder_can_be_added_where_nothing_was_found(
    qtbot: QtBot, screen: ModelsScreen, store: ScriptedStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store.rows = ()
    screen.visited(None)
    qtbot.waitUntil(screen.pairs.add.isVisible, timeout=5000)
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(tmp_path))
    screen.pairs.add.click()
    qtbot.waitUntil(lambda: ("add", tmp_path) in store.asked, timeout=5000)


def test_a_fit_by_published_figures_says_so_and_can_be_checked(
    qtbot: QtBot, screen: ModelsScreen, store: ScriptedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = PairFit(FitWord.FITS, 4 * GB, 0, GB, GB, 36 * GB, "GPU working set", 40_960, 0, True, True)
    monkeypatch.setattr(store, "fit", lambda *_: fit)
    visit(qtbot, screen)
    screen.sections.choose(SUGGESTED)
    choose(screen, "small")
    words = screen.pairs.details.fit_words.text()
    assert words.startswith("Fits at 32,768 tokens")
    assert "asks the hub for its exact size" in words
    assert "Its drafter is not counted" in words
    assert screen.pairs.details.check.isVisible()


def test_a_pair_that_cannot_be_used_says_why(qtbot: QtBot, screen: ModelsScreen) -> None:
    visit(qtbot, screen)
    choose(screen, "wrong")
    assert "trained for hidden size 4096" in screen.pairs.details.problem.text()
    assert not screen.pairs.details.load.isVisible()


def test_a_pair_is_loaded_and_unloaded(qtbot: QtBot, screen: ModelsScreen, context: AppContext) -> None:
    visit(qtbot, screen)
    choose(screen, "built in")
    screen.pairs.details.load.click()
    assert context.session.choice == BUILT_IN
    qtbot.waitUntil(lambda: cell(screen, "built in", STATE) == "Loaded", timeout=5000)
    qtbot.waitUntil(lambda: screen.pairs.details.load.text() == "Unload", timeout=5000)
    assert screen.pairs.details.race.isVisible()
    with qtbot.waitSignal(context.navigator.asked) as asked:
        screen.pairs.details.race.click()
    assert asked.args is not None
    assert asked.args[0] == "race"
    screen.pairs.details.load.click()
    qtbot.waitUntil(lambda: cell(screen, "built in", STATE) == "Ready", timeout=5000)
    assert context.session.choice is None


def test_deleting_shows_every_file_first(qtbot: QtBot, screen: ModelsScreen, store: ScriptedStore) -> None:
    visit(qtbot, screen)
    choose(screen, "built in")
    assert not screen.pairs.details.delete.isVisible()
    choose(screen, "qwen")
    screen.pairs.details.delete.click()
    qtbot.waitUntil(screen.pairs.details.removal.isVisible, timeout=5000)
    assert screen.pairs.details.removal.files.toPlainText().splitlines() == [
        "/models/qwen/model.safetensors  17.0 GB",
        "/models/qwen/config.json  700 B",
    ]
    assert "shared with LM Studio" in screen.pairs.details.removal.words.text()
    screen.pairs.details.removal.keep.click()
    assert ("remove", "Qwen3.8 27B + DFlash 2") not in store.asked
    screen.pairs.details.delete.click()
    qtbot.waitUntil(screen.pairs.details.removal.isVisible, timeout=5000)
    choose(screen, "gemma")  # another choice takes the question back
    assert not screen.pairs.details.removal.isVisible()
    choose(screen, "qwen")
    screen.pairs.details.delete.click()
    qtbot.waitUntil(screen.pairs.details.removal.isVisible, timeout=5000)
    screen.pairs.details.removal.remove.click()
    qtbot.waitUntil(lambda: screen.table.number_of("qwen") is None, timeout=5000)
    assert screen.app.banners.current is not None
    assert screen.app.banners.current.text == "Qwen3.8 27B + DFlash 2: in the Bin"


def test_a_missing_half_is_named_with_its_size_and_fetched(
    qtbot: QtBot, screen: ModelsScreen, store: ScriptedStore
) -> None:
    visit(qtbot, screen)
    choose(screen, "gemma")
    assert screen.pairs.details.get.text() == "Get 1.4\xa0GB"
    assert screen.pairs.details.load.isVisible()  # it runs without the drafter too
    screen.pairs.details.get.click()
    assert ("start", DRAFTER) in store.asked
    qtbot.waitUntil(lambda: DRAFTER.repo in screen.downloads.cards, timeout=5000)
    assert screen.sections.index == DOWNLOADS
    card = screen.downloads.cards[DRAFTER.repo]
    assert card.words.text() == "Waiting behind another download"
    files = (("model.safetensors", 5 * 10**8, GB),)
    store.notify(DownloadState(DRAFTER.repo, Fetch.RUNNING, 5 * 10**8, GB, files, 10**7, 50.0))
    qtbot.waitUntil(lambda: card.bar.value() == 500, timeout=5000)
    assert card.words.text() == "500\xa0MB of 1.0\xa0GB, 10.0\xa0MB a second, about 50\xa0s left"
    assert card.files.text() == "model.safetensors"
    assert screen.sections._group.button(DOWNLOADS).text() == "Downloads (1)"
    card.switch.click()
    qtbot.waitUntil(lambda: card.switch.text() == "Resume", timeout=5000)
    assert "Incomplete, 300\xa0MB of 1.0\xa0GB" in card.words.text()
    card.switch.click()
    assert store.asked[-1] == ("start", DRAFTER)
    looked = len(screen.table.everything)
    store.rows = tuple(row for row in store.rows if row.key != "wrong")
    store.notify(DownloadState(DRAFTER.repo, Fetch.DONE, GB, GB))
    qtbot.waitUntil(lambda: len(screen.table.everything) == looked - 1, timeout=5000)  # the disk is read anew
    assert card.words.text() == "Downloaded and checked"
    assert not card.switch.isVisible()


def test_a_pair_that_is_not_here_can_be_checked_before_it_is_fetched(
    qtbot: QtBot, screen: ModelsScreen, store: ScriptedStore
) -> None:
    visit(qtbot, screen)
    screen.sections.choose(SUGGESTED)
    choose(screen, "glm")
    assert not screen.pairs.details.check.isVisible()  # its weights alone are too large
    choose(screen, "small")
    assert "once the hub was asked" in screen.pairs.details.fit_words.text()
    assert screen.pairs.details.get.text() == "Get about 5.0\xa0GB"  # model and drafter: both are fetched
    store.refuses = InvalidRequest("there is no connection to the hub")
    screen.pairs.details.check.click()
    qtbot.waitUntil(lambda: screen.app.banners.current is not None, timeout=5000)
    store.refuses = None
    screen.pairs.details.check.click()
    qtbot.waitUntil(lambda: "Fits at" in screen.pairs.details.fit_words.text(), timeout=5000)
    assert not screen.pairs.details.check.isVisible()


def test_a_download_of_an_earlier_run_can_be_resumed(qtbot: QtBot, screen: ModelsScreen, store: ScriptedStore) -> None:
    store.left = (DownloadState("old/one", Fetch.PAUSED, 3 * 10**8, GB),)
    visit(qtbot, screen)
    assert screen.downloads.cards["old/one"].switch.text() == "Resume"
    screen.downloads.cards["old/one"].switch.click()
    assert store.asked[-1] == ("start", Missing("old/one", None))


def test_p20_gated_and_offline_have_their_own_way_out(
    qtbot: QtBot, screen: ModelsScreen, store: ScriptedStore, context: AppContext
) -> None:
    visit(qtbot, screen)
    gated = DownloadState("a/gated", Fetch.FAILED, words="accept its terms", page="https://hub.example/a/gated")
    store.notify(gated)
    store.notify(DownloadState("b/offline", Fetch.FAILED, words="there is no connection", is_offline=True))
    qtbot.waitUntil(lambda: "b/offline" in screen.downloads.cards, timeout=5000)
    screen.sections.choose(DOWNLOADS)
    assert screen.downloads.cards["a/gated"].page.isVisible()
    assert not screen.downloads.cards["b/offline"].page.isVisible()
    assert context.banners.current is not None
    assert context.banners.current.text == "Downloads need a connection."


def test_an_error_does_not_follow_to_another_screen(screen: ModelsScreen, context: AppContext) -> None:
    screen.pairs.complain(InvalidRequest("there is no room"))
    assert context.banners.current is not None
    screen.left()
    assert context.banners.current is None


def test_a_refusal_is_said(qtbot: QtBot, screen: ModelsScreen, store: ScriptedStore, context: AppContext) -> None:
    visit(qtbot, screen)
    store.refuses = InvalidRequest("there is no room: 20 GB are needed, 3 GB are free")
    choose(screen, "gemma")
    screen.pairs.details.get.click()
    assert context.banners.current is not None
    assert "there is no room" in context.banners.current.text


def test_a_folder_that_is_dropped_is_indexed_where_it_is(
    qtbot: QtBot, screen: ModelsScreen, store: ScriptedStore, tmp_path: Path
) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(tmp_path)), QUrl("https://example.org/")])
    move, left = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
    drop = QDropEvent(QPoint(5, 5).toPointF(), move, data, left, Qt.KeyboardModifier.NoModifier)
    screen.dropEvent(drop)
    qtbot.waitUntil(lambda: ("add", tmp_path) in store.asked, timeout=5000)
    assert len([what for what, _ in store.asked if what == "add"]) == 1


def test_a_race_leaves_its_speed_here(qtbot: QtBot, screen: ModelsScreen, context: AppContext) -> None:
    context.speedups.record(BUILT_IN.title, {"dspark": 2.67, "lookup": 1.1})
    visit(qtbot, screen)
    assert cell(screen, "built in", 4) == "2.67×"
    assert cell(screen, "qwen", 4) == "not measured"
    choose(screen, "built in")
    assert screen.pairs.details.facts.text().startswith("Measured here: DSpark 2.67×, Lookup 1.10×")


def test_a_place_can_be_asked_for(qtbot: QtBot, screen: ModelsScreen) -> None:
    screen.visited("suggested")
    assert screen.sections.index == SUGGESTED
    screen.visited("qwen3")
    assert screen.search.text() == "qwen3"


def test_the_real_store_knows_the_built_in_pair(qapp: object) -> None:
    store = open_store(lambda _: None)
    try:
        rows = [row for row in store.pairs() if row.is_built_in]
        assert len(rows) == 1
        assert rows[0].is_ready
        assert not rows[0].is_removable
        assert store.fit(rows[0], 4096, 0).word in FitWord
        with pytest.raises(InvalidRequest, match="part of Slipstream"):
            store.plan_removal(rows[0])
    finally:
        store.close()


def failed(**facts: Any) -> DownloadState:
    return DownloadState("publisher/gemma-dspark", Fetch.FAILED, words="The hub wants to know who asks.", **facts)


def test_a_gated_download_takes_a_token_and_goes_on(qtbot: QtBot, screen: ModelsScreen, store: ScriptedStore) -> None:
    visit(qtbot, screen)
    screen.fetching.show_state(failed(wants_token=True))
    screen.sections.choose(DOWNLOADS)
    card = screen.downloads.cards["publisher/gemma-dspark"]
    assert card.token_row.isVisible()
    assert not card.use_token.isEnabled()
    qtbot.keyClicks(card.token, "hf_secret")
    assert "hf_secret" not in card.token.displayText()
    qtbot.keyClick(card.token, Qt.Key.Key_Return)
    assert card.token.text() == ""
    qtbot.waitUntil(lambda: ("token", "hf_secret") in store.asked, timeout=5000)
    qtbot.waitUntil(lambda: any(what == "start" for what, _ in store.asked), timeout=5000)


def test_a_token_that_cannot_be_kept_is_said_and_nothing_starts(
    qtbot: QtBot, screen: ModelsScreen, store: ScriptedStore, context: AppContext
) -> None:
    visit(qtbot, screen)
    screen.fetching.show_state(failed(wants_token=True))
    store.refuses = SlipstreamError("this is no Hugging Face token")
    screen.downloads.cards["publisher/gemma-dspark"].token_given.emit("publisher/gemma-dspark", "x")
    qtbot.waitUntil(lambda: context.banners.current is not None, timeout=5000)
    assert not any(what == "start" for what, _ in store.asked)


def test_a_full_disk_names_what_could_go(qtbot: QtBot, screen: ModelsScreen) -> None:
    visit(qtbot, screen)
    screen.fetching.show_state(failed(is_full=True))
    words = screen.downloads.cards["publisher/gemma-dspark"].words.text()
    assert "The largest pairs here: Qwen3.8 27B + DFlash 2 (17.2\xa0GB)." in words


@pytest.mark.parametrize("size", [(824, 500), (1080, 700), (1416, 930)])
def test_the_table_ends_with_its_last_row_and_the_details_have_the_rest(
    qtbot: QtBot, screen: ModelsScreen, size: tuple[int, int]
) -> None:
    screen.resize(*size)
    visit(qtbot, screen)
    qtbot.waitUntil(lambda: all(screen.pairs.sizes()), timeout=5000)
    pairs, view = screen.pairs, screen.pairs.view
    qtbot.waitUntil(lambda: abs(view.height() - view.whole_height) <= 2, timeout=5000)
    bar = pairs.details.verticalScrollBar()
    assert (bar.maximum() > 0) is (size[1] == 500), "only in a small window there is more than can be seen"
    pairs.setSizes([150, 400])  # as somebody left it
    left = pairs.sizes()
    screen.search.setText("qwen")
    assert pairs.sizes() == left
