"""Every screen as a PNG, light and dark, at 1280×800 and 880×560, and at 150 %.

    uv run python tests/bench/screenshots.py [--into docs/screenshots] [--only chat race]

The engine is scripted, so the pictures show the app, not a model's wit. Fonts: apt-get install fonts-noto-core
fonts-noto-mono.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import httpx  # noqa: E402
from PySide6.QtGui import QImage  # noqa: E402
from PySide6.QtTest import QTest  # noqa: E402
from PySide6.QtWidgets import QApplication, QWidget  # noqa: E402

from app.fake_run import WRITTEN, FakeRun, figure  # noqa: E402
from app.scripted_store import ScriptedStore  # noqa: E402
from fakes import INFO, FakeEngine, FakeTokeniser, Script  # noqa: E402
from slipstream.curves import Curves  # noqa: E402
from slipstream.engine.costs import Costs  # noqa: E402
from slipstream.engine.held import Held  # noqa: E402
from slipstream.jobs import Job  # noqa: E402
from slipstream.server.backend import Backend  # noqa: E402
from slipstream.store import machine, memory  # noqa: E402
from slipstream.types import Mode  # noqa: E402
from slipstream_app import strings  # noqa: E402
from slipstream_app.bridge.pair import PairChoice  # noqa: E402
from slipstream_app.bridge.server import ServerOn  # noqa: E402
from slipstream_app.bridge.session import Session  # noqa: E402
from slipstream_app.mac import Machine  # noqa: E402
from slipstream_app.main import make_context  # noqa: E402
from slipstream_app.models import chat_prompt  # noqa: E402
from slipstream_app.screens import onboarding  # noqa: E402
from slipstream_app.screens.models import ModelsScreen  # noqa: E402
from slipstream_app.settings import Settings  # noqa: E402
from slipstream_app.windows.shell import Shell  # noqa: E402

SIZES = {"wide": (1280, 800), "small": (880, 560)}
ANSWER = """Here is one way, with nothing but the standard library:

```python
def parse(head: bytes) -> tuple[str, str, dict[str, str]]:
    \"\"\"Method, path and headers of a request.\"\"\"
    first, *lines = head.decode("latin-1").split("\\r\\n")
    method, path, _ = first.split(" ", 2)
    headers = dict(line.split(": ", 1) for line in lines if line)
    return method, path, headers
```

It trusts its input. A real one should also:

1. refuse a head that is **too long**,
2. treat header names without regard to case,
3. answer `400` to what it cannot read.

| case | answer |
| --- | --- |
| no space in the first line | 400 |
| head over 64 kB | 431 |
"""
ACCEPTED = {"mlx-community/Qwen3.8-27B-4bit + z-lab/dflash": {"dflash": [12340, 8761, 1763]}}
WIDTH = 3  # characters a round when drafts are kept


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, default=ROOT / "docs" / "screenshots", help="(default: %(default)s)")
    parser.add_argument("--only", nargs="*", default=list(SCENES), choices=list(SCENES), help="some of the screens")
    args = parser.parse_args()
    args.into.mkdir(parents=True, exist_ok=True)
    application = QApplication([])
    strings.install(application, "en")
    chat_prompt._open = lambda _: FakeTokeniser()
    assert Backend.__init__.__kwdefaults__ is not None
    Backend.__init__.__kwdefaults__["open_tokeniser"] = lambda _: FakeTokeniser()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["HOME"] = name  # the agents' files and the models of this machine are nobody's business
        studio = Studio(folder)
        for scene in args.only:
            shown = SCENES[scene](studio)
            studio.take(scene, shown, args.into)
        studio.close()
    application.quit()
    return 0


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def script(job: Job) -> Script:
    """Speeds as a large Mac's: plain decoding makes one token a round, a drafter more; here a character is a token."""
    mode = job.request.options.mode
    width = {Mode.BASELINE: 1, Mode.LOOKUP: 1, Mode.DFLASH: 2}.get(mode, WIDTH)
    text = ANSWER[: job.request.options.max_tokens]
    return Script(pieces=tuple(text[at : at + width] for at in range(0, len(text), width)), round_s=0.04)


