"""The whole app in a process of its own, to be killed at a moment: says on stdout when it has come, and how it looks.

As a script: MOMENT [real]. MOMENT: "loading" (a pair is being loaded), "writing" (an answer has begun), "look" (nothing
is asked). With "real" the engine is the built-in pair, else a scripted one that loads in `LOADS_S` and writes slowly.
"""

from __future__ import annotations

import json
import os
import sys
import time

from PySide6.QtCore import QTimer

from fakes import FakeEngine, FakeTokeniser, Script
from slipstream.events import Report
from slipstream_app import main as app
from slipstream_app.bridge.pair import PairChoice
from slipstream_app.bridge.session import Session
from slipstream_app.models import chat_prompt
from slipstream_app.screens.chat import ChatScreen
from slipstream_app.widgets.message import MessageWidget
from slipstream_app.windows.shell import Shell

LOADS_S = 0.3
PATIENCE_S = 200.0  # for the moment to come
MOMENT, IS_REAL = sys.argv[1], sys.argv[2:] == ["real"]
PIECES = ("Once", " upon", " a", " time.\n\n") * 50
QUESTION = "Tell me a long story about a lighthouse"


def open_slowly(_: PairChoice, _report: Report) -> FakeEngine:
    time.sleep(3600 if MOMENT == "loading" else LOADS_S)
    return FakeEngine(Script(pieces=PIECES, round_s=0.05))


def say(word: str, **facts: object) -> None:
    sys.stdout.write(json.dumps({"moment": word, **facts}) + "\n")
    sys.stdout.flush()


class Watcher:
    """Looks every few milliseconds whether the moment has come, and says so once."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.began = time.monotonic()
        self.is_asked = False
        self.timer = QTimer()
        self.timer.timeout.connect(self.look)
        self.timer.start(10)

    def look(self) -> None:
        if time.monotonic() - self.began > PATIENCE_S:
            os._exit(1)
        session, screen = self.shell.app.session, self.shell.window.screen_now
        if not isinstance(screen, ChatScreen):
            return
        match MOMENT:
            case "loading" if session.choice is not None:
                self.tell(screen)
            case "writing" if session.info is not None and not self.is_asked:
                if not screen.composer.text:
                    screen.composer.set_text(QUESTION)
                self.is_asked = screen.composer.can_submit
                if self.is_asked:
                    screen.submit()
            case "writing" if screen.chats.reply is not None and len(screen.chats.reply.text) > 20:
                self.tell(screen)
            case "look" if time.monotonic() - self.began > LOADS_S and screen.transcript.is_settled:
                if session.choice is None or session.info is not None:  # else this is a death while loading
                    self.tell(screen)
            case _:
                pass

    def tell(self, screen: ChatScreen) -> None:
        self.timer.stop()
        choice, banner = self.shell.app.session.choice, self.shell.app.banners.current
        states: list[str] = []
        for message in screen.chats.path:
            widget = screen.transcript.widget_of(message.id)
            if isinstance(widget, MessageWidget) and widget._has("state_line"):
                states.append(widget.state_line.words.text())
        say(
            MOMENT,
            choice=None if choice is None else choice.title,
            banner=None if banner is None else banner.text,
            chat=screen.chats.title,
            texts=[message.text for message in screen.chats.path],
            states=states,
        )


def main() -> None:
    if not IS_REAL:
        setattr(app, "Session", lambda: Session(open_slowly))  # noqa: B010 - the checker would rather it were exported
        chat_prompt._open = lambda _: FakeTokeniser()
    opened, kept = Shell.open, list[Watcher]()

    def open_(shell: Shell, *, is_hidden: bool = False) -> None:
        shell.app.settings.remember("welcomed", 1)
        shell.app.settings.set("chat/max_tokens", 400)
        opened(shell, is_hidden=is_hidden)
        kept.append(Watcher(shell))

    setattr(Shell, "open", open_)  # noqa: B010 - the checker would rather it had the same words
    app.run()


if __name__ == "__main__":
    main()
