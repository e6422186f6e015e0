"""A scripted session that is killed at any moment: says on stdout what it had finished, before it goes on.

As a script: FOLDER SEED. Lines: "done MESSAGE LENGTH" once a message was saved as whole; "came MESSAGE LENGTH TIME" for
the text that a running one has, with the monotonic clock.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QTimer

from slipstream.events import Delta, Done, Finish, Timings
from slipstream.prompt.output import OutputStyle
from slipstream.types import Options
from slipstream_app.history import open_history
from slipstream_app.messages import State
from slipstream_app.models.chat_prompt import Prepared
from slipstream_app.models.chat_reply import Reply

WORDS = ("alpha ", "beta ", "gamma\n\n", "delta ", "```python\n", "x = 1\n", "```\n", "- item\n")


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def main(folder: Path, seed: int) -> None:
    app = QCoreApplication([])
    chance = random.Random(seed)
    history = open_history(folder / "chats.db")
    say("problem", history.problem)
    chat = history.create_chat(f"chat {seed}")
    state: dict[str, int | None] = {"parent": None}
    timer = QTimer()
    replies: list[Reply] = []

    def begin() -> None:
        asked = history.add(chat, state["parent"], "user", f"question {chance.random()}")
        say("done", asked.id, len(asked.text))
        message = history.add(chat, asked.id, "assistant", state=State.RUNNING)
        state["parent"] = message.id
        reply = Reply(history, message, {})
        reply.begin(Prepared((1,), Options(), OutputStyle(), (), False))
        replies[:] = [reply]

    def write() -> None:
        reply = replies[0]
        if chance.random() < 0.02:
            now = time.monotonic()
            reply.hear(Done(Finish.STOP, Timings(now, now, now, now, 1, 0, 1, 1), (1,)))
            say("done", reply.message.id, len(reply.text))
            begin()
            return
        text = "".join(chance.choices(WORDS, k=chance.randint(1, 4)))
        reply.hear(Delta(text, (1,)))
        say("came", reply.message.id, len(reply.text), time.monotonic())

    begin()
    timer.timeout.connect(write)
    timer.start(7)
    app.exec()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
