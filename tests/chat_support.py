"""A chat on scripted answers: the real session and its thread, the real inbox, a real database."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pytestqt.qtbot import QtBot

from fakes import FakeEngine, FakeTokeniser, Script
from slipstream.jobs import Job
from slipstream_app.bridge.pair import PairChoice
from slipstream_app.bridge.session import Session
from slipstream_app.history import History, open_history
from slipstream_app.models.chat import Chats
from slipstream_app.models.chat_prompt import Prompter

PAIR = PairChoice("a scripted pair")


@dataclass
class Desk:
    """Everything under the Chat screen."""

    qtbot: QtBot
    session: Session
    history: History
    prompter: Prompter
    chats: Chats
    engine: FakeEngine
    tokeniser: FakeTokeniser = field(default_factory=FakeTokeniser)

    def wait(self, condition: Callable[[], bool]) -> None:
        self.qtbot.waitUntil(condition, timeout=5000)

    def wait_for_answer(self) -> str:
        """The text of the answer that is being written, once it has ended."""
        self.wait(lambda: self.chats.reply is None)
        return self.chats.path[-1].text

    def prompts(self) -> list[str]:
        """What the engine was given, in order."""
        return [FakeTokeniser.text_of(job) for job in self.engine.jobs]


@contextmanager
def desk(
    qtbot: QtBot, folder: Path, script: Script | Callable[[Job], Script], tokeniser: FakeTokeniser | None = None
) -> Generator[Desk]:
    spoken = tokeniser or FakeTokeniser()
    engine = FakeEngine(script)
    session = Session(lambda *_: engine)
    history = open_history(folder / "chats.db")
    prompter = Prompter(lambda _: spoken)
    chats = Chats(session, history, prompter)
    made = Desk(qtbot, session, history, prompter, chats, engine, spoken)
    session.load(PAIR)
    made.wait(lambda: session.info is not None)
    try:
        yield made
    finally:
        engine.released.set()
        chats.stop_all()
        session.stop()
        prompter.close()
        history.close()
