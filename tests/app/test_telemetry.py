"""Telemetry: figures from the engine's own events, and a screen that works only while it is seen."""

from __future__ import annotations

import csv
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from fakes import FakeEngine, Script
from slipstream.events import Delta, Done, Finish, Prefill, Round, Timings
from slipstream.types import Mode, Options, Request, Text
from slipstream_app.models.telemetry import Ended, RoundPoint, Telemetry, csv_text, letter_of, rounds_csv, speed_line
from slipstream_app.models.telemetry_history import DayRow, TelemetryHistory
from slipstream_app.numbers import share_text
from slipstream_app.screens.base import AppContext
from slipstream_app.screens.telemetry import HISTORY, SESSION, TelemetryScreen

ASK = Request(Text("x"))
PLAIN = Request(Text("x"), Options(mode=Mode.BASELINE))


def timings(output: int = 5, *, reused: int = 0, seconds: float = 2.0) -> Timings:
    return Timings(0, 0, 1, 1 + seconds, 10, reused, output, output - 1)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def telemetry(qapp: object, clock: Clock) -> Telemetry:
    return Telemetry(clock)


def say_round(telemetry: Telemetry, job: int, source: str, drafted: int, accepted: int) -> None:
    made = Round(0, source, tuple(range(drafted)), accepted)
    telemetry.on_said(job, Delta("x", tuple(range(accepted + 1)), made))


def test_shares_come_from_the_rounds_that_were_verified(telemetry: Telemetry) -> None:
    telemetry.on_opened(1, "chat", ASK)
    telemetry.on_said(1, Delta("x", (7,)))  # the prompt's own token belongs to no round
    say_round(telemetry, 1, "dspark", 3, 3)
    say_round(telemetry, 1, "dspark", 3, 1)
    say_round(telemetry, 1, "lookup", 1, 0)
    figures = telemetry.figures()
    assert figures.tokens_per_round == pytest.approx((4 + 2 + 1) / 3)
    assert figures.accepted_share == pytest.approx(4 / 7)
    assert figures.by_position == pytest.approx((2 / 3, 1 / 2, 1 / 2))
    assert figures.by_letter == {"D": 2, "M": 1}


def test_the_speed_is_the_one_that_the_request_itself_reports(telemetry: Telemetry, clock: Clock) -> None:
    telemetry.on_opened(1, "chat", ASK)
    telemetry.on_said(1, Delta("x", (7,)))
    clock.now += 2
    say_round(telemetry, 1, "dspark", 3, 3)
    assert telemetry.live_tps() == pytest.approx(2.0)  # four tokens after the first, in two seconds
    telemetry.on_said(1, Done(Finish.STOP, timings(9), ()))
    assert telemetry.live_tps() == timings(9).decode_tps


def test_plain_decoding_is_known_only_once_it_was_measured(telemetry: Telemetry) -> None:
    telemetry.on_opened(1, "chat", ASK)
    telemetry.on_said(1, Done(Finish.STOP, timings(100), ()))
    telemetry.on_opened(2, "race", PLAIN)
    telemetry.on_said(2, Done(Finish.STOP, timings(4), ()))
    assert telemetry.plain_tps is None
    telemetry.on_opened(3, "race", PLAIN)
    telemetry.on_said(3, Done(Finish.LENGTH, timings(101), ()))
    assert telemetry.plain_tps == pytest.approx(50)


def test_sources_are_kept_apart_and_add_up(telemetry: Telemetry) -> None:
    for job, source in ((1, "chat"), (2, "claude-code")):
        telemetry.on_opened(job, source, ASK)
        say_round(telemetry, job, "dspark", 2, job - 1)
        telemetry.on_said(job, Done(Finish.STOP, timings(reused=job), ()))
    assert telemetry.sources == ("chat", "claude-code")
    assert telemetry.figures("chat").accepted_share == 0
    assert telemetry.figures("claude-code").accepted_share == 0.5
    assert telemetry.figures().requests == 2
    assert telemetry.figures().cached_share == pytest.approx(3 / 20)
    assert [point.job for point in telemetry.rounds("chat")] == [1]


def test_a_cancelled_request_without_a_token_counts_for_nothing(telemetry: Telemetry) -> None:
    telemetry.on_opened(1, "chat", ASK)
    telemetry.on_said(1, Done(Finish.CANCELLED, Timings(0, 0, 0, 0, 0, 0, 0, 0), ()))
    assert telemetry.figures().requests == 0
    assert not telemetry.running


