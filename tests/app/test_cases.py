"""The public cases of the window, as they are told: P21 (reading while it writes) and P22 (one number, one meaning)."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QPalette, QTextBlock, QTextCharFormat
from pytestqt.qtbot import QtBot

from fakes import FakeEngine, FakeTokeniser, Script
from slipstream.events import Timings
from slipstream.server import tokenising
from slipstream.types import Mode
from slipstream_app.bridge.server import ServerOn, ServerOptions
from slipstream_app.models import chat_prompt
from slipstream_app.models.chat_reply import Reply
from slipstream_app.models.telemetry_history import history_csv
from slipstream_app.screens.base import AppContext
from slipstream_app.screens.chat import ChatScreen
from slipstream_app.screens.telemetry import TelemetryScreen
from slipstream_app.setting import Detail
from slipstream_app.theme import contrast
from slipstream_app.widgets.code_card import CodeCard, CodeText
from slipstream_app.widgets.prose import Prose
from slipstream_app.widgets.transcript import Transcript

from .test_chat_screen import ask, last

Wait = Callable[[Callable[[], object]], None]


@pytest.fixture
def wait(qtbot: QtBot) -> Wait:
    return lambda condition: qtbot.waitUntil(lambda: bool(condition()), timeout=60_000)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


@pytest.fixture
def screen(qtbot: QtBot, ready: AppContext, monkeypatch: pytest.MonkeyPatch, watched: Watched) -> Iterator[ChatScreen]:
    monkeypatch.setattr(chat_prompt, "_open", lambda _: FakeTokeniser())
    made = ChatScreen(ready)
    qtbot.addWidget(made)
    made.resize(1000, 700)
    made.show()
    yield made
    made.closing()


# P22.

FIRST = Timings(0.0, 0.0, 0.60, 1.40, prompt_tokens=791, reused_tokens=0, output_tokens=101, rounds=40)
SECOND = Timings(0.0, 0.0, 0.05, 0.85, prompt_tokens=791, reused_tokens=780, output_tokens=101, rounds=40)


def answered(screen: ChatScreen, wait: Wait, engine: FakeEngine, timings: Timings) -> str:
    """The strip's figures under an answer."""
    engine.script = Script(pieces=("a", *("bcd",) * 40), timings=timings)
    ask(screen, wait)
    return " ".join(text for text, _ in last(screen).actions_row.stats.figures())


