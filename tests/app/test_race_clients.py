"""Race beside clients of the server: they are paused, or go on and mark it. Real HTTP, and once the real engine."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from fakes import FakeEngine, FakeTokeniser, Script
from prompt.templates import TAGGED
from server.requests import chat, chat_body, get, open_stream
from slipstream.engine.engine import open_engine
from slipstream.engine.pair import Pair
from slipstream.errors import EngineFaulted
from slipstream.jobs import Job
from slipstream.measure.verdict import Verdict
from slipstream.server import sse, tokenising
from slipstream.types import Mode, Tokens
from slipstream_app.bridge.pair import PairChoice
from slipstream_app.bridge.server import ServerOn, ServerOptions
from slipstream_app.bridge.session import Session
from slipstream_app.main import make_context
from slipstream_app.models.conditions import Conditions
from slipstream_app.models.race_marks import Cause, Mark
from slipstream_app.screens.base import AppContext
from slipstream_app.screens.race import RaceScreen
from slipstream_app.screens.race_gate import Beside
from slipstream_app.screens.server import ServerScreen
from slipstream_app.settings import Settings
from slipstream_app.widgets.footer import Footer
from slipstream_app.windows.status_bar import StatusBar
from tiny_runs import write_target

LONG = Script(pieces=("word ",) * 40, round_s=0.005)


@pytest.fixture(autouse=True)
def _calm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slipstream.store.machine.busy", lambda: None)
    monkeypatch.setattr(sse, "HEARTBEAT_S", 0.02)


@pytest.fixture
def screen(qtbot: QtBot, ready: AppContext) -> Iterator[RaceScreen]:
    made = RaceScreen(ready)
    qtbot.addWidget(made)
    made.resize(1000, 700)
    made.setup.trials.setValue(1)
    made.show()
    yield made
    made.closing()


@pytest.fixture
def url(qtbot: QtBot, ready: AppContext, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(tokenising, "FolderTokeniser", lambda _: FakeTokeniser())  # the scripted model has no folder
    return serve(qtbot, ready)


def serve(qtbot: QtBot, app: AppContext) -> str:
    app.server.start(ServerOptions(port=0))
    qtbot.waitUntil(lambda: isinstance(app.server.state, ServerOn), timeout=10_000)
    assert isinstance(app.server.state, ServerOn)
    return app.server.state.url


@dataclass
class Client:
    """Streams one answer on a thread of its own and notes when each line came."""

    url: str
    max_tokens: int = 4000
    lines: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    status: int = 0
    leaves: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._ask)
        self.thread.start()

    def _ask(self) -> None:
        with open_stream(self.url, chat_body(stream=True, max_tokens=self.max_tokens)) as response:
            self.status = response.status_code
            for line in response.iter_lines():
                if line:
                    self.lines.append((time.monotonic(), line))
                if self.leaves.is_set():
                    return

    @property
    def words_at(self) -> list[float]:
        return [at for at, line in self.lines if '"content":"' in line and '"content":""' not in line]

    @property
    def words(self) -> list[str]:
        return [line.split('"content":')[1] for _, line in self.lines if '"content":"' in line]

    @property
    def has_heard(self) -> bool:
        """That somebody is there: a heartbeat."""
        return any(line.startswith(":") for _, line in self.lines)

    @property
    def is_whole(self) -> bool:
        return bool(self.lines) and self.lines[-1][1] == "data: [DONE]"


def begin_paused(qtbot: QtBot, screen: RaceScreen, url: str) -> Client:
    """A race that a client's answer under way has made one ask about; the client as well."""
    client = Client(url)
    qtbot.waitUntil(lambda: bool(client.words_at), timeout=5000)
    screen.toggle()
    assert not screen.runner.is_running
    assert screen.notice.words.text() == "1 client(s) are connected: results would be disturbed."
    assert (screen.notice.first.text(), screen.notice.second.text()) == ("Pause clients", "Run anyway (marked)")
    screen.notice.first.click()
    assert screen.runner.is_running
    return client


def is_race(job: Job) -> bool:
    return not isinstance(job.request.prompt, Tokens)  # the server sends ids, the window messages


