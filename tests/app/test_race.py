"""Race: real races through the app's own session, on scripted engines and on a tiny model."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from fakes import FakeEngine, FakeTokeniser, Script
from server.requests import chat_body, open_stream
from slipstream.engine.engine import open_engine
from slipstream.engine.pair import Pair
from slipstream.errors import EngineFaulted
from slipstream.jobs import Job
from slipstream.measure.verdict import Verdict
from slipstream.server import tokenising
from slipstream.types import Chat, Mode, Request, Text
from slipstream_app.bridge.pair import PairChoice
from slipstream_app.bridge.server import ServerOn, ServerOptions
from slipstream_app.bridge.session import Session
from slipstream_app.main import make_context
from slipstream_app.models import race as models_race
from slipstream_app.models.conditions import Conditions, Level
from slipstream_app.models.race import Replay
from slipstream_app.models.race_marks import Cause, Mark
from slipstream_app.screens.base import AppContext
from slipstream_app.screens.race import RaceScreen
from slipstream_app.settings import Settings
from tiny_runs import write_target

Says = Callable[[Job], Script]


@pytest.fixture
def screen(qtbot: QtBot, context: AppContext) -> Iterator[RaceScreen]:
    made = RaceScreen(context)
    qtbot.addWidget(made)
    made.resize(1000, 700)
    made.setup.trials.setValue(2)
    made.show()
    yield made
    made.closing()


def by_mode(fast: tuple[str, ...], slow: tuple[str, ...]) -> Says:
    def script(job: Job) -> Script:
        is_plain = job.request.options.mode is Mode.BASELINE
        return Script(pieces=slow if is_plain else fast, round_s=0.01)

    return script


SAME = by_mode(("abc", "def", "ghi"), tuple("abcdefghi"))


@pytest.fixture(autouse=True)
def _calm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else this machine does while the tests run."""
    monkeypatch.setattr("slipstream.store.machine.busy", lambda: None)


def run(qtbot: QtBot, screen: RaceScreen) -> None:
    screen.toggle()
    assert screen.runner.is_running
    qtbot.waitUntil(lambda: not screen.runner.is_running, timeout=30_000)


def test_without_a_model_it_offers_one(qtbot: QtBot, screen: RaceScreen) -> None:
    assert screen.notice.words.text() == "No model is loaded."
    assert not screen.setup.start.isEnabled()
    assert screen.commands() == {}
    screen.toggle()
    assert not screen.runner.is_running


def test_an_identical_race_claims_its_speed_with_its_spread(
    qtbot: QtBot, screen: RaceScreen, ready: AppContext, engine: FakeEngine
) -> None:
    engine.script = SAME
    assert screen.setup.arms == (Mode.BASELINE, Mode.DSPARK)
    assert "race.toggle" in screen.commands()
    run(qtbot, screen)
    assert screen.result is not None
    assert screen.result.race.verdict is Verdict.IDENTICAL
    assert screen.verdict.grade.text() == "Identical output, 9 token(s), 2 of 2 comparisons"
    assert "DSpark" in screen.verdict.sentence.text()
    assert "×" in screen.cards[Mode.DSPARK].against.value.text()
    assert screen.cards[Mode.DSPARK].badge.text() == "Fastest"
    assert screen.cards[Mode.BASELINE].shown == "abcdefghi"
    assert not screen.verdict.marked.isVisible()
    # Warm-up runs come first, then the order rotates.
    asked = [job.request.options.mode for job in engine.jobs]
    plain, draft = Mode.BASELINE, Mode.DSPARK
    assert asked == [plain, draft, plain, draft, draft, plain]
    assert isinstance(engine.jobs[0].request.prompt, Chat)
    assert engine.jobs[0].request.prompt.template == {"enable_thinking": False}


def test_the_telemetry_knows_whose_jobs_they_were(
    qtbot: QtBot, screen: RaceScreen, ready: AppContext, engine: FakeEngine
) -> None:
    engine.script = SAME
    run(qtbot, screen)
    assert ready.telemetry.sources == ("race",)


def test_different_output_hides_the_speed_and_offers_no_winner(
    qtbot: QtBot, screen: RaceScreen, ready: AppContext, engine: FakeEngine
) -> None:
    engine.script = by_mode(("abc", "def"), tuple("abcdefghi"))  # ends too early
    run(qtbot, screen)
    assert screen.verdict.grade.text() == "Different"
    assert screen.verdict.grade.property("role") == "bad"
    assert "no speed-up is claimed" in screen.verdict.sentence.text()
    assert "×" not in screen.verdict.sentence.text()
    assert not screen.cards[Mode.DSPARK].against.isVisible()
    assert not screen.verdict.use.isVisible()