def test_p22_the_same_figures_everywhere(
    qtbot: QtBot, screen: ChatScreen, ready: AppContext, engine: FakeEngine, wait: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready.settings.set("general/detail", Detail.EXPERT.value)
    first = answered(screen, wait, engine, FIRST)
    assert "125.0 tok/s" in first
    assert "first token 0.60 s " in f"{first} "
    assert "prompt 1,318 tok/s" in first
    assert "2.5 per round" in first
    (per_round,) = [meaning for text, meaning in last(screen).actions_row.stats.figures() if text.endswith("per round")]
    assert "each of 40 pass(es)" in per_round
    assert "80 of 120 drafts kept" in first
    telemetry = TelemetryScreen(ready)
    qtbot.addWidget(telemetry)
    telemetry.show()
    telemetry.refresh()
    assert telemetry.figures.speed.value.text() == "125.0"
    assert telemetry.figures.ttft.value.text() == "0.60\xa0s"
    assert telemetry.figures.ttft.name.text() == "to first token"
    # The second request, most of whose prompt was kept, says so wherever its time to the first token stands.
    second = answered(screen, wait, engine, SECOND)
    assert "first token 0.05 s, cached" in second
    telemetry.refresh()
    assert telemetry.figures.ttft.value.text() == "0.05\xa0s"
    assert telemetry.figures.ttft.name.text() == "to first token, cached"
    # What is exported, and what the API says of a request with these times.
    facts = screen.chats.path[1].facts["timings"]
    assert (round(facts["decode_tps"], 6), round(facts["prefill_tps"]), facts["rounds"]) == (125.0, 1318, 40)
    days: list[Any] = []
    ready.speeds.read.connect(days.extend)
    ready.speeds.ask()
    wait(lambda: days)
    assert "125.0" in history_csv(tuple(days))
    monkeypatch.setattr(tokenising, "FolderTokeniser", lambda _: FakeTokeniser())
    ready.server.start(ServerOptions(port=0))
    wait(lambda: isinstance(ready.server.state, ServerOn))
    state = ready.server.state
    assert isinstance(state, ServerOn)
    engine.script = Script(pieces=("a", *("bcd",) * 40), timings=FIRST)
    body = {"model": "x", "messages": [{"role": "user", "content": "q"}]}
    told = httpx.post(f"{state.url}/v1/chat/completions", json=body, timeout=30).json()
    extras = next(value for value in told.values() if isinstance(value, dict) and "decode_tps" in value)
    assert (extras["decode_tps"], extras["ttft_s"]) == (125.0, 0.6)
    assert told["usage"]["prompt_tokens_details"]["cached_tokens"] == 0


def test_p22_where_plain_decoding_is_faster_nobody_drafts_unless_asked_to(
    screen: ChatScreen, ready: AppContext, engine: FakeEngine, wait: Wait
) -> None:
    assert screen.chats.parameters.mode is Mode.AUTO
    choice = ready.session.choice
    assert choice is not None
    ready.speedups.record(choice.title, {"dspark": 0.91, "lookup": 0.85})
    screen.new_chat()
    assert screen.chats.parameters.mode is Mode.BASELINE
    ask(screen, wait)
    assert engine.jobs[-1].request.options.mode is Mode.BASELINE
    screen.drawers.toggle_parameters()
    drawer = screen.drawers.parameters
    assert drawer.slower.isVisible()
    assert "Plain decoding is faster here (0.91×)" in drawer.slower.text()
    drawer.changed.emit(replace(screen.chats.parameters, mode=Mode.AUTO))  # forced on
    ask(screen, wait)
    assert engine.jobs[-1].request.options.mode is Mode.AUTO
    # A later race in which a drafter wins puts an end to it.
    ready.speedups.record(choice.title, {"dspark": 1.4})
    screen.new_chat()
    assert screen.chats.parameters.mode is Mode.AUTO


# P21.

DELTAS, CHARACTERS = 4000, 50  # 200 kB
SCROLLED_AT = 500
STALL_S = 0.1
KEPT_S = 2.0


def markdown() -> list[str]:
    """Prose, tables and code, in pieces that heed no border."""
    part = (
        "A paragraph with **bold** words, `code` and a [link](https://example.com/page).\n\n"
        "| name | value |\n| --- | --- |\n| one | 1 |\n| two | 2 |\n\n"
        "```python\ndef f(x: int) -> int:\n    return x * 2  # twice\n```\n\n"
    )
    text = part * (DELTAS * CHARACTERS // len(part) + 1)
    return [text[at : at + CHARACTERS] for at in range(0, DELTAS * CHARACTERS, CHARACTERS)]


class Watched:
    """How long the window's thread is held by what a reply makes it do, in its own time: others' does not count."""

    WORK = (
        (Transcript, "_repaint_running"),
        (Transcript, "_build"),
        (Transcript, "_on_scroll"),
        (Reply, "hear"),
        (Reply, "_save"),
        (Transcript, "reply_changed"),
    )

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.longest_s = dict.fromkeys((name for _, name in self.WORK), 0.0)
        for kind, name in self.WORK:
            monkeypatch.setattr(kind, name, self._timed(name, getattr(kind, name)))

    def _timed(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:  # Any: whatever a slot takes
        def timed(*given: Any) -> Any:
            began = time.thread_time()
            try:
                return work(*given)
            finally:
                self.longest_s[name] = max(self.longest_s[name], time.thread_time() - began)

        return timed


def unreadable(screen: ChatScreen) -> set[str]:
    """Texts, links and code whose colour is too close to what they stand on, with the window active or not."""
    found: set[str] = set()
    theme = screen.app.theme
    for part in (*screen.transcript.findChildren(Prose), *screen.transcript.findChildren(CodeText)):
        ground = theme.color("surface" if isinstance(part.parent(), CodeCard) else "bg")
        for group in (QPalette.ColorGroup.Active, QPalette.ColorGroup.Inactive):
            plain = part.palette().color(group, QPalette.ColorRole.Text)
            block: QTextBlock = part.document().begin()
            while block.isValid():
                formats = [QTextCharFormat(at.fragment().charFormat()) for at in block]  # type: ignore[attr-defined]
                formats += [QTextCharFormat(span.format) for span in block.layout().formats()]  # type: ignore[attr-defined]
                for form in formats:
                    own = form.foreground()
                    ink = own.color() if own.style().value else plain
                    if contrast(ink, ground) < 4.5:
                        found.add(f"{block.text()[:30]}: {ink.name()} on {ground.name()}")
                block = block.next()
    return found


@pytest.mark.slow
def test_p21_reading_while_it_writes(
    qtbot: QtBot,
    screen: ChatScreen,
    ready: AppContext,
    engine: FakeEngine,
    wait: Wait,
    tmp_path: Path,
    watched: Watched,
) -> None:
    """300 messages and an answer of 200 kB in 4,000 pieces. About a minute; run with: pytest -m slow -k p21"""
    history, parent = ready.history, None
    chat = history.create_chat("long")
    for number in range(300):
        parent = history.add(chat, parent, "assistant" if number % 2 else "user", f"message {number}").id
    info = replace(engine.info, context=10**6)
    engine.info = info
    ready.session.reload()
    wait(lambda: ready.session.info == info)
    screen.open_chat(chat)
    wait(lambda: screen.transcript.is_settled)
    pieces = markdown()
    engine.script = Script(pieces=tuple(pieces), round_s=0.004)
    assert screen.chats.send("go on")
    reply = screen.chats.reply
    assert reply is not None
    wait(lambda: len(reply.text) >= SCROLLED_AT * CHARACTERS)
    bar = screen.transcript.verticalScrollBar()
    bar.setValue(bar.value() - 3 * screen.fontMetrics().lineSpacing())
    wait(lambda: screen.transcript.is_settled)
    read = last(screen).parts[-3]  # what is being read, of the answer that grows below it
    place = read.mapTo(screen, QPoint(0, 0)).y()
    assert screen.transcript.jump.isVisible()
    written: list[tuple[float, int]] = []  # when, and how much was said by then
    while screen.chats.reply is not None and len(reply.text) < 0.9 * DELTAS * CHARACTERS:
        qtbot.wait(20)
        written.append((time.monotonic(), len(reply.text)))
        assert read.mapTo(screen, QPoint(0, 0)).y() == place
    assert max(watched.longest_s.values()) < STALL_S, watched.longest_s
    # What a kill at this moment would leave: what another connection reads from the disk now.
    now = time.monotonic()
    other = sqlite3.connect(tmp_path / "chats.db")
    (kept,) = other.execute("SELECT length(text) FROM messages WHERE id = ?", (reply.message.id,)).fetchone()
    (finished,) = other.execute("SELECT count(*) FROM messages WHERE state = 'done'").fetchone()
    other.close()
    assert kept >= max((length for at, length in written if at <= now - KEPT_S), default=0)
    assert finished >= 300
    ready.theme.set_scheme("dark")
    wait(lambda: screen.transcript.is_settled)
    assert unreadable(screen) == set()
    ready.theme.set_scheme("system")
    screen.chats.stop()
    wait(lambda: screen.chats.reply is None)