def test_clients_wait_while_it_runs_and_are_answered_after(
    qtbot: QtBot, screen: RaceScreen, ready: AppContext, engine: FakeEngine, url: str
) -> None:
    server, footer = ServerScreen(ready), Footer(ready.theme, ready.activity, ready.telemetry)
    bar = StatusBar(ready.session, ready.server, ready.activity)
    for widget in (server, footer, bar):
        qtbot.addWidget(widget)
        widget.show()
    engine.script = LONG
    under_way = begin_paused(qtbot, screen, url)
    assert "It begins when 1 answer(s) to clients have ended." in screen.notice.words.text()
    held = Client(url)
    qtbot.waitUntil(lambda: held.has_heard and ready.session.paused_requests == 1, timeout=5000)
    # Said wherever one looks.
    qtbot.waitUntil(lambda: "Clients are paused: 1 of their requests wait." in screen.notice.words.text(), timeout=5000)
    qtbot.waitUntil(lambda: server.paused.text() == "Clients are paused by the race: 1 request(s) wait.", timeout=5000)
    assert server.go_on.isVisible()
    assert footer.share == "Clients paused"
    qtbot.waitUntil(lambda: "paused" in bar.clients.text(), timeout=5000)
    assert get(url, "/health").json()["held"] == 1
    qtbot.waitUntil(lambda: screen.result is not None, timeout=20_000)
    held.thread.join(10)
    under_way.thread.join(10)
    assert under_way.is_whole and held.is_whole
    # The race had the engine to itself: after what had begun, before what came.
    assert [is_race(job) for job in engine.jobs] == [False, *(True for _ in range(4)), False]
    assert screen.result is not None
    assert screen.result.plan.marks == ()
    qtbot.waitUntil(lambda: not ready.activity.are_clients_paused, timeout=5000)
    assert not server.go_on.isVisible()
    assert footer.share != "Clients paused"
    # The replay's sentence leaves again, and what hinders another race is said.
    ready.settings.set("appearance/reduce_motion", True)
    screen.play()
    assert not screen.setup.start.isEnabled()
    assert screen.notice.first.text() == "Pause clients"


def test_clients_that_are_let_go_on_mark_the_race(
    qtbot: QtBot, screen: RaceScreen, ready: AppContext, engine: FakeEngine, url: str
) -> None:
    engine.script = LONG
    begin_paused(qtbot, screen, url).thread.join(10)
    held = Client(url)
    qtbot.waitUntil(lambda: screen.notice.first.text() == "Let them go on" and held.has_heard, timeout=5000)
    screen.notice.first.click()
    qtbot.waitUntil(lambda: screen.result is not None, timeout=20_000)
    held.thread.join(10)
    assert held.is_whole
    assert screen.result is not None
    assert Mark(Cause.RESUMED) in screen.result.plan.marks
    assert "Marked: clients that were paused were let go on" in screen.outcome.text(as_json=False)


def stop(screen: RaceScreen, _: FakeEngine) -> None:
    screen.toggle()


def fail(_: RaceScreen, engine: FakeEngine) -> None:
    engine.script = Script(pieces=("a", "b"), fails_after=(1, EngineFaulted("the model failed; reload it")))


def leave(screen: RaceScreen, _: FakeEngine) -> None:
    screen.closing()


@pytest.mark.parametrize("end", [stop, fail, leave])
def test_however_it_ends_no_client_waits_for_ever(
    qtbot: QtBot,
    screen: RaceScreen,
    ready: AppContext,
    engine: FakeEngine,
    url: str,
    end: Callable[[RaceScreen, FakeEngine], None],
) -> None:
    engine.script = LONG
    begin_paused(qtbot, screen, url).thread.join(10)
    held = Client(url)
    qtbot.waitUntil(lambda: ready.session.paused_requests == 1, timeout=5000)
    end(screen, engine)
    qtbot.waitUntil(lambda: not screen.runner.is_running, timeout=10_000)
    assert screen.result is None
    held.thread.join(10)
    assert not held.thread.is_alive()
    assert held.status == 200
    assert not ready.session.are_clients_paused


def test_quitting_ends_those_who_wait(
    qtbot: QtBot, screen: RaceScreen, ready: AppContext, engine: FakeEngine, url: str
) -> None:
    engine.script = LONG
    begin_paused(qtbot, screen, url).thread.join(10)
    held = Client(url)
    qtbot.waitUntil(lambda: ready.session.paused_requests == 1, timeout=5000)
    assert ready.session.stop()
    held.thread.join(5)
    assert not held.thread.is_alive()


def test_a_client_that_leaves_while_it_waits_is_forgotten_at_once(
    qtbot: QtBot, screen: RaceScreen, ready: AppContext, engine: FakeEngine, url: str
) -> None:
    engine.script = LONG
    begin_paused(qtbot, screen, url).thread.join(10)
    held = Client(url)
    qtbot.waitUntil(lambda: ready.session.paused_requests == 1, timeout=5000)
    held.leaves.set()
    qtbot.waitUntil(lambda: ready.session.paused_requests == 0, timeout=5000)
    assert screen.runner.is_measuring
    held.thread.join(5)
    qtbot.waitUntil(lambda: screen.result is not None, timeout=20_000)