def test_rounds_do_not_pile_up(telemetry: Telemetry) -> None:
    telemetry.on_opened(1, "chat", ASK)
    for _ in range(4000):
        say_round(telemetry, 1, "dspark", 1, 1)
    assert len(telemetry.points) == 3600
    assert telemetry.figures().rounds == 4000


def test_the_speed_line_counts_tokens_by_second() -> None:
    points = [
        RoundPoint(at, 1, "chat", "D", 0, 0, tokens) for at, tokens in ((0.0, 9), (98.5, 4), (99.2, 2), (99.9, 1))
    ]
    line = speed_line(points, 100.0)
    assert len(line) == 60
    assert line[-2:] == [(-1.0, 4.0), (0.0, 3.0)]
    assert sum(tps for _, tps in line) == 7  # what is older than a minute is not shown
    assert speed_line(points, 1000.0) == []


def test_letters_name_whose_tokens_they_were() -> None:
    assert [letter_of(*args) for args in (("dspark", 2), ("dflash", 0), ("lookup", 1), ("plain", 0))] == list("DMNM")


def test_a_client_cannot_write_formulas_into_the_csv() -> None:
    points = [RoundPoint(1.0, 1, '=cmd("x"),y', "D", 3, 2, 3)]
    (row,) = csv.DictReader(rounds_csv(points).splitlines())
    assert row["source"] == '\'=cmd("x"),y'
    assert csv_text("chat") == "chat"


# The history.


@pytest.fixture
def history(qapp: object, tmp_path: Path) -> Iterator[TelemetryHistory]:
    made = TelemetryHistory(tmp_path / "speeds.db")
    yield made
    made.close()


def read(qtbot: QtBot, history: TelemetryHistory) -> tuple[DayRow, ...]:
    with qtbot.waitSignal(history.read, timeout=5000) as told:
        history.ask()
    return told.args[0]  # pyright: ignore[reportOptionalSubscript]


def test_days_have_a_median_and_a_slow_tenth(qtbot: QtBot, history: TelemetryHistory) -> None:
    now = time.time()
    for tps in range(1, 12):
        history.add(Ended(now, "chat", timings(11, reused=5, seconds=10 / tps)))
    history.add(Ended(now, "pi", timings(1)))
    chat, pi = read(qtbot, history)
    assert (chat.day, chat.source, chat.requests, chat.tokens) == (date.today(), "chat", 11, 121)
    assert (chat.tps_median, chat.tps_p10) == pytest.approx((6, 2))
    assert chat.cached_share == 0.5
    assert (pi.source, pi.tps_median) == ("pi", None)


def test_what_is_older_than_thirty_days_goes(qtbot: QtBot, tmp_path: Path) -> None:
    file = tmp_path / "speeds.db"
    first = TelemetryHistory(file)
    first.add(Ended(time.time() - 31 * 86_400, "chat", timings()))
    first.add(Ended(time.time() - 29 * 86_400, "chat", timings()))
    first.close()
    second = TelemetryHistory(file)
    assert len(read(qtbot, second)) == 1
    second.clear()
    assert read(qtbot, second) == ()
    second.close()


