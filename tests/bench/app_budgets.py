"""The app's budgets, each measured in a process of its own: start, memory, idle CPU, the window's thread, a clean end.

    uv run python tests/bench/app_budgets.py [start memory idle stream theme zoom]

On a machine that does other work too, read the CPU columns: they do not count the time of others.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
LIMITS = {
    "start": {"window_cpu_s": 1.5, "window_s": 1.5},
    "memory": {"resident_mb": 160.0},
    "idle": {"percent_of_a_core": 0.3},
    "stream": {"event_p99_cpu_ms": 16.0, "event_p99_ms": 16.0},
    "theme": {"change_cpu_ms": 100.0, "change_whole_cpu_ms": 100.0, "event_worst_cpu_ms": 100.0},
    "zoom": {"change_cpu_ms": 100.0, "event_worst_cpu_ms": 100.0},
}
IDLE_S = 15.0
STREAM_S = 20.0
CHAT_CHARACTERS = 100_000
ROUND_S = 0.02  # with some 12 characters each: the text of 150 tokens a second


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=[*LIMITS, []], help="which to measure (default: all)")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; the best counts (default: %(default)s)")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(CHILDREN[args.child]()))
        return 0
    is_over = False
    for what in args.what or LIMITS:
        runs = [_run(what) for _ in range(args.repeat if what == "start" else 1)]
        best = min(runs, key=lambda run: run.get("window_cpu_s", 0.0))
        print(f"{what}:")
        for name, value in best.items():
            limit = LIMITS[what].get(name)
            mark = "" if limit is None else f"   limit {limit}" + ("   OVER" if value > limit else "")
            print(f"  {name:24} {value}{mark}")
            # The clock counts other programs' time too, so it is shown and does not decide.
            is_over |= limit is not None and value > limit and name not in ("window_s", "event_p99_ms")
        if best["qt_warnings"] or best["threads_left"]:
            is_over = True
    return is_over


def _run(what: str) -> dict[str, Any]:
    """In a home of its own. Any: what JSON holds."""
    with tempfile.TemporaryDirectory() as home:
        environment = {
            **os.environ,
            "HOME": home,
            "XDG_CONFIG_HOME": f"{home}/config",
            "XDG_DATA_HOME": f"{home}/data",
            "QT_QPA_PLATFORM": os.environ.get("QT_QPA_PLATFORM", "offscreen"),
            "PYTHONPATH": str(TESTS),
            "SPAWNED_AT": repr(time.monotonic()),
        }
        done = subprocess.run(
            [sys.executable, __file__, "--child", what], env=environment, capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


# In the child.


def _start() -> dict[str, Any]:
    """The app as a person starts it, with the built-in pair, until its window is painted."""
    from PySide6.QtCore import QEvent, QObject, QTimer

    from slipstream.events import Faulted, Ready
    from slipstream_app import main as app
    from slipstream_app.windows.main_window import MainWindow
    from slipstream_app.windows.shell import Shell

    found: dict[str, Any] = {}

    class Painted(QObject):
        def eventFilter(self, watched: QObject, event: QEvent) -> bool:
            if isinstance(watched, MainWindow) and event.type() is QEvent.Type.Paint and not found:
                found["window_s"] = round(time.monotonic() - float(os.environ["SPAWNED_AT"]), 3)
                found["window_cpu_s"] = round(time.process_time(), 3)
                found["imported_before"] = [
                    name for name in ("mlx.core", "transformers", "pyqtgraph") if name in sys.modules
                ]
            return False

    seen: list[Painted] = []
    timer = QTimer()
    opened = Shell.open

    def open_(shell: Shell, *, is_hidden: bool = False) -> None:
        seen.append(Painted())
        shell.window.installEventFilter(seen[0])
        opened(shell, is_hidden=is_hidden)
        timer.timeout.connect(lambda: shell.quit() if isinstance(shell.app.session.status, Ready | Faulted) else None)
        timer.start(500)

    setattr(Shell, "open", open_)  # noqa: B010 - the checker would rather it had the same words
    app.run()
    return found | _left()


def _memory() -> dict[str, Any]:
    from PySide6.QtTest import QTest

    shell = _open(is_loaded=False)
    for place in ("chat", "models", "server"):
        shell.window.go(place)
        QTest.qWait(300)
    shell.window.go("chat")
    QTest.qWait(1000)
    status = Path("/proc/self/status").read_text()
    resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    return {"resident_mb": round(resident / 1024, 1)} | _close(shell)


def _idle() -> dict[str, Any]:
    """The window hidden, a model loaded, the server on."""
    from PySide6.QtTest import QTest

    shell = _open(is_loaded=True)
    shell.switch.start()
    for place in ("telemetry", "race", "server", "models", "chat"):
        shell.window.go(place)
        QTest.qWait(300)
    shell.window.hide()
    QTest.qWait(3000)
    # Not QTest.qWait: it wakes up itself. The application's own loop.
    from PySide6.QtCore import QCoreApplication, QTimer

    application = QCoreApplication.instance()
    assert application is not None
    shares: list[float] = []
    for _ in range(3):  # imports that the screens began go on for a while; the last word is the calmest stretch
        QTimer.singleShot(int(IDLE_S * 1000), application.quit)
        before = time.process_time()
        application.exec()
        shares.append(100 * (time.process_time() - before) / IDLE_S)
    return {"percent_of_a_core": round(min(shares), 3), "stretches": [round(share, 2) for share in shares]} | _close(
        shell
    )


def _stream() -> dict[str, Any]:
    """A chat of 100,000 characters into which 150 tokens a second are written."""
    from PySide6.QtTest import QTest

    from fakes import FakeTokeniser
    from slipstream_app.models import chat_prompt

    chat_prompt._open = lambda _: FakeTokeniser()
    application = _timed()
    pieces = [("```python\n" if n % 200 == 50 else "```\n\n" if n % 200 == 90 else "some words ") for n in range(3000)]
    shell = _open(is_loaded=True, pieces=tuple(pieces), round_s=ROUND_S)
    shell.app.settings.set("chat/max_tokens", 100_000)  # to the scripted engine a character is a token
    history = shell.app.history
    chat = history.create_chat("A long chat")
    paragraph = "A paragraph with **bold** words, `code` and a [link](https://example.com). " * 8 + "\n\n"
    code = "```python\n" + "def f(x):\n    return x * 2\n" * 10 + "```\n\n"
    parent = None
    while sum(len(message.text) for message in history.messages(chat)) < CHAT_CHARACTERS:
        parent = history.add(chat, parent, "user", "Tell me more.").id
        parent = history.add(chat, parent, "assistant", (paragraph * 4 + code) * 2).id
    history.set_leaf(chat, parent)
    shell.window.resize(1280, 800)
    shell.window.go("chat")
    screen = shell.window.screen_now
    assert screen is not None
    screen.open_chat(chat)
    QTest.qWait(2000)
    screen.composer.set_text("Go on")
    screen.submit()
    for _ in range(100):
        if shell.app.telemetry.points:
            break
        QTest.qWait(100)
    assert shell.app.telemetry.points, "the message was not answered"
    QTest.qWait(1000)
    application.took.clear()
    QTest.qWait(int(STREAM_S * 1000))
    wall = sorted(1000 * wall for wall, _ in application.took)
    cpu = sorted(1000 * cpu for _, cpu in application.took)
    at = int(0.99 * len(wall))
    return {
        "events": len(wall),
        "event_p99_ms": round(wall[at], 2),
        "event_p99_cpu_ms": round(cpu[at], 2),
        "event_worst_cpu_ms": round(cpu[-1], 2),
        "cpu_share_of_a_core": round(sum(cpu) / 1000 / STREAM_S, 3),
    } | _close(shell)


def _theme() -> dict[str, Any]:
    """Light to dark and back."""
    return _changes(lambda shell: shell.app.theme.set_scheme, "dark", "light")


def _zoom() -> dict[str, Any]:
    """A step larger and back."""
    return _changes(lambda shell: shell.app.theme.set_zoom, 110, 100)


def _changes(change_of: Callable[[Any], Callable[[Any], None]], first: object, second: object) -> dict[str, Any]:
    """Another look with an answer of 200,000 characters open, every screen visited before. Any: a Shell."""
    from PySide6.QtTest import QTest
    from PySide6.QtWidgets import QApplication

    from fakes import FakeTokeniser
    from slipstream_app.models import chat_prompt

    chat_prompt._open = lambda _: FakeTokeniser()
    application = _timed()
    shell = _open(is_loaded=True)
    history = shell.app.history
    chat = history.create_chat("A long answer")
    paragraph = "A paragraph with **bold** words, `code` and a [link](https://example.com). " * 8 + "\n\n"
    code = "```python\n" + "def f(x):\n    return x * 2\n" * 10 + "```\n\n"
    question = history.add(chat, None, "user", "Tell me all.").id
    text = (paragraph * 4 + code) * (200_000 // len(paragraph * 4 + code) + 1)
    history.set_leaf(chat, history.add(chat, question, "assistant", text).id)
    shell.window.resize(1280, 800)
    for place in ("models", "telemetry", "race", "server", "onboarding", "chat"):
        shell.window.go(place)
        QTest.qWait(1500)
    screen = shell.window.screen_now
    screen.open_chat(chat)
    QTest.qWait(500)
    while not screen.transcript.is_settled:
        QTest.qWait(20)
    found: dict[str, Any] = {}
    application.took.clear()
    # Whole, as it is within a second after the end; then in calm, when what is far from the view was let go.
    for look, name in ((first, "_whole"), (second, "")):
        found[f"widgets{name}"] = len(QApplication.allWidgets())
        began = time.thread_time()
        change_of(shell)(look)
        found[f"change{name}_cpu_ms"] = round(1000 * (time.thread_time() - began), 1)
        for _ in range(100):
            QTest.qWait(200)
            if not shell.app.theme.restyling.is_running:
                break
        found[f"all_followed{name}_cpu_s"] = round(time.thread_time() - began, 2)
        QTest.qWait(4000)
    assert not shell.app.theme.restyling.is_running
    found["event_worst_cpu_ms"] = round(1000 * max(cpu for _, cpu in application.took), 1)
    return found | _close(shell)


def _timed() -> Any:
    """An application that notes how long each event took, on the clock and on the thread's own. Any: Qt comes late."""
    from PySide6.QtCore import QEvent, QObject
    from PySide6.QtWidgets import QApplication

    class Timed(QApplication):
        def __init__(self) -> None:
            super().__init__([])
            self.took: list[tuple[float, float]] = []
            self.depth = 0

        def notify(self, receiver: QObject, event: QEvent) -> bool:
            if self.depth:
                return super().notify(receiver, event)
            self.depth = 1
            began, thread_began = time.perf_counter(), time.thread_time()
            try:
                return super().notify(receiver, event)
            finally:
                self.depth = 0
                self.took.append((time.perf_counter() - began, time.thread_time() - thread_began))

    return Timed()


