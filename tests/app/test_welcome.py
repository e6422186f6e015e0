"""The first start: what is offered, by what is here and what would fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from app.scripted_store import GB, ScriptedStore
from fakes import FakeEngine
from slipstream.errors import SlipstreamError, Unsteady
from slipstream.events import Event
from slipstream.jobs import Job
from slipstream.store.memory import Limit
from slipstream.types import Calibrate
from slipstream_app.bridge.pair import BUILT_IN, PairChoice
from slipstream_app.models.pairs import FitWord, Missing, PairFit, PairRow, Shelf
from slipstream_app.models.suggest import Size, Sure, download_of, estimate, found_here, suggested
from slipstream_app.screens.base import AppContext
from slipstream_app.screens.onboarding import OnboardingScreen
from slipstream_app.widgets.panel import Words


def known(title: str, bits: str, drafter: int = GB) -> PairRow:
    missing = (Missing("m", None), Missing("d", drafter))
    return PairRow(title, PairChoice(title, title), Shelf.SUGGESTED, bits, None, 32768, missing)


ROWS = [
    known("Tiny-1.2B bf16 + DSpark", "bf16"),
    known("Small-4B 8-bit + DSpark", "8-bit"),
    known("Middle-14B 8-bit + DSpark", "8-bit"),
    known("Large-30B-A3B 4-bit + DSpark", "4-bit"),
    known("Huge-120B 4-bit + DSpark", "4-bit"),
    known("Nameless", "4-bit"),
    known("Whole-27B + DFlash", ""),
]


@pytest.mark.parametrize(
    ("title", "bits", "expected"), [("X-4B 8-bit", "8-bit", 5.4), ("X-1.2B", "bf16", 3.64), ("X-27B", "", None)]
)
def test_a_size_is_told_by_parameters_and_bits(title: str, bits: str, expected: float | None) -> None:
    size = estimate(known(title, bits))
    assert (None if size is None else round(size / GB, 2)) == expected


def test_a_download_is_all_that_it_queues() -> None:
    row = known("X-8B 8-bit + DSpark", "8-bit", int(4.7 * GB))
    assert download_of(row) == (estimate(row), Sure.ABOUT)
    assert round(download_of(row)[0] / GB, 1) == 13.5  # pyright: ignore[reportOptionalSubscript]
    nameless = replace(row, missing=(Missing("m", None), Missing("d", None)))
    assert download_of(nameless) == (estimate(nameless), Sure.AT_LEAST)
    whole = replace(row, missing=(Missing("m", 8 * GB), Missing("d", GB)))
    assert download_of(whole) == (9 * GB, Sure.EXACT)
    half = replace(row, shelf=Shelf.ON_MAC, bytes=8 * GB, missing=(Missing("d", GB),))
    assert download_of(half) == (GB, Sure.EXACT)
    assert download_of(replace(half, missing=(Missing("d", None),))) is None


@pytest.mark.parametrize(
    ("memory", "sizes"),
    [
        (33, {Size.BALANCED: "Middle", Size.FAST: "Tiny", Size.LARGE: "Large"}),
        (8, {Size.BALANCED: "Tiny", Size.LARGE: "Small"}),
        (2, {}),
    ],
)
def test_three_at_most_are_suggested_and_all_of_them_fit(memory: int, sizes: dict[Size, str]) -> None:
    found = {one.size: one.row.title.partition("-")[0] for one in suggested(ROWS, {}, memory * GB)}
    assert found == sizes


def test_what_is_known_to_fit_goes_first_and_what_has_no_room_for_a_context_is_left_out() -> None:
    fits = {row.key: PairFit(FitWord.UNKNOWN) for row in ROWS}
    fits[ROWS[1].key] = PairFit(FitWord.FITS, longest_context=32768)
    fits[ROWS[2].key] = PairFit(FitWord.TOO_LARGE, longest_context=6144)
    fits[ROWS[3].key] = PairFit(FitWord.TOO_LARGE, longest_context=2048)
    assert [one.row for one in suggested(ROWS, fits, 33 * GB)] == [ROWS[2], ROWS[1]]


def test_near_the_middle_the_better_drafter_is_suggested() -> None:
    better = replace(ROWS[2], key="better", published_speedup=2.7)
    far = replace(ROWS[1], key="far", published_speedup=9.0)
    rows = [ROWS[0], far, ROWS[2], better, ROWS[3]]
    assert suggested(rows, {}, 33 * GB)[0].row is better


def test_what_is_here_and_whole_is_offered_first() -> None:
    here = [
        PairRow("built in", BUILT_IN, Shelf.ON_MAC, "4-bit", GB, 8192),
        PairRow("plain", PairChoice("plain", "plain", ()), Shelf.ON_MAC, "4-bit", GB, 8192),
        PairRow("pair", PairChoice("pair", "pair", ("d",)), Shelf.ON_MAC, "4-bit", GB, 8192),
        PairRow("broken", PairChoice("broken", "b"), Shelf.ON_MAC, "4-bit", GB, 8192, problem="damaged"),
    ]
    assert [row.key for row in found_here(here)] == ["pair", "plain"]


@pytest.fixture
def store() -> ScriptedStore:
    return ScriptedStore(lambda _: None)


@pytest.fixture
def screen(qtbot: QtBot, ready: AppContext, store: ScriptedStore) -> Iterator[OnboardingScreen]:
    made = OnboardingScreen(ready, open_=lambda _: store)
    made._machine = replace(made._machine, gpu_bytes=33 * GB)
    qtbot.addWidget(made)
    made.resize(1000, 700)
    made.show()
    yield made
    made.left()


def test_it_looks_offers_and_loads(qtbot: QtBot, screen: OnboardingScreen, ready: AppContext) -> None:
    assert screen.looking.isVisible()
    assert [button.text() for button in screen.choices.buttons()] == [BUILT_IN.title]
    screen.visited(None)
    qtbot.waitUntil(lambda: not screen.looking.isVisible(), timeout=5000)
    titles = [button.text() for button in screen.choices.buttons()]
    assert titles[:2] == [BUILT_IN.title, "Qwen3.8 27B + DFlash 2"]
    screen.choices.buttons()[1].click()
    assert screen.use.text() == "Load"
    screen.use.click()
    assert ready.session.choice is not None
    assert ready.session.choice.title == "Qwen3.8 27B + DFlash 2"


def test_a_pair_that_is_not_here_leads_to_where_it_can_be_had(
    qtbot: QtBot, screen: OnboardingScreen, ready: AppContext, store: ScriptedStore
) -> None:
    store.rows = ROWS
    screen.visited(None)
    qtbot.waitUntil(lambda: len(screen.choices.buttons()) == 4, timeout=5000)
    screen.choices.buttons()[1].click()
    assert screen.use.text() == "Download…"
    with qtbot.waitSignal(ready.navigator.asked) as asked:
        screen.use.click()
    assert asked.args == ["models", {"shelf": "suggested", "words": "Middle-14B 8-bit + DSpark"}]


@pytest.mark.parametrize(
    ("fit", "tokens", "words"),
    [
        (PairFit(FitWord.FITS, longest_context=65536), 65536, "fits at 32k"),
        (PairFit(FitWord.FITS, longest_context=8192), 8192, "fits at 8k"),
        (PairFit(FitWord.TIGHT, longest_context=40960), 65536, "tight at 32k"),
        (PairFit(FitWord.TOO_LARGE, longest_context=12544), 65536, "fits up to 12k"),
        (PairFit(FitWord.TOO_LARGE, longest_context=256), 65536, "too large"),
        (
            PairFit(FitWord.FITS, longest_context=65536, lacks_drafter=True),
            65536,
            "fits at 32k (drafter not counted)",
        ),
    ],
)
def test_each_suggestion_says_its_size_and_how_much_context_fits(
    qtbot: QtBot,
    screen: OnboardingScreen,
    store: ScriptedStore,
    monkeypatch: pytest.MonkeyPatch,
    fit: PairFit,
    tokens: int,
    words: str,
) -> None:
    store.rows = [replace(ROWS[2], context=tokens)]
    if fit.longest_context < 4096:  # on this machine, and chosen by nobody
        store.rows = [replace(ROWS[2], context=tokens, shelf=Shelf.ON_MAC, missing=(), bytes=5 * GB)]
    monkeypatch.setattr(store, "fit", lambda row, at, bits: fit if at == 32768 else PairFit(FitWord.UNKNOWN))
    screen.visited(None)
    qtbot.waitUntil(lambda: len(screen._notes) == 2, timeout=5000)
    note = screen._notes[1]
    assert isinstance(note, Words)
    assert note.text().endswith(f", {words}")
    assert ("16.4\xa0GB to download" if fit.longest_context >= 4096 else "5.0\xa0GB") in note.text()


def test_the_catalogues_own_suggestions_say_it_offline(
    qtbot: QtBot, ready: AppContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With the real store and an empty disk, on a Mac with 36 GB for the GPU; nobody is asked."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    limit = Limit(36 * GB, "GPU working set", 48 * GB, True, packs_drafters=True)
    monkeypatch.setattr("slipstream.store.memory.limit", lambda: limit)
    monkeypatch.setattr("slipstream_app.models.store.hub.look", None)
    screen = OnboardingScreen(ready)
    screen._machine = replace(screen._machine, gpu_bytes=36 * GB)
    qtbot.addWidget(screen)
    screen.visited(None)
    qtbot.waitUntil(screen.looking.isHidden, timeout=20_000)
    notes = [note.text() for note in screen._notes[1:] if isinstance(note, Words)]
    assert 2 <= len(notes) <= 3
    assert all("GB to download, fits at 32k" in note for note in notes), notes


def test_a_store_that_cannot_be_read_leaves_the_built_in_pair(
    qtbot: QtBot, screen: OnboardingScreen, store: ScriptedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> list[PairRow]:
        raise SlipstreamError("the disk is gone")

    monkeypatch.setattr(store, "pairs", fail)
    screen.visited(None)
    qtbot.waitUntil(lambda: not screen.looking.isVisible(), timeout=5000)
    assert len(screen.choices.buttons()) == 1


def test_a_busy_machine_is_told_apart_and_measured_later(
    qtbot: QtBot, screen: OnboardingScreen, ready: AppContext, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = engine.run

    def busy(job: Job) -> Iterator[Event]:
        if isinstance(job.work, Calibrate):
            raise Unsteady("busy (load 9)")
        yield from run(job)

    monkeypatch.setattr(engine, "run", busy)
    screen.ready.measure.click()
    qtbot.waitUntil(lambda: bool(screen.ready.costs.text()) and not screen.ready.skip.isVisible(), timeout=10_000)
    assert screen.ready.costs.text() == "This machine is busy (load 9): measure later, in Settings."


def test_a_folder_of_ones_own_is_looked_through(
    qtbot: QtBot, screen: OnboardingScreen, store: ScriptedStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    screen.visited(None)
    qtbot.waitUntil(lambda: len(screen.choices.buttons()) > 1, timeout=5000)
    before = [button.text() for button in screen.choices.buttons()]
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(tmp_path))
    store.rows = (*store.rows[:1], replace(store.rows[1], choice=PairChoice("My own", "/mine")))
    screen.choices.buttons()[1].click()
    screen.own.click()
    qtbot.waitUntil(lambda: ("add", tmp_path) in store.asked, timeout=5000)
    qtbot.waitUntil(lambda: [button.text() for button in screen.choices.buttons()] != before, timeout=5000)
    assert [button.text() for button in screen.choices.buttons()] == [BUILT_IN.title, "My own"]
    assert screen.choices.checkedId() == 0
    qtbot.wait(1)  # the widgets of what was offered before are gone
    screen.app.theme.changed.emit()
    store.refuses = SlipstreamError("this folder cannot be read; choose another")
    screen.own.click()
    qtbot.waitUntil(lambda: "cannot be read" in screen.looking.text(), timeout=5000)


def test_what_the_self_test_measured_is_kept(qtbot: QtBot, screen: OnboardingScreen, ready: AppContext) -> None:
    screen.ready.measure.click()
    assert screen.ready.skip.isVisible()
    qtbot.waitUntil(lambda: screen.ready.test is None, timeout=10_000)
    assert "the answers are the same, token for token" in screen.ready.result.text()
    assert "× as fast on code, " in screen.ready.result.text()
    assert "× on prose" in screen.ready.result.text()
    qtbot.waitUntil(screen.ready.measure.isVisible, timeout=5000)  # calibrated too
    assert ready.speedups.best("a scripted model") is not None
