"""The Chat screen as its user meets it: every state, keys, files, search, undo."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtGui import QGuiApplication, QInputMethodEvent, QTextDocument
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QLineEdit, QMessageBox, QWidget
from pytestqt.qtbot import QtBot

from fakes import FakeEngine, FakeTokeniser, Script
from slipstream.errors import WontFit
from slipstream.jobs import Job
from slipstream.types import Mode
from slipstream_app.bridge.pair import PairChoice
from slipstream_app.messages import State
from slipstream_app.models import chat_prompt
from slipstream_app.screens.base import AppContext
from slipstream_app.screens.chat import ChatScreen
from slipstream_app.widgets.code_card import CodeCard
from slipstream_app.widgets.composer import PASTE_CHARACTERS
from slipstream_app.widgets.prose import Prose
from slipstream_app.widgets.shown import Ask
from slipstream_app.widgets.transcript import MAX_LIVE, Transcript

FAKE = PairChoice("a scripted model", "/nowhere/fake-model")
ANSWER = "Look:\n\n```python\nx = 1\n```\n\n- one\n- two\n\n![p](http://127.0.0.1:1/p.png)"


@pytest.fixture
def screen(qtbot: QtBot, context: AppContext, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatScreen]:
    spoken = FakeTokeniser()
    monkeypatch.setattr(chat_prompt, "_open", lambda _: spoken)
    made = ChatScreen(context)
    qtbot.addWidget(made)
    made.resize(1000, 700)
    made.show()
    yield made
    made.closing()


@pytest.fixture
def wait(qtbot: QtBot) -> Callable[[Callable[[], object]], None]:
    def until(condition: Callable[[], object]) -> None:
        qtbot.waitUntil(lambda: bool(condition()), timeout=5000)

    return until


Wait = Callable[[Callable[[], object]], None]


@pytest.fixture
def loaded(screen: ChatScreen, wait: Wait) -> ChatScreen:
    screen.app.session.load(FAKE)
    wait(lambda: screen.app.session.info)
    return screen


def ask(screen: ChatScreen, wait: Wait, text: str = "q") -> None:
    screen.composer.set_text(text)
    wait(lambda: screen.composer.can_submit)
    screen.submit()
    wait(lambda: screen.chats.reply is None)
    wait(lambda: screen.transcript.is_settled)


def last(screen: ChatScreen) -> Any:  # Any: MessageWidget's parts are looked into
    message = screen.chats.path[-1].id
    for _ in range(500):
        if screen.transcript.widget_of(message) is not None:
            break
        QTest.qWait(10)
    return screen.transcript.widget_of(message)


def parts_of(screen: ChatScreen) -> list[str]:
    return [f"{'code' if isinstance(part, CodeCard) else 'prose'}: {part.text}" for part in last(screen).parts]


# Its states.


def test_without_a_model_it_says_so_and_offers_one(screen: ChatScreen, wait: Wait) -> None:
    assert screen.start.title.text() == "No model is loaded"
    assert screen.start.load.isVisible()
    assert not screen.start.prompts.isVisible()
    screen.composer.set_text("hello")
    assert not screen.composer.can_submit
    screen.start.load.click()
    wait(lambda: screen.app.session.info)
    assert screen.start.prompts.isVisible()
    assert screen.composer.can_submit


def test_an_empty_chat_offers_four_prompts(loaded: ChatScreen) -> None:
    assert len(loaded.start.chips) == 4
    loaded.start.chips[0].click()
    assert "cache" in loaded.composer.text


def test_a_model_that_does_not_load_is_said_with_its_reason(qtbot: QtBot, screen: ChatScreen, wait: Wait) -> None:
    def fail(*_: object) -> FakeEngine:
        raise WontFit("it needs 40 GB; choose a smaller one")

    screen.app.session._life.worker._open_pair = fail
    screen.app.session.load(FAKE)
    wait(lambda: "40 GB" in screen.start.text.text())
    assert screen.start.load.isVisible()


def test_a_chat_is_titled_by_its_question_or_by_its_date(loaded: ChatScreen, wait: Wait) -> None:
    ask(loaded, wait, "Why is the sky blue?\nAnd the sea?")
    assert loaded.chats.title == "Why is the sky blue?"
    loaded.app.settings.set("chat/titles", "date")
    loaded.new_chat()
    ask(loaded, wait, "A secret")
    assert loaded.chats.title
    assert "secret" not in loaded.chats.title
    rows = [loaded.list_model.index(row).data() for row in range(loaded.list_model.rowCount())]
    assert "A secret" not in rows
    assert loaded.chats.title in rows


def test_an_answer_is_shown_in_blocks_as_it_comes(loaded: ChatScreen, engine: FakeEngine, wait: Wait) -> None:
    pieces = tuple(ANSWER[at : at + 3] for at in range(0, len(ANSWER), 3))
    engine.script = Script(pieces=pieces, round_s=0.005)
    loaded.composer.set_text("q")
    wait(lambda: loaded.composer.can_submit)
    loaded.submit()
    assert loaded.composer.text == ""
    assert loaded.composer.send.text() == "Stop"
    wait(lambda: any(part.startswith("code: x") for part in parts_of(loaded)))
    code = last(loaded).parts[1]
    wait(lambda: loaded.chats.reply is None)
    wait(lambda: len(last(loaded).parts) == 4)
    assert last(loaded).parts[1] is code, "a finished block is not made again"
    assert parts_of(loaded) == [
        "prose: Look:",
        "code: x = 1",
        "prose: - one\n- two",
        "prose: ![p](http://127.0.0.1:1/p.png)",
    ]
    assert loaded.composer.send.text() == "Send"
    loaded.chats.open(loaded.chats.path[-1].chat)
    wait(lambda: len(last(loaded).parts) == 4)
    assert parts_of(loaded)[1] == "code: x = 1"


def test_a_prefill_shows_how_far_it_is_and_can_be_cancelled(loaded: ChatScreen, engine: FakeEngine, wait: Wait) -> None:
    engine.script = Script(prefill_chunks=400, prefill_s=0.01)
    loaded.composer.set_text("q" * 2000)
    wait(lambda: loaded.composer.can_submit)
    loaded.submit()
    wait(last(loaded).state_line.bar.isVisible)
    wait(lambda: "Reading" in last(loaded).state_line.words.text())
    assert "of 2,017 tokens" in last(loaded).state_line.words.text()
    last(loaded).state_line.cancel.click()
    wait(lambda: loaded.chats.reply is None)
    assert last(loaded).state_line.words.text() == "Stopped by you"


def test_stopped_text_is_kept_and_continues(loaded: ChatScreen, engine: FakeEngine, wait: Wait) -> None:
    engine.script = Script(pieces=tuple("abcdefgh"), round_s=0.03)
    loaded.composer.set_text("q")
    wait(lambda: loaded.composer.can_submit)
    loaded.submit()
    wait(lambda: loaded.chats.reply is not None and loaded.chats.reply.text)
    QTest.keyClick(loaded, Qt.Key.Key_Escape)
    wait(lambda: loaded.chats.reply is None)
    kept = loaded.chats.path[-1].text
    assert last(loaded).state_line.words.text() == "Stopped by you"
    engine.script = Script(pieces=("!",))
    last(loaded).state_line.go_on.click()
    wait(lambda: loaded.chats.path[-1].state is State.DONE)
    wait(lambda: parts_of(loaded) == [f"prose: {kept}!"])
    assert not last(loaded).state_line.isVisible()


def test_a_lost_engine_leaves_the_text_and_recovers(loaded: ChatScreen, engine: FakeEngine, wait: Wait) -> None:
    engine.script = Script(pieces=("kept ", "lost"), breaks_after=1)
    ask(loaded, wait)
    assert loaded.chats.path[-1].state is State.FAILED
    assert parts_of(loaded) == ["prose: kept "]
    assert "saved" in last(loaded).state_line.words.text()
    wait(lambda: loaded.app.session.info is None)
    assert not loaded.composer.can_submit
    engine.script = Script(pieces=("back",))
    loaded.app.session.reload()
    wait(lambda: loaded.app.session.info)
    ask(loaded, wait, "again")
    assert parts_of(loaded) == ["prose: back"]


# Messages.


def test_a_reply_can_cause_no_request(qtbot: QtBot, context: AppContext) -> None:
    prose = Prose(
        context.theme, "![x](http://127.0.0.1:1/x.png) <img src='file:///etc/hostname'> ![y][1]\n\n[1]: http://z/"
    )
    qtbot.addWidget(prose)
    assert "<img" in prose.toPlainText(), "HTML is text"
    html = prose.document().toHtml()
    assert "<img" not in html
    assert 'href="http://127.0.0.1:1/x.png"' in html
    for kind in QTextDocument.ResourceType:
        for url in ("file:///etc/hostname", "data:text/plain,x", "http://127.0.0.1:1/x.png", "qrc:/x"):
            assert not prose.document().resource(kind.value, QUrl(url))


def test_code_is_copied_wrapped_saved_and_coloured(
    loaded: ChatScreen, engine: FakeEngine, wait: Wait, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.script = Script(pieces=("```python\ndef f():\n    return 'é😀' # " + "x" * 400 + "\n```",))
    ask(loaded, wait)
    card = last(loaded).parts[0]
    card.copy.click()
    assert QGuiApplication.clipboard().text() == card.text
    before = last(loaded).height()
    card.wrap.click()
    wait(lambda: last(loaded).height() > before)
    target = tmp_path / "code.py"
    monkeypatch.setattr("PySide6.QtWidgets.QFileDialog.getSaveFileName", lambda *_: (str(target), ""))
    card.save.click()
    assert target.read_text(encoding="utf-8") == card.text + "\n"
    wait(lambda: not card._highlighter.is_reading)
    block = card.body.document().findBlockByNumber(1)
    coloured = {block.text().encode("utf-16-le")[2 * one.start : 2 * (one.start + one.length)].decode("utf-16-le")
                for one in block.layout().formats()}  # fmt: skip
    assert {"return", "'é😀'"} <= coloured


def test_thoughts_are_folded_and_their_state_is_kept_with_the_chat(
    loaded: ChatScreen, engine: FakeEngine, wait: Wait
) -> None:
    engine.script = Script(pieces=("<think>because</think>", "Yes"))
    ask(loaded, wait)
    card = last(loaded).thinking
    assert not card.is_open
    assert card.head.text().startswith("Thought for")
    assert parts_of(loaded) == ["prose: Yes"]
    card.head.click()
    assert card.body.toPlainText() == "because"
    chat = loaded.chats.chat
    assert chat is not None
    loaded.new_chat()
    loaded.open_chat(chat)
    wait(lambda: loaded.transcript.is_settled and last(loaded).thinking.is_open)


def test_a_tool_call_is_a_card_and_is_not_run(loaded: ChatScreen, engine: FakeEngine, wait: Wait) -> None:
    def script(_: Job) -> Script:
        call = '<tool_call>{"name": "look", "arguments": {"at": 1}}</tool_call>'
        return Script(pieces=(call,) if len(engine.jobs) == 1 else ("It is there",))

    engine.script = script
    loaded.chats.set_parameters(replace(loaded.chats.parameters, tools='[{"name": "look"}]'))
    ask(loaded, wait)
    card = last(loaded).tools[0]
    assert card.name.text() == "Call of look"
    assert json.loads(card.arguments.text) == {"at": 1}
    assert card.state.text() == "not run"
    card.entry.setText("a cat")
    card.add.click()
    wait(lambda: loaded.chats.reply is None and loaded.chats.path[-1].text == "It is there")
    assert "[tool" in FakeTokeniser.text_of(engine.jobs[1])


def test_branches_are_walked_by_buttons_and_commands(loaded: ChatScreen, engine: FakeEngine, wait: Wait) -> None:
    answers = iter(("one", "two"))
    engine.script = lambda _: Script(pieces=(next(answers),))
    ask(loaded, wait)
    last(loaded).actions_row.regenerate.click()
    wait(lambda: loaded.chats.path[-1].text == "two")
    wait(lambda: loaded.transcript.is_settled)
    walk = last(loaded).actions_row.walk
    assert walk.label.text() == "2/2"
    walk.back.click()
    wait(lambda: parts_of(loaded) == ["prose: one"])
    loaded.commands()["chat.next_branch"]()
    assert loaded.chats.path[-1].text == "two"


def test_up_edits_the_last_question_as_a_sibling(loaded: ChatScreen, engine: FakeEngine, wait: Wait) -> None:
    ask(loaded, wait, "first words")
    QTest.keyClick(loaded.composer.input, Qt.Key.Key_Up)
    assert loaded.composer.text == "first words"
    assert loaded.composer.cancel_edit.isVisible()
    loaded.composer.cancel_edit.click()
    assert loaded.composer.text == ""
    QTest.keyClick(loaded.composer.input, Qt.Key.Key_Up)
    ask(loaded, wait, "other words")
    assert loaded.chats.path[0].text == "other words"
    assert loaded.chats.tree.place(loaded.chats.path[0].id) == (2, 2)


def test_verify_shows_its_verdict_beside_the_answer(loaded: ChatScreen, engine: FakeEngine, wait: Wait) -> None:
    engine.script = Script(pieces=("abc", "def"))
    ask(loaded, wait)
    last(loaded).actions_row.verify.click()
    wait(lambda: "Identical" in last(loaded).actions_row.verdict.text())
    runs = iter((Script(pieces=("abc", "xyz")),))
    short = Script(pieces=("abc",))

    def script(_: Job) -> Script:
        return next(runs, short)

    engine.script = script
    last(loaded).actions_row.verify.click()
    wait(lambda: not loaded.chats.is_verifying(loaded.chats.path[-1].id))
    assert "does not repeat itself" in loaded.composer.note.text()


def test_why_this_speed_has_a_letter_for_each_source(loaded: ChatScreen, engine: FakeEngine, wait: Wait) -> None:
    engine.script = Script(pieces=("M", "DDDm", "DDDDDDDDDDDDDDDDDm"))
    ask(loaded, wait)
    loaded.why.show(loaded.chats.path[-1])
    wait(lambda: loaded.why.popover is not None and loaded.why.popover.isVisible())
    popover = loaded.why.popover
    assert popover is not None
    assert popover.text.toPlainText() == "MMDDDDMmDDDDDDDDDDDDDDDDDDMm"
    assert popover.rounds.value.text() == "2"
    assert "drafts were right" in popover.cause.text()
    popover.close()


def test_figures_are_copied_as_one_line(loaded: ChatScreen, engine: FakeEngine, wait: Wait) -> None:
    engine.script = Script(pieces=("abc", "def"), round_s=0.01)
    ask(loaded, wait)
    strip = last(loaded).actions_row.stats
    QTest.mouseClick(strip, Qt.MouseButton.LeftButton)
    line = QGuiApplication.clipboard().text()
    tps = loaded.chats.path[-1].facts["timings"]["decode_tps"]
    assert f"{tps:.1f} tok/s" in line
    for part in ("fake-model", "float32", "temperature 0.7", "DSpark", "seed"):
        assert part in line


# The composer.


def test_return_sends_shift_return_breaks_and_an_input_method_is_left_alone(loaded: ChatScreen, wait: Wait) -> None:
    field = loaded.composer.input
    sent: list[str] = []
    loaded.composer.submitted.connect(lambda: sent.append(loaded.composer.text))
    field.insertPlainText("one")
    QTest.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    QTest.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.AltModifier)
    assert loaded.composer.text == "one\n\n"
    field.inputMethodEvent(QInputMethodEvent("か", []))
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert sent == []
    field.inputMethodEvent(QInputMethodEvent("", []))
    loaded.app.settings.set("chat/return_sends", False)
    field.setPlainText("two")
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert sent == []
    QTest.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert len(sent) == 1
    wait(lambda: loaded.chats.reply is None)


def test_it_grows_to_two_fifths_of_the_window(loaded: ChatScreen) -> None:
    field = loaded.composer.input
    small = field.height()
    field.setPlainText("line\n" * 8)
    assert field.height() > small
    field.setPlainText("line\n" * 500)
    assert field.height() <= loaded.height() * 0.4 + 1


def test_long_pastes_and_files_become_chips_and_others_are_refused(
    loaded: ChatScreen, tmp_path: Path, wait: Wait
) -> None:
    composer = loaded.composer
    data = QMimeData()
    data.setText("x" * (PASTE_CHARACTERS + 1))
    composer.input.insertFromMimeData(data)
    assert composer.text == ""
    assert [len(one.text) for one in composer.attachments] == [PASTE_CHARACTERS + 1]
    files = {"a.py": b"print('h\xc3\xa9')", "b.png": b"\x89PNG", "c.bin": b"\x00\xff\x00", "d.pdf": _pdf("Hello PDF")}
    files["e.pdf"] = b"%PDF-1.4 broken"
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(tmp_path / name)) for name in files])
    composer.input.insertFromMimeData(data)
    assert "Reading a.py, " in composer.reading.words.text()
    assert not composer.can_submit, "they would be missing"
    wait(lambda: len(composer.attachments) == 3 and composer.reading.isHidden())
    assert [one.name for one in composer.attachments][1:] == ["a.py", "d.pdf"]
    assert composer.attachments[1].text == "print('hé')"
    assert "Hello PDF" in composer.attachments[2].text
    for said in ("b.png: this model reads text only", "c.bin is no text file", "e.pdf cannot be read"):
        assert said in composer.note.text()
    composer.chips.removed.emit(0)  # with it the text was too long for the context
    assert len(composer.attachments) == 2
    wait(lambda: composer.can_submit)


def _pdf(text: str) -> bytes:
    """The smallest file of one page that says `text`."""
    stream = f"BT /F1 24 Tf 50 700 Td ({text}) Tj ET".encode()
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    out, places = b"%PDF-1.4\n", list[int]()
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj%s endobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return out + b"xref\n0 6\n0000000000 65535 f \n%strailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (
        table,
        len(out),
    )


# P15: too long is an error here too, and what goes is the user's choice.
def test_tokens_turn_amber_then_red_and_turns_are_dropped_after_a_preview(
    loaded: ChatScreen, engine: FakeEngine, wait: Wait
) -> None:
    engine.script = Script(pieces=("a" * 3900,))
    ask(loaded, wait, "the first question")
    ask(loaded, wait, "the second question")
    loaded.composer.set_text("x")
    wait(lambda: "nearly full" in loaded.composer.count.text())
    assert loaded.composer.count.property("role") == "warn"
    assert loaded.composer.can_submit
    loaded.composer.set_text("x" * 1000)
    wait(lambda: loaded.composer.send.text() == "Too long")
    assert loaded.composer.count.property("role") == "bad"
    assert not loaded.composer.can_submit
    loaded.composer.set_running(True)
    assert not loaded.composer.drop.isEnabled(), "what the answer comes to is not known yet"
    loaded.composer.set_running(False)
    loaded.composer.drop.click()
    wait(lambda: loaded.findChild(QMessageBox, "drop-turns"))
    box = loaded.findChild(QMessageBox, "drop-turns")
    assert isinstance(box, QMessageBox)
    assert "the first question" in box.informativeText()
    assert loaded.chats.first_sent is None, "nothing is cut before it is agreed to"
    next(one for one in box.buttons() if one.text() == "Drop").click()
    wait(lambda: loaded.composer.can_submit)
    assert loaded.conversation.dropped_bar.isVisible()
    assert len(loaded.chats.path) == 4


# Parameters.


def test_changed_values_have_a_dot_and_reset_and_a_bad_schema_is_not_used(loaded: ChatScreen, wait: Wait) -> None:
    drawer = loaded.drawers.parameters
    loaded.drawers.toggle_parameters()
    row = drawer._rows["temperature"]
    assert row.dot.isHidden()
    drawer._set(replace(drawer.value, temperature=0.0))
    assert not row.dot.isHidden()
    assert loaded.chats.parameters.temperature == 0.0
    row.undo.click()
    assert loaded.chats.parameters.temperature == 0.7
    drawer.schema.setPlainText('{"type": "nothing"}')
    drawer.flush()
    assert "Not in use" in drawer.schema_mark.text()
    assert loaded.chats.parameters.schema == ""
    drawer.schema.setPlainText('{"type": "object"}')
    drawer.flush()
    assert "Valid" in drawer.schema_mark.text()
    assert loaded.chats.parameters.schema == '{"type": "object"}'
    assert not drawer.mode.model().index(2, 0).flags() & Qt.ItemFlag.ItemIsEnabled, "DFlash is not loaded"
    drawer._set(replace(drawer.value, mode=Mode.BASELINE))
    drawer.save.click()
    loaded.new_chat()
    assert loaded.chats.parameters.mode is Mode.BASELINE


# The list.


def test_search_finds_a_message_and_opens_its_branch(loaded: ChatScreen, engine: FakeEngine, wait: Wait) -> None:
    answers = iter(("a needle here", "hay", "hay"))
    engine.script = lambda _: Script(pieces=(next(answers),))
    ask(loaded, wait)
    found = loaded.chats.path[-1].id
    loaded.asks.regenerate_last()
    wait(lambda: loaded.chats.reply is None)
    loaded.new_chat()
    ask(loaded, wait, "another")
    loaded.list.search.setText("needl")
    QTest.keyClick(loaded.list.search, Qt.Key.Key_Return)
    wait(lambda: loaded.chats.path[-1].id == found)
    assert [entry.title for entry in loaded.entries("needle")] == ["q"]
    loaded.list.search.setText("nothing like it")
    wait(lambda: loaded.list.empty.text() == "Nothing found")
    loaded.list.search.clear()
    assert loaded.list.list.currentIndex().data() == "q"


def test_delete_is_undone_and_export_comes_back(loaded: ChatScreen, wait: Wait, tmp_path: Path) -> None:
    ask(loaded, wait, "keep me")
    chat = loaded.chats.chat
    assert chat is not None
    loaded.exchange.write(chat, tmp_path / "chat.md", is_json=False)
    assert "## Assistant\n\nOne, two, three" in (tmp_path / "chat.md").read_text()
    loaded.exchange.write(chat, tmp_path / "chat.json", is_json=True)
    loaded.commands()["chat.delete"]()
    assert loaded.undo_bar.isVisible()
    assert loaded.chats.chat is None
    assert loaded.list.empty.text() == "No chats yet"
    loaded.chats.undo_delete()
    assert not loaded.undo_bar.isVisible()
    assert loaded.chats.chat == chat
    loaded.exchange.read(tmp_path / "chat.json")
    assert loaded.chats.chat != chat
    assert [message.text for message in loaded.chats.path] == ["keep me", "One, two, three"]
    (tmp_path / "chat.json").write_text("{}")
    loaded.exchange.read(tmp_path / "chat.json")
    assert "no exported chat" in loaded.composer.note.text()


# A long chat.


@pytest.fixture
def long_chat(loaded: ChatScreen, wait: Wait) -> Transcript:
    history = loaded.app.history
    chat, parent = history.create_chat("long"), None
    for number in range(200):
        role = "assistant" if number % 2 else "user"
        parent = history.add(chat, parent, role, f"message {number}\n\n" + "words " * (number % 7 * 20)).id
    loaded.open_chat(chat)
    wait(lambda: loaded.transcript.is_settled)
    return loaded.transcript


def test_of_a_long_chat_only_what_is_near_the_view_is_made(long_chat: Transcript, wait: Wait) -> None:
    bar = long_chat.verticalScrollBar()
    assert 0 < long_chat.live < 40
    assert bar.value() == bar.maximum()
    for step in range(40):
        bar.setValue(bar.maximum() * (40 - step) // 40)
        wait(lambda: long_chat.is_settled)
    assert long_chat.live <= MAX_LIVE
    bar.setValue(0)
    wait(lambda: long_chat.is_settled)
    assert long_chat.live <= MAX_LIVE
    assert bar.value() == 0


def test_what_is_read_stays_in_place_while_the_rest_grows(
    long_chat: Transcript, loaded: ChatScreen, engine: FakeEngine, wait: Wait
) -> None:
    engine.script = Script(pieces=("line\n\n",) * 60, round_s=0.005)
    bar = long_chat.verticalScrollBar()
    bar.setValue(bar.maximum() // 2)
    wait(lambda: long_chat.is_settled)
    loaded.chats.send("q")
    place = bar.value()
    assert not long_chat.follows
    wait(lambda: loaded.chats.reply is None)
    wait(lambda: long_chat.is_settled)
    assert bar.value() == place
    assert long_chat.jump.isVisible()
    long_chat.jump.click()
    wait(lambda: long_chat.is_settled and bar.value() == bar.maximum())
    assert long_chat.follows


def test_selecting_text_stops_following(loaded: ChatScreen, wait: Wait) -> None:
    ask(loaded, wait)
    assert loaded.transcript.follows
    last(loaded).parts[0].selectAll()
    assert not loaded.transcript.follows


def test_find_brings_up_each_message_with_the_words(long_chat: Transcript, loaded: ChatScreen, wait: Wait) -> None:
    loaded.find_bar.open()
    loaded.find_bar.words.setText("message 12")
    loaded.conversation.find_next()
    wait(lambda: long_chat.is_settled)
    assert loaded.find_bar.note.text() == "1 of 11"
    loaded.conversation.find_next()
    assert loaded.find_bar.note.text() == "2 of 11"


# Everybody.


def test_every_control_has_a_name_and_every_ask_an_answer(loaded: ChatScreen, wait: Wait) -> None:
    ask(loaded, wait)
    loaded.drawers.toggle_parameters()
    nameless = [
        f"{type(control).__name__} in {type(control.parent()).__name__}"
        for control in loaded.findChildren(QAbstractButton)
        if not (control.text() or control.accessibleName() or isinstance(control.parent(), QLineEdit))
        and type(control) is not QAbstractButton  # the corner of a table, which is never shown
    ]
    assert nameless == []
    for field in (
        loaded.composer.input,
        loaded.list.search,
        loaded.list.list,
        loaded.transcript,
        loaded.find_bar.words,
    ):
        assert field.accessibleName()
    message = loaded.chats.path[-1].id
    arguments = {Ask.WALK: 1, Ask.RESULT: ("x", ""), Ask.THOUGHTS: False, Ask.REGENERATE: None}
    for one in Ask:
        if one not in (Ask.REGENERATE, Ask.BRANCH, Ask.RESULT):
            loaded.asks.do(one, message, arguments.get(one))


def test_theme_and_zoom_change_every_part(loaded: ChatScreen, engine: FakeEngine, wait: Wait) -> None:
    engine.script = Script(pieces=("<think>t</think>", ANSWER))
    ask(loaded, wait)
    theme = loaded.app.theme
    before = last(loaded).height()
    theme.set_zoom(150)
    wait(lambda: last(loaded).height() > before)
    code = next(part for part in last(loaded).parts if isinstance(part, CodeCard))
    line = code.body.blockBoundingRect(code.body.document().firstBlock()).height()
    wait(lambda: code.body.height() >= line * (code.text.count("\n") + 1))  # nothing is cut off
    assert loaded.composer.input.font().pointSizeF() == theme.font().pointSizeF()
    theme.set_scheme("dark")
    assert last(loaded).parts[0].palette().text().color() == theme.color("text")
    theme.set_zoom(100)
    theme.set_scheme("system")


def test_closing_keeps_what_was_written(loaded: ChatScreen, engine: FakeEngine, wait: Wait) -> None:
    engine.script = Script(pieces=tuple("abcdef"), round_s=0.2)
    loaded.composer.set_text("q")
    wait(lambda: loaded.composer.can_submit)
    loaded.submit()
    wait(lambda: loaded.chats.reply is not None and loaded.chats.reply.text)
    loaded.closing()
    kept = loaded.app.history.messages(loaded.chats.chat or 0)[-1]
    assert kept.state is State.STOPPED or kept.state is State.INTERRUPTED
    assert "abcdef".startswith(kept.text)
    assert kept.text


def test_the_palette_and_the_menus_know_what_can_be_done(loaded: ChatScreen, wait: Wait) -> None:
    assert "chat.regenerate" not in loaded.commands()
    assert "chat.export" not in loaded.commands()
    ask(loaded, wait)
    assert {"chat.regenerate", "chat.copy_last", "chat.export", "chat.delete", "chat.find"} <= loaded.commands().keys()
    loaded.commands()["chat.copy_last"]()
    assert QGuiApplication.clipboard().text() == "One, two, three"
    loaded.visited(SimpleNamespace())
    loaded.visited({"prompt": "Ask me"})
    assert loaded.composer.text == "Ask me"
    assert loaded.chats.chat is None
    assert isinstance(loaded.focusWidget(), QWidget)


def test_the_scroll_bar_is_there_when_there_is_something_to_scroll_and_moves_nothing(
    loaded: ChatScreen, engine: FakeEngine, wait: Wait
) -> None:
    engine.script = Script(pieces=("Short.",))
    ask(loaded, wait)
    bar = loaded.transcript.verticalScrollBar()
    assert not bar.isVisible()

    def edges() -> tuple[int, int]:
        widget = last(loaded)
        left = widget.mapTo(loaded, widget.rect().topLeft()).x()
        return left, left + widget.width()

    before = edges()
    composer = loaded.composer
    left = composer.mapTo(loaded, composer.rect().topLeft()).x()
    assert before == (left, left + composer.width()), "what is written stands where it is read"
    engine.script = Script(pieces=("A line.\n\n" * 60,))
    ask(loaded, wait)
    wait(bar.isVisible)
    assert edges() == before


def test_the_list_of_chats_grows_with_the_text(loaded: ChatScreen, wait: Wait) -> None:
    before = loaded.list.width()
    loaded.app.theme.set_zoom(120)
    wait(lambda: loaded.list.width() > before)
    loaded.app.theme.set_zoom(100)
    wait(lambda: abs(loaded.list.width() - before) <= 2)
