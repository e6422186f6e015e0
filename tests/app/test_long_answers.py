"""A long answer: what is out of sight is let go in calm, and comes last when the theme changes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.conftest import FAKE
from fakes import FakeTokeniser
from slipstream_app.models import chat_prompt
from slipstream_app.screens.base import AppContext
from slipstream_app.screens.chat import ChatScreen
from slipstream_app.widgets.block import Away
from slipstream_app.widgets.code_card import CodeCard
from slipstream_app.widgets.message import MessageWidget
from slipstream_app.widgets.prose import Prose

PARAGRAPH = "A paragraph with **bold** words, `code` and a [link](https://example.com). " * 3 + "\n\n"
CODE = "```python\n" + "def f(x):\n    return x * 2\n" * 3 + "```\n\n"
TEXT = (PARAGRAPH * 4 + CODE) * 12


def there(widget: MessageWidget) -> list[Prose | CodeCard]:
    """The parts that are widgets."""
    return [part for part in widget.parts if not isinstance(part, Away)]


@pytest.fixture
def screen(qtbot: QtBot, context: AppContext, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatScreen]:
    monkeypatch.setattr(chat_prompt, "_open", lambda _: FakeTokeniser())
    context.session.load(FAKE)
    made = ChatScreen(context)
    qtbot.addWidget(made)
    made.resize(1000, 700)
    made.show()
    history = context.history
    chat = history.create_chat("long")
    question = history.add(chat, None, "user", "q").id
    history.set_leaf(chat, history.add(chat, question, "assistant", TEXT).id)
    made.open_chat(chat)
    qtbot.waitUntil(lambda: bool(made.chats.path) and made.transcript.is_settled, timeout=60_000)
    yield made
    made.closing()
    context.theme.set_scheme("system")
    context.theme.set_zoom(100)


def answer(screen: ChatScreen) -> MessageWidget:
    widget = screen.transcript.widget_of(screen.chats.path[-1].id)
    assert widget is not None
    return widget


def is_thin(widget: MessageWidget) -> bool:
    return sum(isinstance(part, Away) for part in widget.parts) > 10


def test_what_is_far_from_the_view_is_let_go_and_comes_back_when_it_is_scrolled_to(
    qtbot: QtBot, screen: ChatScreen
) -> None:
    widget, transcript = answer(screen), screen.transcript
    places = [(part.y(), part.height()) for part in widget.parts]
    qtbot.waitUntil(lambda: is_thin(widget), timeout=60_000)
    assert [(part.y(), part.height()) for part in widget.parts] == places
    assert not isinstance(widget.parts[-1], Away), "the end is in sight"
    assert isinstance(widget.parts[0], Away)
    transcript.verticalScrollBar().setValue(0)
    qtbot.waitUntil(lambda: not isinstance(widget.parts[0], Away), timeout=60_000)
    qtbot.waitUntil(lambda: isinstance(widget.parts[-1], Away), timeout=60_000)
    assert [(part.y(), part.height()) for part in widget.parts] == places


def test_what_is_out_of_sight_gets_new_colours_a_little_at_a_time(qtbot: QtBot, screen: ChatScreen) -> None:
    widget, theme = answer(screen), screen.app.theme
    assert len(widget.parts) == len(there(widget)) == 60
    theme.set_scheme("light")
    qtbot.waitUntil(lambda: not theme.restyling.is_running, timeout=60_000)
    before = {part.palette().text().color().name() for part in there(widget)}
    heights = [part.height() for part in widget.parts]
    theme.set_scheme("dark")
    last, first = there(widget)[-1], there(widget)[0]
    assert last.palette().text().color().name() == theme.css("text")
    assert first.palette().text().color().name() in before
    qtbot.waitUntil(lambda: not theme.restyling.is_running, timeout=60_000)
    assert {part.palette().text().color().name() for part in there(widget)} == {theme.css("text")}
    assert [part.height() for part in widget.parts] == heights


def test_few_widgets_meet_a_new_size(screen: ChatScreen) -> None:
    widget, theme = answer(screen), screen.app.theme
    met: list[int] = []
    theme.resized.connect(lambda: met.append(len(there(widget))))
    theme.set_zoom(120)
    assert met[0] < len(widget.parts) / 2
    for _ in range(500):  # and what was put aside is forgotten
        if not widget._aside:
            break
        QTest.qWait(10)
    assert not widget._aside
    assert is_thin(widget)
    assert any(not isinstance(part, Away) for part in widget.parts), "what is in sight stays"


def test_what_is_selected_is_kept(screen: ChatScreen) -> None:
    widget = answer(screen)
    first = there(widget)[0]
    assert isinstance(first, Prose)
    first.selectAll()
    widget.let_go(10_000, 10_001)
    assert widget.parts[0] is first


def test_after_a_zoom_nothing_overlaps(qtbot: QtBot, screen: ChatScreen) -> None:
    widget = answer(screen)
    before = widget.height()
    screen.app.theme.set_zoom(150)
    qtbot.waitUntil(lambda: widget.height() > before, timeout=60_000)
    qtbot.waitUntil(lambda: not any(isinstance(part, Away) and part.is_stale for part in widget.parts), timeout=60_000)
    qtbot.waitUntil(lambda: screen.transcript.is_settled, timeout=60_000)
    ends = [part.y() + part.height() for part in widget.parts]
    assert all(end <= part.y() for end, part in zip(ends, widget.parts[1:], strict=False))


def test_what_was_let_go_is_copied_and_found(screen: ChatScreen) -> None:
    widget = answer(screen)
    widget.copy_plain()
    whole = QGuiApplication.clipboard().text()
    widget.let_go(0, 100)
    assert any(isinstance(part, Away) for part in widget.parts)
    widget.copy_plain()
    assert QGuiApplication.clipboard().text() == whole
    widget.let_go(0, 100)
    assert widget.find_text("return x")