BENT = {1: 62.0, 2: 63.0, 3: 63.5, 5: 65.0, 7: 68.0, 9: 84.0, 12: 106.0, 17: 143.0}  # rows -> milliseconds


@dataclass
class Counted:
    """As the engine counts its memory."""

    now: Held = field(default_factory=lambda: Held(*(round(gb * 1e9) for gb in (15.4, 1.7, 0.9, 19.1, 16.0))))


@dataclass
class Measured(FakeEngine):
    """Knows what its passes cost, as after a calibration."""

    costs: Costs = field(
        default_factory=lambda: Costs(
            frozenset(("lookup",)),
            Curves({512: BENT}, {"dspark": {512: {1: 6.0, 4: 8.0, 7: 9.0, 16: 13.0}}, "dflash": {512: {7: 7.0}}}),
            {"dspark": 5},
        )
    )
    ledger: Counted = field(default_factory=Counted)


class Studio:
    """The whole app with something in it."""

    def __init__(self, folder: Path) -> None:
        info = replace(INFO, name="Qwen3.8 27B 4-bit", context=32768, quantisation="4-bit group 64", dtype="bfloat16")
        info = replace(info, drafters=(Mode.DSPARK, Mode.DFLASH))
        self.session = Session(lambda *_: Measured(script, info))
        context = make_context(self.session, Settings(folder / "settings.ini"), folder)
        context.settings.set("server/port", free_port())
        context.settings.remember("recent_pairs", "[]")
        context.settings.remember("accepted", json.dumps(ACCEPTED))
        self.shell = Shell(context, folder / "slipstream.log")
        self.app, self.window = context, self.shell.window
        self.window.show()
        self.window.resize(1280, 800)
        self.session.load(PairChoice("Qwen3.8 27B 4-bit + DSpark", "/models/qwen"))
        self.wait(lambda: self.session.info is not None)

    def wait(self, condition: Callable[[], object], seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "it did not happen"
            QTest.qWait(20)

    def take(self, name: str, shown: QWidget, into: Path) -> None:
        is_window = shown is self.window
        for scheme in ("light", "dark"):
            self.app.settings.set("appearance/scheme", scheme)
            for size, (width, height) in SIZES.items() if is_window else {"": (0, 0)}.items():
                if is_window:
                    self.window.resize(width, height)
                self.save(shown, into / "-".join(part for part in (name, scheme, size) if part))
        self.app.settings.set("appearance/scheme", "light")
        if is_window:
            self.app.settings.set("appearance/zoom", 150)
            self.window.resize(1280, 800)
            self.save(shown, into / f"{name}-light-zoom150")
            self.app.settings.set("appearance/zoom", 100)

    @staticmethod
    def save(widget: QWidget, file: Path) -> None:
        QTest.qWait(400)
        image = widget.grab().toImage().convertToFormat(QImage.Format.Format_RGB888)
        image.save(str(file.with_suffix(".png")), "PNG", 0)  # type: ignore[call-overload]  # 0: smallest

    def close(self) -> None:
        self.shell.quit()
        self.session.stop()
        self.app.history.close()
        self.app.speeds.close()


def _welcome(studio: Studio) -> QWidget:
    """On a Mac with nothing on its disk."""
    limit = memory.Limit(36 * 10**9, "GPU working set", 48 * 10**9, True, packs_drafters=True)
    memory.limit = lambda: limit
    mac_ = Machine("Apple M4 Pro", 48 * 10**9, 36 * 10**9, "macOS 26.1", 212 * 10**9)
    setattr(onboarding, "machine", lambda _: mac_)  # noqa: B010 - it is the name that the screen calls
    studio.window.go("onboarding")
    screen: Any = studio.window.screen_now
    studio.wait(screen.looking.isHidden)
    screen.ready.run_test()
    studio.wait(lambda: screen.ready.test is None)
    return studio.window


def _chat(studio: Studio) -> QWidget:
    history = studio.app.history
    for title in ("Trip to Bergen", "Regular expression for dates", "Why is the sky blue?"):
        chat = history.create_chat(title)
        history.add(chat, None, "user", title)
    studio.app.settings.set("chat/max_tokens", 4096)
    studio.window.go("chat")
    chat_screen: Any = studio.window.screen_now
    chat_screen.new_chat()
    chat_screen.composer.set_text("Write a tiny HTTP parser")
    studio.wait(chat_screen.composer.send.isEnabled)
    chat_screen.submit()
    studio.wait(lambda: studio.app.telemetry.points)
    studio.wait(lambda: chat_screen.chats.reply is None)
    return studio.window


def _at_chat(studio: Studio) -> Any:
    """With a chat open. Any: a ChatScreen, as each screen here."""
    if studio.window.place != "chat":
        _chat(studio)
    return studio.window.screen_now


def _drawer(studio: Studio) -> QWidget:
    """The parameters beside the chat."""
    screen = _at_chat(studio)
    if not screen.drawers.has_parameters:
        screen.drawers.toggle_parameters()
    return studio.window


def _empty(studio: Studio) -> QWidget:
    """A new chat."""
    screen = _at_chat(studio)
    if screen.drawers.has_parameters:
        screen.drawers.toggle_parameters()
    screen.new_chat()
    return studio.window


def _models(studio: Studio) -> QWidget:
    """With pairs of every kind, whatever lies on this machine."""
    assert ModelsScreen.__init__.__kwdefaults__ is not None
    ModelsScreen.__init__.__kwdefaults__["open_"] = ScriptedStore
    studio.window.go("models")
    page: Any = studio.window.screen_now
    studio.wait(lambda: page.table.rowCount() > 1 and page.table.fit_of(page.table.everything[0]) is not None)
    page.pairs.view.selectRow(1)
    page.pairs.view.setFocus()
    return studio.window


def _offer(studio: Studio) -> QWidget:
    """Before a drafter is made: what it would take."""
    from slipstream.train.planning import Machine, Size, estimate
    from slipstream_app.models.training import Wanted
    from slipstream_app.models.training_forecast import Forecast

    size = Size(27e9, 27e9, 64, 5120, 151_936, 4.5)
    machine = Machine(220e9, 8e12, 40)
    studio.window.go("models", "training")
    page: Any = studio.window.screen_now
    page.training.propose(
        Wanted("Qwen3.8 27B 4-bit", "/models/qwen", 8192),
        lambda count: Forecast(
            estimate(size, machine, conversations=count),
            is_measured=False,
            needed=54 * 10**9,
            held=18 * 10**9,
            limit=96 * 10**9,
        ),
    )
    studio.wait(page.training.offer.start.isEnabled)
    return studio.window


def _training(studio: Studio) -> QWidget:
    """Half way through."""
    from slipstream_app.models.training import Wanted

    runs: list[FakeRun] = []

    def start(arguments: Sequence[str], log: Path) -> FakeRun:
        runs.append(FakeRun(arguments, log))
        return runs[-1]

    trainings = studio.app.trainings
    trainings._start_run = start
    studio.window.go("models", "training")
    page: Any = studio.window.screen_now
    page.training.withdraw()
    training = trainings.open(Wanted("Qwen3.8 27B 4-bit", "/models/qwen", 8192))
    training.start()
    for shard in range(64):
        runs[0].say(WRITTEN | {"shard": shard, "shards": 64, "tokens": 28_400})
    for step in range(10, 620, 10):
        fade = math.exp(-step / 150)
        shares = [max(0.03, 0.86 - 0.09 * place - (0.5 - 0.03 * place) * fade) for place in range(7)]
        runs[0].say(figure(step, step / 1000, 0.55 + 2.1 * fade + 0.03 * math.sin(step), shares))
    training.look()
    card = page.training.cards[training.key]
    studio.wait(lambda: card.losses.plot is not None and card.positions.plot is not None)
    return studio.window


def _telemetry(studio: Studio) -> QWidget:
    if studio.app.trainings.all:
        studio.app.trainings.drop(studio.app.trainings.all[0])
    studio.window.go("telemetry")
    screen: Any = studio.window.screen_now
    studio.wait(lambda: screen.chart.plot is not None)
    studio.window.go("chat")
    chat: Any = studio.window.screen_now
    before = list(studio.app.telemetry.points)[-1:]  # a chat's, where one was asked
    chat.composer.set_text("And a test for it")
    studio.wait(chat.composer.send.isEnabled)
    chat.submit()
    studio.wait(lambda: list(studio.app.telemetry.points)[-1:] != before and chat.chats.reply is None)
    QTest.qWait(1000)
    studio.app.settings.set("general/detail", "expert")
    studio.window.go("telemetry")
    return studio.window


def _history(studio: Studio) -> QWidget:
    """Its last page."""
    studio.app.settings.set("general/detail", "standard")
    screen = _at_server(studio)
    screen.sections.choose(2)
    return studio.window


def _race(studio: Studio) -> QWidget:
    machine.busy = lambda: None  # a picture is no measurement
    studio.window.go("race")
    race: Any = studio.window.screen_now
    race.setup.tokens.setValue(200)
    race.setup.trials.setValue(2)
    studio.wait(race.setup.start.isEnabled)
    race.toggle()
    studio.wait(lambda: race.result is not None and not race.runner.is_running, 120)
    QTest.qWait(500)
    return studio.window


def _server(studio: Studio) -> QWidget:
    studio.shell.switch.start()
    studio.wait(lambda: isinstance(studio.app.server.state, ServerOn))
    state = studio.app.server.state
    assert isinstance(state, ServerOn)
    studio.window.go("server")
    body = {"model": "x", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 64}
    for agent in ("claude-cli/2.1", "pi/0.9", "openai-python/3.57"):
        ask = threading.Thread(
            target=httpx.post,
            args=(f"{state.url}/v1/chat/completions",),
            kwargs={"json": body, "headers": {"user-agent": agent}, "timeout": 60},
        )
        ask.start()
        studio.wait(lambda thread=ask: not thread.is_alive())
    QTest.qWait(1000)
    return studio.window


def _at_server(studio: Studio) -> Any:
    """With some requests answered. Any: a ServerScreen, which is imported at its first visit."""
    if not isinstance(studio.app.server.state, ServerOn):
        _server(studio)
    studio.window.go("server")
    return studio.window.screen_now


def _requests(studio: Studio) -> QWidget:
    """One of them chosen."""
    screen = _at_server(studio)
    screen.sections.choose(1)
    screen.requests.view.selectRow(0)
    return studio.window


def _options(studio: Studio) -> QWidget:
    screen = _at_server(studio)
    screen.sections.choose(2)
    return studio.window


def _settings(studio: Studio) -> QWidget:
    studio.shell.open_settings("appearance")
    window = studio.shell._settings_window
    assert window is not None
    return window


def _palette(studio: Studio) -> QWidget:
    studio.shell.palette.open_over(studio.window)
    studio.shell.palette.found.search.setText("s")
    return studio.shell.palette


def _recovery(studio: Studio) -> QWidget:
    from slipstream.errors import EngineFaulted

    studio.shell.palette.hide()
    studio.window.go("chat")
    error = EngineFaulted("the model failed (RuntimeError: [malloc] Unable to allocate 9 bytes); reload it")
    studio.window.recovery.show_fault(error, is_safe=False)
    return studio.window


SCENES: dict[str, Callable[[Studio], QWidget]] = {
    "welcome": _welcome,
    "chat": _chat,
    "parameters": _drawer,
    "empty": _empty,
    "models": _models,
    "offer": _offer,
    "training": _training,
    "telemetry": _telemetry,
    "history": _history,
    "race": _race,
    "server": _server,
    "requests": _requests,
    "options": _options,
    "settings": _settings,
    "palette": _palette,
    "recovery": _recovery,
}

if __name__ == "__main__":
    sys.exit(main())
