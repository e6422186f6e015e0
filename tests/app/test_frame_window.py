"""The frame around the screens: navigation, pill, banners, recovery, closing, quitting, what is kept."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QAbstractButton, QApplication, QComboBox, QLineEdit, QListView, QSpinBox, QWidget
from pytestqt.qtbot import QtBot

from app.fake_run import FakeRun
from app.scripted_store import ScriptedStore
from fakes import INFO, FakeEngine, Script
from slipstream.errors import EngineFaulted, ModelIncomplete, SlipstreamError, WontFit
from slipstream.events import Done, Empty, Failed, Faulted, Loading, Ready, Report, Timings, Working
from slipstream.types import Options, Request, Text
from slipstream_app.bridge.pair import PairChoice
from slipstream_app.bridge.server import ServerOff, ServerOn, ServerRefused
from slipstream_app.bridge.session import Session
from slipstream_app.bridge.watch import Watch
from slipstream_app.main import make_context
from slipstream_app.models.activity import Doing
from slipstream_app.models.recent import RecentPairs
from slipstream_app.models.server_options import server_options
from slipstream_app.models.training import Training, Wanted
from slipstream_app.screens.base import AppContext
from slipstream_app.screens.models import ModelsScreen
from slipstream_app.screens.registry import PLACES
from slipstream_app.settings import Settings
from slipstream_app.theme import Theme
from slipstream_app.widgets.banner import Banner, BannerBar, Banners, Kind
from slipstream_app.widgets.recovery import Cause, cause_of
from slipstream_app.windows import splitters, toolbar
from slipstream_app.windows.shell import Shell

HELLO = Request(Text("hello"), Options())
PAIR = PairChoice("a scripted model", "/nowhere/fake-model")


@pytest.fixture
def loaded(qtbot: QtBot, shell: Shell) -> Shell:
    shell.show_window()
    shell.app.session.load(PAIR)
    qtbot.waitUntil(lambda: isinstance(shell.app.session.status, Ready), timeout=5000)
    return shell


# Places.


def test_every_place_opens_by_the_sidebar_and_by_its_key(qtbot: QtBot, loaded: Shell) -> None:
    window = loaded.window
    for number, place in enumerate(PLACES):
        window.sidebar.list.setCurrentIndex(window.sidebar.list.model().index(number, 0))
        assert window.place == place.name
    for place in reversed(PLACES):
        window.actions_[f"view.{place.name}"].trigger()
        assert window.place == place.name
        assert window.sidebar.list.currentIndex().data() is not None


def test_the_sidebar_shows_icons_alone_in_a_narrow_window(loaded: Shell) -> None:
    window = loaded.window
    window.resize(QSize(1280, 800))
    assert not window.sidebar.is_narrow
    window.resize(QSize(900, 600))
    assert window.sidebar.is_narrow
    assert window.minimumSize() == QSize(880, 560)


def test_geometry_and_place_are_kept(qtbot: QtBot, shell: Shell, tmp_path: Path) -> None:
    shell.show_window()
    shell.window.resize(QSize(1010, 640))
    shell.window.go("models")
    shell.window.toggle_sidebar()
    shell.quit()
    again = Session(lambda *_: FakeEngine())
    context = make_context(again, Settings(tmp_path / "settings.ini"), tmp_path / "again")
    second = Shell(context, tmp_path / "log")
    assert second.window.height() == 640  # the test screen is too small for the width
    assert not second.window.sidebar.isVisibleTo(second.window)
    assert context.settings.recall("screen") == "models"
    second.quit()
    assert again.stop()
    context.history.close()
    context.speeds.close()
    second.window.deleteLater()


def test_splitters_stay_where_they_were_put(qtbot: QtBot, context: AppContext) -> None:
    def opened() -> ModelsScreen:
        made = ModelsScreen(context, open_=ScriptedStore)
        qtbot.addWidget(made)
        made.resize(1000, 700)
        splitters.recall(context.settings, made)
        made.show()
        made.visited(None)
        qtbot.waitUntil(lambda: all(made.pairs.sizes()), timeout=5000)
        return made

    first = opened()
    first.pairs.setSizes([200, 400])
    splitters.remember(context.settings, first)
    second = opened()
    qtbot.waitUntil(lambda: abs(second.pairs.sizes()[0] - first.pairs.sizes()[0]) <= 1, timeout=2000)
    assert not second.pairs.childrenCollapsible()
    context.settings.remember("splitters/models/0", "no state")
    third = opened()
    assert abs(third.pairs.sizes()[0] - first.pairs.sizes()[0]) > 1
    splitters.remember(context.settings, third)
    assert context.settings.recall("splitters/models/0") == "no state", "nobody moved it"
    for screen in (first, second, third):
        screen.closing()


# The pair.


def test_the_pill_says_what_is_loaded_and_the_popover_loads_another(qtbot: QtBot, loaded: Shell) -> None:
    window = loaded.window
    assert "a scripted model" in window.pill.text()
    window.open_popover()
    popover = window.popover
    popover.found.search.setText("smollm")
    assert popover.found.list.model().rowCount() == 1
    popover.found.search.setText("zzz")
    assert popover.found.nothing.isVisible()
    assert not popover.load.isEnabled()
    popover.found.search.setText("")
    qtbot.keyClick(popover.found.search, Qt.Key.Key_Down)
    with qtbot.waitSignal(popover.load_asked) as asked:
        qtbot.mouseClick(popover.load, Qt.MouseButton.LeftButton)
    assert asked.args is not None
    assert asked.args[0] != PAIR


def test_the_popover_says_whether_a_pair_fits(qtbot: QtBot, loaded: Shell) -> None:
    window = loaded.window
    window.open_popover()
    qtbot.waitUntil(lambda: any(row.detail == "fits" for row in window.popover.found.rows), timeout=10_000)
    assert {row.title: row.detail for row in window.popover.found.rows}["SmolLM2 135M + DSpark"] == "fits"
    window.popover.hide()


def test_unload_empties_the_pill(qtbot: QtBot, loaded: Shell) -> None:
    loaded.window.run("model.unload")
    qtbot.waitUntil(lambda: "No model" in loaded.window.pill.text(), timeout=5000)
    qtbot.waitUntil(lambda: not loaded.window.actions_["model.unload"].isEnabled(), timeout=5000)
    loaded.window.run("model.load")
    qtbot.waitUntil(lambda: isinstance(loaded.app.session.status, Ready), timeout=5000)


def test_recent_pairs_survive_and_bad_ones_are_dropped(qtbot: QtBot, loaded: Shell) -> None:
    app = loaded.app
    assert RecentPairs(app.session, app.settings).pairs[0] == PAIR
    app.settings.remember("recent_pairs", '[{"title": "x", "colour": "red"}]')
    assert [pair.target for pair in RecentPairs(app.session, app.settings).pairs] == [None]


def test_whether_a_pair_fits_is_a_dot_too(qtbot: QtBot, loaded: Shell) -> None:
    window = loaded.window
    theme = loaded.app.theme
    loaded.app.settings.remember("recent_pairs", "[]")
    window.open_popover()
    qtbot.waitUntil(lambda: any(row.detail == "fits" for row in window.popover.found.rows), timeout=10_000)
    rows = window.popover.found.rows
    assert {row.detail: row.dot for row in rows} == {"loaded": "ok", "fits": "ok"}
    listed = window.popover.found.list
    at = next(number for number, row in enumerate(rows) if row.detail == "fits")
    listed.setCurrentIndex(listed.model().index(1 - at, 0))  # the chosen row has colours of its own
    area = listed.visualRect(listed.model().index(at, 0))
    for dot in ("ok", "warn", "bad"):
        rows[at] = replace(rows[at], dot=dot)
        image = listed.viewport().grab(area).toImage()
        seen = {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())}
        assert theme.color(dot).name() in seen, dot
    window.popover.hide()


# The footer.


@pytest.mark.parametrize(
    ("error", "word", "below"),
    [
        (EngineFaulted("the model failed (KeyError: 3); reload it"), "Crashed", "Engine crashed"),
        (WontFit("it needs 40 GB; choose a smaller one"), "Off", "No model is loaded"),
    ],
)
def test_a_crash_is_told_from_a_pair_that_was_refused(
    qtbot: QtBot, loaded: Shell, error: SlipstreamError, word: str, below: str
) -> None:
    loaded.app.bus.note(Faulted(error))
    qtbot.waitUntil(lambda: loaded.window.footer.word() == word, timeout=5000)
    assert loaded.window.status_bar.engine.text() == below


def test_the_footer_tells_state_speed_and_share(qtbot: QtBot, loaded: Shell, engine: FakeEngine) -> None:
    footer = loaded.window.footer
    assert footer.doing is Doing.READY
    timings = Timings(0.0, 0.0, 0.6, 1.4, 791, 0, 101, 40)  # P22: 100 intervals in 0.8 s
    engine.script = Script(pieces=("One", ", two"), timings=timings)
    done: list[object] = []
    loaded.app.bus.said.connect(lambda _, event: done.append(event))
    loaded.app.session.submit(HELLO)
    qtbot.waitUntil(lambda: bool(done) and isinstance(done[-1], Done), timeout=5000)
    footer.refresh()
    assert footer.speed == "125.0 tok/s"
    assert footer.share.endswith("% accepted")


def test_nothing_ticks_while_the_window_is_hidden(qtbot: QtBot, loaded: Shell, engine: FakeEngine) -> None:
    engine.script = Script(blocks_after=1)
    loaded.app.session.submit(HELLO)
    qtbot.waitUntil(lambda: isinstance(loaded.app.session.status, Working), timeout=5000)
    footer = loaded.window.footer
    assert footer._timer.isActive()
    loaded.window.hide()
    assert not footer._timer.isActive()
    engine.released.set()
    qtbot.waitUntil(lambda: isinstance(loaded.app.session.status, Ready), timeout=5000)
    assert not loaded.watch._look.isActive()


def test_the_sidebar_counts_what_ended_while_nobody_looked(qtbot: QtBot, loaded: Shell, engine: FakeEngine) -> None:
    window, ends = loaded.window, list[object]()
    loaded.app.bus.said.connect(lambda _, event: ends.append(event) if isinstance(event, Done) else None)

    def told(row: int) -> str:
        return str(window.sidebar.list.model().index(row, 0).data(Qt.ItemDataRole.AccessibleTextRole))

    def ask(source: str) -> None:
        before = len(ends)
        loaded.app.session.submit(HELLO, source)
        qtbot.waitUntil(lambda: len(ends) > before, timeout=5000)

    window.go("chat")
    ask("chat")
    assert told(0) == "Chat"
    window.go("models")
    ask("chat")
    ask("race")
    assert told(0) == "Chat, 1 new"
    window.go("chat")
    assert told(0) == "Chat"
    window.hide()
    ask("chat")
    assert told(0) == "Chat, 1 new"
    window.show()
    assert told(0) == "Chat"
    loaded.app.trainings.made.emit(Training(Wanted("tiny", None, 1), Path("/nowhere"), FakeRun))
    assert told(1) == "Models, 1 new"


# Banners.


def test_the_worst_banner_comes_first_and_an_action_closes_it(qtbot: QtBot, context: AppContext) -> None:
    banners, ran = Banners(), list[str]()
    bar = BannerBar(context.theme, banners)
    qtbot.addWidget(bar)
    assert not bar.isVisibleTo(bar)
    banners.show(Banner("a", Kind.INFO, "For your information"))
    banners.show(Banner("b", Kind.ERROR, "It broke", "Mend", lambda: ran.append("mended"), "because"))
    banners.show(Banner("b", Kind.ERROR, "It broke again", "Mend", lambda: ran.append("mended"), "because"))
    assert len(banners) == 2
    assert bar.accessibleName() == "It broke again"
    bar.show()
    bar.details.click()
    bar.action.click()
    assert ran == ["mended"]
    assert bar.accessibleName() == "For your information"
    bar.close_button.click()
    assert len(banners) == 0
    assert bar.isHidden()


# Faults.


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (
            EngineFaulted("the model failed (RuntimeError: [METAL] Command buffer execution failed); reload it"),
            Cause.METAL,
        ),
        (
            EngineFaulted("the model failed (RuntimeError: [malloc] Unable to allocate 9 bytes); reload it"),
            Cause.MEMORY,
        ),
        (WontFit("needs 30 GB"), Cause.MEMORY),
        (ModelIncomplete("shard 3 is missing"), Cause.FILE),
        (EngineFaulted("the model failed (KeyError: 3); reload it"), Cause.UNKNOWN),
    ],
)
def test_the_cause_is_guessed_from_code_and_words(error: EngineFaulted, cause: Cause) -> None:
    assert cause_of(error) is cause


def test_a_failed_forward_faults_the_engine_not_the_window(qtbot: QtBot, loaded: Shell, engine: FakeEngine) -> None:
    window = loaded.window
    engine.script = Script(breaks_after=1)
    loaded.app.session.submit(HELLO)
    qtbot.waitUntil(window.recovery.isVisible, timeout=5000)
    assert window.footer.doing is Doing.STOPPED
    assert "stopped" in window.pill.text()
    window.go("models")  # it all still works
    window.recovery.details.click()
    assert window.recovery.log.isVisible()
    engine.script = Script()
    window.recovery.safe.click()
    qtbot.waitUntil(lambda: isinstance(loaded.app.session.status, Ready), timeout=5000)
    assert not window.recovery.isVisible()
    assert "safe mode" in window.pill.text()
    info = loaded.app.session.info
    assert info is not None


def test_p13_a_stuck_engine_is_seen_and_a_restart_works(qtbot: QtBot, loaded: Shell, engine: FakeEngine) -> None:
    window, session = loaded.window, loaded.app.session
    loaded.watch = Watch(loaded.app.bus, loaded, stalled_after_s=0.2, look_ms=50)
    loaded.watch.stalled.connect(window.show_stall)
    loaded.watch.moved.connect(window.hide_stall)
    loaded.switch.start()
    qtbot.waitUntil(lambda: isinstance(loaded.app.server.state, ServerOn), timeout=20000)
    engine.script = Script(pieces=("a",) * 20, blocks_after=10)
    ends: list[object] = []
    loaded.app.bus.said.connect(lambda _, event: ends.append(event) if isinstance(event, Done | Failed) else None)
    session.submit(HELLO)
    qtbot.waitUntil(window.recovery.isVisible, timeout=5000)
    assert window.recovery.cause is Cause.STUCK
    window.go("models")  # the window stays usable
    window.recovery.reload.click()
    qtbot.waitUntil(lambda: len(ends) == 1, timeout=5000)
    assert isinstance(ends[0], Failed)
    engine.script = Script()
    qtbot.waitUntil(lambda: isinstance(session.status, Ready), timeout=5000)
    session.submit(HELLO)
    qtbot.waitUntil(lambda: len(ends) == 2, timeout=5000)
    assert isinstance(ends[1], Done)
    state = loaded.app.server.state
    assert isinstance(state, ServerOn)
    assert httpx.get(f"{state.url}/health").json()["status"] == "ok"
    assert not window.recovery.isVisible()
    engine.released.set()


def test_a_slow_model_that_moves_again_takes_the_card_away(qtbot: QtBot, loaded: Shell, engine: FakeEngine) -> None:
    watch = Watch(loaded.app.bus, loaded, stalled_after_s=0.1, look_ms=20)
    watch.stalled.connect(loaded.window.show_stall)
    watch.moved.connect(loaded.window.hide_stall)
    engine.script = Script(pieces=("a", "b"), blocks_after=1)
    loaded.app.session.submit(HELLO)
    qtbot.waitUntil(loaded.window.recovery.isVisible, timeout=5000)
    engine.released.set()
    qtbot.waitUntil(lambda: not loaded.window.recovery.isVisible(), timeout=5000)


def test_an_idle_model_is_unloaded_when_that_is_wanted(qtbot: QtBot, loaded: Shell) -> None:
    loaded.app.settings.set("performance/unload_minutes", 5)
    assert loaded.watch._idle.isActive()
    assert loaded.watch._idle.interval() == 300_000
    with qtbot.waitSignal(loaded.watch.idle):
        loaded.watch._idle.setInterval(1)
    qtbot.waitUntil(lambda: loaded.app.session.choice is None, timeout=5000)
    loaded.app.settings.set("performance/unload_minutes", 0)
    assert not loaded.watch._idle.isActive()


# The server's switches (P17).


def test_the_network_is_not_let_in_without_a_key(qtbot: QtBot, loaded: Shell) -> None:
    settings = loaded.app.settings
    assert server_options(settings).host == "127.0.0.1"
    assert server_options(settings).key is None
    settings.set("server/network", True)
    options = server_options(settings)
    assert options.host == "0.0.0.0"
    assert options.key is not None
    assert len(options.key) > 24
    assert settings.text("server/key") == options.key
    # Taken away while the network is in: made again, never none.
    settings.set("server/key", "")
    assert server_options(settings).key


def test_p17_the_server_in_the_app_keeps_strangers_out(qtbot: QtBot, loaded: Shell) -> None:
    settings, server = loaded.app.settings, loaded.app.server
    settings.set("server/key", "a-secret-key")
    loaded.switch.toggle()
    qtbot.waitUntil(lambda: isinstance(server.state, ServerOn), timeout=20000)
    state = server.state
    assert isinstance(state, ServerOn)
    right = {"authorization": "Bearer a-secret-key"}

    def asked(headers: dict[str, str]) -> int:
        return httpx.get(f"{state.url}/v1/models", headers=headers, timeout=30).status_code

    assert asked({"host": "evil.example:8080", **right}) == 403
    assert asked({"origin": "https://evil.example", **right}) == 403
    assert asked(right) == 200
    refused = httpx.get(f"{state.url}/admin/status", timeout=30)
    assert refused.status_code == 401
    assert "a-secret-key" not in refused.text
    loaded.switch.toggle()
    qtbot.waitUntil(lambda: isinstance(server.state, ServerOff), timeout=5000)
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{state.url}/health")


def test_a_taken_port_is_a_banner_with_the_way_to_the_settings(qtbot: QtBot, loaded: Shell) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        loaded.app.settings.set("server/port", taken.getsockname()[1])
        loaded.switch.toggle()
        qtbot.waitUntil(lambda: isinstance(loaded.app.server.state, ServerRefused), timeout=20000)
    banner = loaded.app.banners.current
    assert banner is not None
    assert "cannot be used" in banner.text
    assert banner.run is not None
    banner.run()
    assert loaded._settings_window is not None
    assert loaded._settings_window.isVisible()
    loaded._settings_window.close()


# The end.


def test_closing_keeps_serving_where_there_is_a_way_back(
    qtbot: QtBot, loaded: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slipstream_app.windows.shell.mac.IS_MAC", True)
    ended: list[bool] = []
    loaded.ended.connect(lambda: ended.append(True))
    loaded.switch.toggle()
    qtbot.waitUntil(lambda: isinstance(loaded.app.server.state, ServerOn), timeout=20000)
    loaded.window.close()
    assert not loaded.window.isVisible()
    assert not ended
    state = loaded.app.server.state
    assert isinstance(state, ServerOn)
    answer = httpx.get(f"{state.url}/health")
    assert answer.json()["status"] == "ok"
    loaded.run("open")
    assert loaded.window.isVisible()


def test_closing_ends_the_app_where_there_is_none(qtbot: QtBot, loaded: Shell) -> None:
    with qtbot.waitSignal(loaded.ended):
        loaded.window.close()


def test_quitting_in_a_prefill_is_quick_and_ends_the_job(qtbot: QtBot, loaded: Shell, engine: FakeEngine) -> None:
    engine.script = Script(prefill_chunks=1000, prefill_s=0.05)
    ends: list[object] = []
    job = loaded.app.session.submit(HELLO, sink=lambda event: ends.append(event) if isinstance(event, Done) else None)
    qtbot.waitUntil(lambda: engine.prefilled > 0, timeout=5000)
    began = time.monotonic()
    loaded.quit()
    assert loaded.app.session.stop()
    assert time.monotonic() - began < 2  # ux.md 2; a bound, not a measurement
    assert job.is_cancelled
    assert len(ends) == 1


def test_quitting_asks_when_clients_are_connected(
    qtbot: QtBot, loaded: Shell, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def refuse(clients: int) -> bool:
        asked.append(clients)
        return False

    monkeypatch.setattr(loaded, "_may_quit", refuse)
    monkeypatch.setattr(type(loaded.app.server), "clients", property(lambda _: 2))
    ended: list[bool] = []
    loaded.ended.connect(lambda: ended.append(True))
    assert not loaded.quit()
    assert asked == [2]
    assert not ended
    monkeypatch.setattr(loaded, "_may_quit", lambda _: True)
    assert loaded.quit()
    assert ended


def test_the_question_at_quitting_says_how_many(qtbot: QtBot, loaded: Shell) -> None:
    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QMessageBox

    said: list[str] = []

    def answer() -> None:
        box = QApplication.activeModalWidget()
        assert isinstance(box, QMessageBox)
        said.append(box.text())
        box.reject()

    QTimer.singleShot(50, answer)
    assert not loaded._may_quit(2)
    assert said == ["2 clients are using the server. Quit anyway?"]


def test_a_pair_that_killed_the_app_is_not_loaded_again(qtbot: QtBot, shell: Shell) -> None:
    shell.app.settings.remember("welcomed", 1)
    huge = PairChoice("a huge model", "/nowhere/huge")
    shell.app.settings.remember("loading_pair", json.dumps(huge.as_json()))
    shell.open()
    qtbot.waitUntil(lambda: shell.app.banners.current is not None, timeout=5000)
    banner = shell.app.banners.current
    assert banner is not None
    assert "a huge model" in banner.text
    assert shell.app.session.choice is None
    shell.quit()
    assert shell.app.settings.recall("loading_pair"), "nor at the start after that"
    assert banner.run is not None
    banner.run()  # that pair, and not the last one that could be loaded
    assert shell.app.session.choice is not None
    assert shell.app.session.choice.title == "a huge model"
    qtbot.waitUntil(lambda: isinstance(shell.app.session.status, Ready), timeout=5000)
    assert not shell.app.settings.recall("loading_pair")


def test_a_pair_that_could_not_be_loaded_did_not_kill_the_app(qtbot: QtBot, shell: Shell) -> None:
    def fail(_: PairChoice, _report: Report) -> FakeEngine:
        raise WontFit("it needs 40 GB; choose a smaller one")

    shell.app.session._life.worker._open_pair = fail
    shell.app.session.load(PairChoice("a huge model", "/nowhere/huge"))
    qtbot.waitUntil(lambda: bool(shell.app.settings.recall("loading_pair")), timeout=5000)
    qtbot.waitUntil(lambda: isinstance(shell.app.session.status, Faulted), timeout=5000)
    assert isinstance(shell.app.session.status, Faulted)
    assert isinstance(shell.app.session.status.error, WontFit)
    assert not shell.app.settings.recall("loading_pair")


def test_what_is_being_loaded_is_written_once_not_for_each_piece(
    loaded: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[str] = []
    monkeypatch.setattr(loaded.app.settings, "sync", lambda: writes.append("sync"))
    for piece in range(100):
        loaded.app.bus.status_changed.emit(Loading("a model", piece, 100))
    assert writes == ["sync"]
    assert loaded.app.settings.recall("loading_pair")


def test_the_first_start_welcomes_and_loads_the_built_in_pair(qtbot: QtBot, shell: Shell) -> None:
    shell.open()
    qtbot.waitUntil(lambda: isinstance(shell.app.session.status, Ready), timeout=5000)
    assert shell.window.place == "onboarding"
    assert shell.app.settings.recall("screen") == "models"  # where the next start begins, should this be left
    choice = shell.app.session.choice
    assert choice is not None
    assert choice.target is None


# Reach.


def test_everything_is_reached_by_keyboard_and_has_a_name(qtbot: QtBot, loaded: Shell) -> None:
    loaded.open_settings()
    loaded.open_sheet()
    roots: list[QWidget] = [
        loaded.window.toolbar,
        loaded.window.sidebar,
        loaded.window.popover,
        loaded.window.recovery,
        loaded.palette,
        *(window for window in (loaded._settings_window, loaded._sheet) if window is not None),
    ]
    for root in roots:
        for widget in root.findChildren(QWidget):
            if isinstance(widget, QAbstractButton | QLineEdit | QComboBox | QSpinBox | QListView):
                inside = isinstance(widget.parent(), QComboBox | QSpinBox | QLineEdit)
                if inside or widget.objectName().startswith("qt_"):
                    continue  # a part of another control
                if isinstance(widget, QListView) and widget.window() is not root.window():
                    continue  # a combo box's own list
                words = widget.accessibleName() or (widget.text() if isinstance(widget, QAbstractButton) else "")
                assert words, (type(widget).__name__, root)
    for root in (loaded._settings_window, loaded._sheet):
        assert root is not None
        root.close()


def test_tab_walks_from_the_sidebar_through_the_toolbar(qtbot: QtBot, loaded: Shell) -> None:
    window = loaded.window
    window.sidebar.list.setFocus()
    seen: list[QWidget] = []
    for _ in range(6):
        focus = QApplication.focusWidget()
        assert focus is not None
        seen.append(focus)
        qtbot.keyClick(focus, Qt.Key.Key_Tab)
    assert window.pill in seen
    assert window.search in seen
    assert seen.index(window.pill) < seen.index(window.search)


def test_the_disk_is_asked_for_a_models_size_when_it_is_loaded_not_at_each_request(
    qtbot: QtBot, theme: Theme, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []

    def size(folder: Path) -> int:
        asked.append(folder)
        return 1_100_000_000

    monkeypatch.setattr(toolbar, "weights_bytes", size)
    bar = toolbar.Toolbar(theme)
    qtbot.addWidget(bar)
    for status in (Ready(INFO), Working(INFO, (1,)), Ready(INFO)):
        bar.show_status(status)
    assert asked == [Path(INFO.path)]
    bar.show_status(Empty())
    assert bar.facts.toolTip() == ""
    bar.show_status(Ready(INFO))
    assert bar.facts.toolTip().startswith("Loaded: 1.1\xa0GB")
