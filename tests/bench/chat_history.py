"""Many chats: how long the window's thread is busy when they are listed, opened and searched.

    uv run python tests/bench/chat_history.py [--chats 1000] [--messages 200]

Each figure is the longest single event of the window, in milliseconds of its thread's own time (the clock's beside it:
on a machine that does other work too, it counts the others' time). The goal is 100 ms.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QEvent, QObject
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from slipstream_app.bridge.session import Session
from slipstream_app.history import History, open_history
from slipstream_app.main import make_context
from slipstream_app.settings import Settings

if TYPE_CHECKING:  # it is part of what is measured
    from slipstream_app.screens.base import AppContext
    from slipstream_app.screens.chat import ChatScreen

LIMIT_MS = 100
WORDS = [f"word{number}" for number in range(4000)] + ["the", "and", "parser", "cache"] * 300


class Timed(QApplication):
    """Notes the longest event since the last look."""

    def __init__(self) -> None:
        super().__init__([])
        self.depth = 0
        self.worst = (0.0, 0.0)  # thread time, clock

    def notify(self, receiver: QObject, event: QEvent) -> bool:
        self.depth += 1
        began, thread_began = time.perf_counter(), time.thread_time()
        try:
            return super().notify(receiver, event)
        finally:
            self.depth -= 1
            if self.depth == 0:
                self.add(time.thread_time() - thread_began, time.perf_counter() - began)

    def add(self, thread_s: float, clock_s: float) -> None:
        self.worst = max(self.worst, (1000 * thread_s, 1000 * clock_s))

    def direct(self, work: Callable[[], object]) -> None:
        """Do what an event would do."""
        began, thread_began = time.perf_counter(), time.thread_time()
        work()
        self.add(time.thread_time() - thread_began, time.perf_counter() - began)


def fill(history: History, chats: int, messages: int) -> None:
    chance = random.Random(1)
    with history._transaction():
        for number in range(chats):
            chat, parent = history.create_chat(f"Chat {number} about {chance.choice(WORDS)}"), None
            for at in range(messages):
                text = " ".join(chance.choices(WORDS, k=chance.randint(5, 90)))
                if at % 2 and not at % 5:
                    text += "\n\n```python\nx = 1\n```\n\n- a\n- b"
                parent = history.add(chat, parent, "assistant" if at % 2 else "user", text).id


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chats", type=int, default=1000)
    parser.add_argument("--messages", type=int, default=200)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        return measure(Path(name), args.chats, args.messages)


def measure(folder: Path, chats: int, messages: int) -> int:
    began = time.monotonic()
    history = open_history(folder / "chats.db")
    fill(history, chats, messages)
    history.close()
    size_mb = (folder / "chats.db").stat().st_size / 2**20
    print(f"{chats} chats of {messages} messages: {size_mb:.0f} MB, written in {time.monotonic() - began:.0f} s")
    app = Timed()
    session = Session()
    is_over = False

    def look(what: str) -> None:
        nonlocal is_over
        QTest.qWait(600)
        thread_ms, clock_ms = app.worst
        is_over |= thread_ms > LIMIT_MS
        print(f"  {what:42} {thread_ms:7.1f} ms   (clock {clock_ms:.1f})" + ("  OVER" if thread_ms > LIMIT_MS else ""))
        app.worst = (0.0, 0.0)

    warm(session, folder / "empty")
    gc.freeze()  # as main.run does
    app.worst = (0.0, 0.0)

    def context() -> None:
        made.append(make_context(session, Settings(folder / "settings.ini"), folder))

    made: list[AppContext] = []
    app.direct(context)
    look("open the database")
    from slipstream_app.screens.chat import ChatScreen

    (given,) = made
    screens: list[ChatScreen] = []
    app.direct(lambda: screens.append(ChatScreen(given)))
    (screen,) = screens
    screen.resize(1100, 800)
    app.direct(screen.show)
    look("show the screen with the list")
    rows = given.history.chats()
    for at in (0, len(rows) // 2, len(rows) - 1):
        app.direct(lambda at=at: screen.open_chat(rows[at].id))
        look(f"open chat {at + 1} of {len(rows)}")
    bar = screen.transcript.verticalScrollBar()
    for step in range(30):
        app.direct(lambda step=step: bar.setValue(bar.maximum() * (30 - step) // 30))
        QTest.qWait(40)
    look("scroll through it")
    search(app, screen, given, look)
    screen.closing()
    session.stop()
    given.history.close()
    return int(is_over)


def warm(session: Session, folder: Path) -> None:
    """The first screen of a process, without a chat: fonts, style, imports. That is the app's start, measured by
    app_budgets.py."""
    from slipstream_app.screens.chat import ChatScreen

    folder.mkdir()
    given = make_context(session, Settings(folder / "settings.ini"), folder)
    screen = ChatScreen(given)
    screen.show()
    QTest.qWait(600)
    screen.closing()
    screen.deleteLater()
    given.history.close()
    given.speeds.close()
    QTest.qWait(100)


def search(app: Timed, screen: ChatScreen, given: AppContext, look: Callable[[str], None]) -> None:
    rows = given.history.chats()
    for words in ("the", "th", "parser cache", "word17 word", "nothing-of-the-kind", "chat 7"):
        app.direct(lambda words=words: screen.list.search.setText(words))
        look(f"search for {words!r}")
    hits = given.history.search("parser")
    app.direct(lambda: screen.open_chat(hits[-1].chat, hits[-1].message))
    look("open what was found")
    screen.list.search.clear()
    look("back to the list")
    app.direct(lambda: screen.chats.delete(rows[1].id))
    look("delete a chat")
    app.direct(screen.chats._trash.settle)
    look("delete it for good")


if __name__ == "__main__":
    raise SystemExit(main())