def test_stopping_does_not_wait_for_the_answer_that_the_race_waits_for(
    qtbot: QtBot, screen: RaceScreen, ready: AppContext, engine: FakeEngine, url: str
) -> None:
    engine.script = Script(pieces=("word ",) * 2000, round_s=0.01)
    under_way = begin_paused(qtbot, screen, url)
    screen.toggle()
    qtbot.waitUntil(lambda: not screen.runner.is_running, timeout=3000)
    assert ready.server.clients == 1
    under_way.leaves.set()
    under_way.thread.join(5)


def test_another_pair_ends_the_race_and_does_not_run_it_on(
    qtbot: QtBot, screen: RaceScreen, ready: AppContext, engine: FakeEngine
) -> None:
    engine.script = LONG
    screen.toggle()
    qtbot.waitUntil(lambda: screen.runner.done == 1, timeout=5000)
    ready.session.load(PairChoice("another", "/nowhere/fake-model"))
    qtbot.waitUntil(lambda: not screen.runner.is_running, timeout=5000)
    assert screen.result is None
    # Once the other pair is there; while it loads, that is what is said.
    qtbot.waitUntil(lambda: "Nothing is concluded" in screen.notice.words.text(), timeout=5000)


def test_a_client_that_was_answered_a_moment_ago_counts(
    qtbot: QtBot, screen: RaceScreen, ready: AppContext, engine: FakeEngine, url: str
) -> None:
    """An agent runs its tools between two requests."""
    chat(url)
    qtbot.waitUntil(lambda: ready.server.clients == 0 and ready.requests.rowCount() == 1, timeout=5000)
    screen.toggle()
    assert not screen.runner.is_running
    assert "1 client(s) are connected" in screen.notice.words.text()
    assert ready.requests.clients_since(time.time() + 5) == 0


def test_a_real_client_on_the_real_engine_waits_and_gets_what_it_would_have_got(
    qtbot: QtBot, qapp: object, tmp_path: Path
) -> None:
    folder = write_target(tmp_path / "model", max_position_embeddings=2048)
    (folder / "chat_template.jinja").write_text(TAGGED)
    session = Session(lambda *_: open_engine(Pair(folder)))
    app = make_context(session, Settings(tmp_path / "settings.ini"), tmp_path)
    screen = RaceScreen(app)
    qtbot.addWidget(screen)
    screen.show()
    try:
        session.load(PairChoice("tiny", str(folder)))
        qtbot.waitUntil(lambda: screen.setup.arms == (Mode.BASELINE, Mode.LOOKUP), timeout=60_000)
        url = serve(qtbot, app)
        before = Client(url, 8)
        qtbot.waitUntil(lambda: before.is_whole and app.requests.clients_since(0) == 1, timeout=20_000)
        screen.setup.tokens.setValue(150)
        screen.setup.trials.setValue(1)
        screen.toggle()
        screen.notice.first.click()  # Pause clients: one was answered just now
        assert screen.runner.is_running
        held = [Client(url, 8), Client(url, 8)]
        qtbot.waitUntil(lambda: screen.runner.done == screen.runner.total, timeout=30_000)
        ended_s = time.monotonic()
        qtbot.waitUntil(lambda: not screen.runner.is_running, timeout=30_000)
        for client in held:
            client.thread.join(20)
            assert client.status == 200 and client.is_whole
            assert client.has_heard
            assert min(client.words_at) > ended_s - 0.25
        assert screen.result is not None, screen.notice.words.text()
        assert screen.result.race.verdict is Verdict.IDENTICAL
        assert screen.result.plan.marks == ()
        assert before.words == held[0].words == held[1].words != []
    finally:
        screen.closing()
        assert session.stop()
        app.history.close()
        app.speeds.close()


def test_a_race_that_fails_for_a_reason_nobody_foresaw_is_over(
    qtbot: QtBot, screen: RaceScreen, ready: AppContext, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> Conditions:
        raise OSError("no such sensor")

    screen.runner._conditions = broken
    screen.toggle()
    qtbot.waitUntil(lambda: not screen.runner.is_running, timeout=5000)
    assert "OSError: no such sensor" in screen.notice.words.text()
    assert "the race failed" in caplog.text
    assert not ready.session.are_clients_paused
    assert screen.setup.start.isEnabled()


def test_what_was_said_of_clients_is_asked_again_where_no_race_began(
    qtbot: QtBot, screen: RaceScreen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(screen.gate), "clients", 1)
    screen.gate.beside = Beside.MARK
    monkeypatch.setattr(type(screen.setup), "lacks_words", True)
    screen.toggle()
    assert not screen.runner.is_running
    assert screen.notice.words.text() == "Write what every arm is to be asked."
    monkeypatch.setattr(type(screen.setup), "lacks_words", False)
    screen.toggle()
    assert not screen.runner.is_running
    assert screen.notice.first.text() == "Pause clients"