def test_plain_that_does_not_repeat_itself_is_said(
    qtbot: QtBot, screen: RaceScreen, ready: AppContext, engine: FakeEngine
) -> None:
    def unsteady(job: Job) -> Script:
        is_late = job.request.options.mode is Mode.BASELINE and len(engine.jobs) > 4
        return Script(pieces=tuple("abc" if is_late else "abcd"))

    engine.script = unsteady
    run(qtbot, screen)
    assert "Plain decoding does not repeat itself" in screen.verdict.sentence.text()
    assert screen.cards[Mode.BASELINE].badge.text() == "Does not repeat itself"
    assert not screen.verdict.use.isVisible()


def test_it_stops_and_concludes_nothing(
    qtbot: QtBot, screen: RaceScreen, ready: AppContext, engine: FakeEngine
) -> None:
    engine.script = Script(pieces=("word ",) * 1000, round_s=0.01)
    screen.setup.tokens.setValue(8000)
    screen.toggle()
    qtbot.waitUntil(lambda: screen.cards[Mode.BASELINE].shown.startswith("word"), timeout=5000)
    assert screen.setup.start.text() == "Stop"
    assert screen.notice.bar.isVisible()
    screen.toggle()
    qtbot.waitUntil(lambda: not screen.runner.is_running, timeout=5000)
    assert "Nothing is concluded" in screen.notice.words.text()
    assert screen.result is None
    assert screen.setup.start.isEnabled()  # and it can start anew
    engine.script = SAME
    run(qtbot, screen)
    assert screen.result is not None


def test_once_a_run_has_ended_it_says_how_long_the_rest_may_take(
    qtbot: QtBot, screen: RaceScreen, ready: AppContext, engine: FakeEngine
) -> None:
    engine.script = Script(pieces=("word ",) * 20, round_s=0.01)
    screen.toggle()
    assert screen.runner.left_s is None
    assert "left" not in screen.notice.words.text()
    qtbot.waitUntil(lambda: screen.runner.done >= 1, timeout=5000)
    assert screen.runner.left_s is not None
    qtbot.waitUntil(lambda: "s left" in screen.notice.words.text(), timeout=5000)
    qtbot.waitUntil(lambda: not screen.runner.is_running, timeout=15_000)
    assert "left" not in screen.notice.words.text()


def test_an_engine_that_breaks_ends_the_race_with_a_sentence(
    qtbot: QtBot, screen: RaceScreen, ready: AppContext, engine: FakeEngine
) -> None:
    engine.script = Script(pieces=tuple("abc"), fails_after=(1, EngineFaulted("the model failed; reload it")))
    screen.toggle()
    qtbot.waitUntil(lambda: not screen.runner.is_running, timeout=5000)
    assert "the model failed; reload it" in screen.notice.words.text()
    engine.script = SAME
    run(qtbot, screen)
    assert screen.result is not None


def test_one_arm_alone_is_no_race(qtbot: QtBot, screen: RaceScreen, ready: AppContext) -> None:
    screen.setup.arm_buttons[Mode.DSPARK].click()
    assert screen.setup.arms == (Mode.BASELINE,)
    assert "two arms" in screen.notice.words.text()
    assert not screen.setup.start.isEnabled()
    screen.setup.arm_buttons[Mode.LOOKUP].click()
    assert screen.setup.start.isEnabled()
    assert not screen.setup.arm_buttons[Mode.BASELINE].isEnabled()


def test_the_replay_plays_the_recorded_times(
    qtbot: QtBot, screen: RaceScreen, ready: AppContext, engine: FakeEngine
) -> None:
    engine.script = SAME
    run(qtbot, screen)
    assert screen.player.replay is not None
    assert [text for text, _ in screen.player.replay.at(screen.player.replay.seconds)] == ["abcdefghi"] * 2
    firsts = [text for text, _ in screen.player.replay.at(0.0)]
    assert firsts == ["a", "abc"]
    assert Replay(()).seconds == 0
    screen.verdict.replay.click()
    assert "separate runs" in screen.notice.words.text()
    qtbot.waitUntil(lambda: screen.verdict.replay.text() == "Replay side by side", timeout=5000)
    assert screen.cards[Mode.BASELINE].shown == "abcdefghi"


def test_with_less_motion_the_replay_jumps(
    qtbot: QtBot, screen: RaceScreen, ready: AppContext, engine: FakeEngine
) -> None:
    engine.script = SAME
    run(qtbot, screen)
    ready.settings.set("appearance/reduce_motion", True)
    screen.play()
    assert "9 token(s) after" in screen.cards[Mode.BASELINE].state.text()
    assert screen.verdict.replay.text() == "Replay side by side"