def test_a_file_that_cannot_be_used_stops_nothing(
    qtbot: QtBot, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "speeds.db"
    file.write_bytes(b"no database" * 1000)
    history = TelemetryHistory(file)
    history.add(Ended(time.time(), "chat", timings()))
    history.add(Ended(time.time(), "chat", timings()))
    history.close()
    assert len(caplog.records) == 1
    assert file.read_bytes().startswith(b"no database")


# The screen.


@pytest.fixture
def screen(qtbot: QtBot, context: AppContext) -> TelemetryScreen:
    made = TelemetryScreen(context)
    qtbot.addWidget(made)
    made.resize(1000, 700)
    made.show()
    return made


def answer(qtbot: QtBot, app: AppContext, mode: Mode = Mode.AUTO) -> None:
    app.session.submit(Request(Text("x"), Options(mode=mode)))
    qtbot.waitUntil(lambda: app.telemetry.idle_since_s is not None, timeout=10_000)


def test_empty_it_says_what_to_do_and_rests(qtbot: QtBot, screen: TelemetryScreen) -> None:
    assert "Ask something in Chat" in screen.state.text()
    assert screen.figures.speed.value.text() == "–"
    assert screen.positions.nothing.text() == "No round yet."
    assert not screen.is_awake
    qtbot.waitUntil(lambda: screen.chart.plot is not None, timeout=60_000)  # the skeleton gives way


def test_running_it_follows_and_then_rests_with_the_last_figures(
    qtbot: QtBot, screen: TelemetryScreen, ready: AppContext, engine: FakeEngine
) -> None:
    engine.script = Script(pieces=("a", "bcd", "efg", "h") * 5, round_s=0.01)
    ready.session.submit(Request(Text("x")))
    qtbot.waitUntil(lambda: screen.is_awake and "under way" in screen.state.text(), timeout=5000)
    qtbot.waitUntil(lambda: "Idle since" in screen.state.text(), timeout=10_000)
    told = ready.telemetry.figures()
    assert screen.figures.per_round.value.text() == f"{told.tokens_per_round:.2f}"
    assert screen.figures.accepted.value.text() == share_text(told.accepted_share)
    assert told.last is not None
    assert screen.figures.speed.value.text() == f"{told.last.decode_tps:.1f}"
    assert "tokens for each pass" in screen.verdict.words.text()
    screen.strip.switch.setChecked(True)
    assert screen.strip.table.rowCount() == told.rounds + 1  # the prompt's own token is a row too


def test_a_figures_name_is_whole_when_its_prompt_was_kept(
    qtbot: QtBot, screen: TelemetryScreen, ready: AppContext
) -> None:
    shown = screen.figures.ttft
    for zoom in (100, 150):
        ready.theme.set_zoom(zoom)
        before = shown.width()
        ready.telemetry.on_opened(zoom, "chat", ASK)
        ready.telemetry.on_said(zoom, Done(Finish.STOP, timings(reused=5), ()))
        screen.refresh()
        assert shown.name.text() == "to first token, cached"
        assert shown.width() == before, "nothing jitters"
        assert shown.name.fontMetrics().horizontalAdvance(shown.name.text()) <= shown.width()
    ready.theme.set_zoom(100)


def test_hidden_it_does_nothing(qtbot: QtBot, screen: TelemetryScreen, ready: AppContext) -> None:
    screen.hide()
    paints = screen.paints
    answer(qtbot, ready)
    assert not screen.is_awake
    assert screen.paints == paints
    screen.show()
    assert screen.paints > paints


def test_frozen_it_stands_still(qtbot: QtBot, screen: TelemetryScreen, ready: AppContext) -> None:
    screen.freeze.click()
    assert screen.state.text().startswith("Frozen at")
    answer(qtbot, ready)
    assert screen.figures.speed.value.text() == "–"
    screen.freeze.click()
    assert screen.figures.speed.value.text() != "–"


def test_plain_decoding_is_called_plain(qtbot: QtBot, screen: TelemetryScreen, ready: AppContext) -> None:
    app = ready
    app.telemetry.on_opened(900, "chat", PLAIN)
    app.telemetry.on_said(900, Prefill(0, 1, 0))
    say_round(app.telemetry, 900, "plain", 0, 0)
    app.telemetry.on_said(900, Done(Finish.STOP, timings(20), ()))
    screen.refresh()
    assert screen.positions.nothing.text() == "Plain decoding: nothing is drafted."
    assert "one token for each pass" in screen.verdict.words.text()
    app.telemetry.on_opened(901, "chat", ASK)
    say_round(app.telemetry, 901, "dspark", 3, 3)
    done = Timings(0, 0, 1, 2, 10, 0, 41, 10)  # 40 tok/s; plain had 9.5
    app.telemetry.on_said(901, Done(Finish.STOP, done, ()))
    screen.refresh()
    assert screen.verdict.words.text().startswith("4.21 times as fast as plain decoding")


def test_session_history_and_export(qtbot: QtBot, screen: TelemetryScreen, ready: AppContext, tmp_path: Path) -> None:
    answer(qtbot, ready)
    screen.sections.choose(SESSION)
    assert screen.session_table.item(0, 0).text() == "Chat"  # pyright: ignore[reportOptionalMemberAccess]
    screen.export_to(tmp_path / "rounds.csv")
    assert len((tmp_path / "rounds.csv").read_text().splitlines()) == 1 + len(ready.telemetry.points)
    with qtbot.waitSignal(ready.speeds.read, timeout=5000):
        screen.sections.choose(HISTORY)
    assert screen.history.table.rowCount() == 1
    screen.export_to(tmp_path / "history.csv")
    assert (tmp_path / "history.csv").read_text().splitlines()[1].startswith(f"{date.today()},chat,1,")
    screen.history.clear.click()
    assert screen.history.table.rowCount() == 1  # it asks first
    with qtbot.waitSignal(ready.speeds.read, timeout=5000):
        screen.history.clear.click()
    assert screen.history.table.rowCount() == 0
    screen.export_to(tmp_path / "no such folder" / "x.csv")
    assert ready.banners.current is not None
    assert "could not be written" in ready.banners.current.text