def _open(*, is_loaded: bool, pieces: tuple[str, ...] = ("Hello",), round_s: float = 0.0) -> Any:
    """The whole app on a scripted engine. Any: a Shell, which must not be imported before it is time."""
    from PySide6.QtTest import QTest
    from PySide6.QtWidgets import QApplication

    from fakes import INFO, FakeEngine, Script
    from slipstream.store.paths import data_dir
    from slipstream_app import log
    from slipstream_app.bridge.pair import PairChoice
    from slipstream_app.bridge.session import Session
    from slipstream_app.main import make_context
    from slipstream_app.settings import Settings
    from slipstream_app.windows.shell import Shell

    info = replace(INFO, context=1_000_000)
    application = QApplication.instance() or QApplication([])
    file = log.start(data_dir() / "logs")
    settings = Settings(data_dir() / "settings.ini")
    session = Session(lambda *_: FakeEngine(Script(pieces=pieces, round_s=round_s), info))
    shell = Shell(make_context(session, settings, data_dir()), file)
    _KEPT.append(application)
    shell.window.show()
    shell.window.go("chat")
    if is_loaded:
        session.load(PairChoice("a scripted model", "/nowhere"))
    QTest.qWait(500)
    return shell


def _close(shell: Any) -> dict[str, Any]:
    shell.quit()
    began = time.monotonic()
    assert shell.app.session.stop()
    took = time.monotonic() - began
    shell.app.history.close()
    shell.app.speeds.close()
    return {"quit_s": round(took, 2)} | _left()


def _left() -> dict[str, Any]:
    from slipstream_app import log

    noise = "This plugin does not support"  # of the offscreen platform
    warnings = [line for line in log.ring.lines(30) if " qt: " in line and noise not in line]
    # A QThread that once logged stays in Python's list as a dummy.
    alive = [
        thread.name for thread in threading.enumerate() if type(thread).__name__ not in ("_MainThread", "_DummyThread")
    ]
    return {"qt_warnings": warnings, "threads_left": alive}


_KEPT: list[object] = []  # alive as long as the process

CHILDREN = {"start": _start, "memory": _memory, "idle": _idle, "stream": _stream, "theme": _theme, "zoom": _zoom}

if __name__ == "__main__":
    sys.exit(main())