def test_the_report_is_copied_and_saved(
    qtbot: QtBot, screen: RaceScreen, ready: AppContext, engine: FakeEngine, tmp_path: Path
) -> None:
    engine.script = SAME
    screen.setup.temperature.setValue(0.7)
    screen.setup.seed.setValue(11)
    run(qtbot, screen)
    screen.verdict.copy.click()
    assert QApplication.clipboard().text().startswith("# Race: fake-model")
    screen.outcome.save_to(tmp_path / "race.json")
    told = json.loads((tmp_path / "race.json").read_text())
    assert (told["options"]["temperature"], told["options"]["seed"]) == (0.7, 11)
    assert len(told["runs"]) == 4
    screen.outcome.save_to(tmp_path / "race.md")
    assert "temperature 0.7, seed 11" in (tmp_path / "race.md").read_text()


def test_the_winner_is_used(qtbot: QtBot, screen: RaceScreen, ready: AppContext, engine: FakeEngine) -> None:
    engine.script = SAME
    screen.setup.arm_buttons[Mode.DSPARK].click()
    screen.setup.arm_buttons[Mode.LOOKUP].click()
    run(qtbot, screen)
    assert screen.verdict.use.text() == "Use Lookup"
    screen.verdict.use.click()
    assert ready.settings.text("performance/mode") == "lookup"
    assert ready.banners.current is not None


def test_connected_clients_are_not_raced_beside(
    qtbot: QtBot, screen: RaceScreen, ready: AppContext, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokenising, "FolderTokeniser", lambda _: FakeTokeniser())  # the scripted model has no folder
    ready.server.start(ServerOptions(port=0))
    qtbot.waitUntil(lambda: isinstance(ready.server.state, ServerOn), timeout=10_000)
    engine.script = Script(pieces=("word ",) * 500, round_s=0.02)
    state = ready.server.state
    assert isinstance(state, ServerOn)
    with open_stream(state.url, chat_body(stream=True)) as response:
        lines = response.iter_lines()  # kept: the connection closes with it
        next(lines)
        assert ready.server.clients == 1
        screen.toggle()
        assert not screen.runner.is_running
        assert "results would be disturbed" in screen.notice.words.text()
        engine.script = SAME
        screen.notice.second.click()  # Run anyway
        assert screen.runner.is_running
    qtbot.waitUntil(lambda: screen.result is not None, timeout=20_000)
    assert screen.result is not None
    assert screen.result.plan.marks[0] == Mark(Cause.CLIENTS)
    assert "1 client(s) were connected" in screen.verdict.marked.text()
    assert "Marked: 1 client was connected" in screen.outcome.text(as_json=False)


def test_a_busy_machine_marks_the_race(
    qtbot: QtBot, screen: RaceScreen, ready: AppContext, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slipstream.store.machine.busy", lambda: "busy (load 9.0)")
    engine.script = SAME
    run(qtbot, screen)
    assert screen.result is not None
    assert screen.result.plan.marks[0].english == "this machine was busy (load 9.0) when the race began"


def test_requests_that_come_in_between_mark_the_race(
    qtbot: QtBot, screen: RaceScreen, ready: AppContext, engine: FakeEngine
) -> None:
    engine.script = SAME
    screen.toggle()
    ready.session.submit(Request(Text("x")), "chat")
    qtbot.waitUntil(lambda: screen.result is not None, timeout=20_000)
    assert screen.result is not None
    assert screen.result.plan.marks == (Mark(Cause.OTHERS),)
    assert "Marked: 1 other request ran during the race" in screen.outcome.text(as_json=False)


def test_a_prompt_from_elsewhere_is_taken_over(qtbot: QtBot, screen: RaceScreen, ready: AppContext) -> None:
    screen.visited("Why is the sky blue?")
    assert screen.plan().questions[0].text == "Why is the sky blue?"
    assert screen.setup.own.isVisible()
    screen.setup.own.setPlainText(" ")
    assert not screen.setup.start.isEnabled()
    assert "Write what every arm" in screen.notice.words.text()


def test_p15_closing_during_a_race_ends_its_thread(
    qtbot: QtBot, screen: RaceScreen, ready: AppContext, engine: FakeEngine
) -> None:
    engine.script = Script(pieces=("word ",) * 1000, round_s=0.01)
    screen.toggle()
    qtbot.waitUntil(lambda: len(engine.jobs) > 0, timeout=5000)
    screen.closing()
    qtbot.waitUntil(lambda: not screen.runner.is_running, timeout=2000)


class Weather:
    """Conditions from a list; the last one stays."""

    def __init__(self, *found: Conditions) -> None:
        self._left = list(found)

    def __call__(self) -> Conditions:
        return self._left.pop(0) if len(self._left) > 1 else self._left[0]


def test_a_run_during_which_the_power_changed_is_made_again(
    qtbot: QtBot, screen: RaceScreen, ready: AppContext, engine: FakeEngine
) -> None:
    engine.script = SAME
    mains, battery = Conditions(), Conditions(on_battery=True)
    screen.runner._conditions = Weather(mains, mains, mains, battery, battery)  # during the second run
    run(qtbot, screen)
    assert screen.result is not None
    asked = [job.request.options.mode for job in engine.jobs]
    plain, draft = Mode.BASELINE, Mode.DSPARK
    assert asked == [plain, draft, draft, plain, draft, draft, plain]
    assert len(screen.result.race.disturbed) == 1
    assert screen.result.plan.marks == (Mark(Cause.BATTERY), Mark(Cause.REPEATED))
    assert "Marked: this machine ran on its battery" in screen.outcome.text(as_json=False)


def test_a_hot_machine_is_waited_for(
    qtbot: QtBot, screen: RaceScreen, ready: AppContext, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.script = SAME
    monkeypatch.setattr(models_race, "COOL_LOOK_S", 0.01)
    hot, cool = Conditions(Level.HIGH), Conditions(Level.NOMINAL)
    screen.runner._conditions = Weather(hot, hot, cool)
    run(qtbot, screen)
    assert screen.result is not None
    assert screen.result.plan.marks == ()
    assert not screen.result.race.disturbed


def test_auto_races_when_it_is_asked_for(
    qtbot: QtBot, screen: RaceScreen, ready: AppContext, engine: FakeEngine
) -> None:
    engine.script = SAME
    screen.setup.arm_buttons[Mode.DSPARK].click()
    screen.setup.arm_buttons[Mode.AUTO].click()
    assert screen.setup.arms == (Mode.BASELINE, Mode.AUTO)
    run(qtbot, screen)
    assert screen.verdict.use.text() == "Use Auto"
    screen.verdict.use.click()
    assert ready.settings.text("performance/mode") == "auto"
    assert ready.speedups.best("a scripted model") is not None


def test_a_real_race_at_a_temperature(qtbot: QtBot, qapp: object, tmp_path: Path) -> None:
    """The real engine on a tiny model, through the app's own session and thread."""
    folder = write_target(tmp_path / "model")
    session = Session(lambda *_: open_engine(Pair(folder)))
    app = make_context(session, Settings(tmp_path / "settings.ini"), tmp_path)
    screen = RaceScreen(app)
    qtbot.addWidget(screen)
    screen.show()
    try:
        session.load(PairChoice("tiny", str(folder)))
        qtbot.waitUntil(lambda: screen.setup.arms == (Mode.BASELINE, Mode.LOOKUP), timeout=60_000)
        screen.setup.tokens.setValue(12)
        screen.setup.trials.setValue(2)
        screen.setup.temperature.setValue(0.8)
        screen.setup.seed.setValue(3)
        run(qtbot, screen)
        assert screen.result is not None, screen.notice.words.text()
        assert screen.result.race.verdict is Verdict.IDENTICAL
        assert screen.result.race.repeats is Verdict.IDENTICAL
        assert screen.cards[Mode.LOOKUP].shown == screen.cards[Mode.BASELINE].shown
    finally:
        screen.closing()
        assert session.stop()
        app.history.close()
        app.speeds.close()


@pytest.mark.slow
@pytest.mark.parametrize("temperature", ["0", "0.8"])
def test_the_built_in_pair_races_in_the_window_to_its_verdict(temperature: str) -> None:
    """Real weights, real window; a minute or two. Run with: pytest -m slow tests/app/test_race.py"""
    script = Path(__file__).parent / "built_in_race.py"
    words = ["--tokens", "24", "--temperature", temperature, "--arms", "dspark", "dflash", "auto"]
    done = subprocess.run([sys.executable, script, *words], capture_output=True, text=True, timeout=600, check=True)
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["verdict"] in ("identical", "tie")
    assert len(told["texts"]) == 1 or told["verdict"] == "tie"
    assert set(told["tokens_per_round"]) == {"baseline", "dspark", "dflash", "auto"}
    assert told["tokens_per_round"]["baseline"] == 1.0
    assert told["tokens_per_round"]["dspark"] > 1.0
    assert told["costs"]["plain"], "auto has learned what a plain round costs"
    assert told["ended"]
