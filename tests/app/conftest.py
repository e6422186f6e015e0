"""The app's objects on a scripted engine, and a guard: a Qt warning, a thread or a timer left over fails the test."""

from __future__ import annotations

import gc
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QLocale, QtMsgType, qInstallMessageHandler
from pytestqt.qtbot import QtBot

from fakes import FakeEngine, Script
from slipstream_app.bridge.pair import PairChoice
from slipstream_app.bridge.session import Session
from slipstream_app.main import make_context
from slipstream_app.screens.base import AppContext, Screen
from slipstream_app.screens.registry import Place
from slipstream_app.settings import Settings
from slipstream_app.theme import Theme
from slipstream_app.windows.shell import Shell

FAKE = PairChoice("a scripted model", "/nowhere/fake-model")

# The offscreen platform says this of what it cannot do; no other platform does.
_NOISE = "This plugin does not support "


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """What the test before left goes now, on the main thread.

    Sessions, themes and settings refer to each other in circles. Python looks for those on whatever thread is at work:
    an engine's or a server's would destroy them, timers and all, while the main thread uses the same Qt. What is alive
    now is not looked through again, which keeps this to some milliseconds.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def no_qt_warning() -> Iterator[None]:
    """Any warning that Qt prints during the test fails it."""
    said: list[str] = []

    def hear(kind: QtMsgType, _: object, text: str) -> None:
        if kind is not QtMsgType.QtDebugMsg and not text.startswith(_NOISE):
            said.append(text)

    before = qInstallMessageHandler(hear)
    yield
    qInstallMessageHandler(before)
    assert not said, said


@pytest.fixture(autouse=True)
def no_thread_left(qapp: object) -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    left = [thread for thread in threading.enumerate() if thread not in before and not thread.daemon]
    for thread in left:
        thread.join(2)
    assert not [thread for thread in left if thread.is_alive()], left


@pytest.fixture(autouse=True)
def same_language() -> Iterator[None]:
    """Whatever language a test chose, the next one's numbers are written as before."""
    before = QLocale()
    yield
    QLocale.setDefault(before)


@pytest.fixture
def theme(qapp: object) -> Iterator[Theme]:
    """A theme of its own; the application's is put back."""
    made = Theme()
    yield made
    made.set_scheme("system")
    made.set_accent("system")
    made.set_zoom(100)


@pytest.fixture
def engine() -> FakeEngine:
    """Change its `script` to say something else."""
    return FakeEngine(Script(pieces=("One", ", two", ", three"), round_s=0.01))


@pytest.fixture
def session(qapp: object, engine: FakeEngine) -> Iterator[Session]:
    """Nothing is loaded; `session.load(FAKE)` loads `engine`."""
    session = Session(lambda *_: engine)
    yield session
    engine.released.set()
    assert session.stop()


@pytest.fixture
def context(session: Session, tmp_path: Path) -> Iterator[AppContext]:
    """What a screen is given, with a history and settings of its own."""
    made = make_context(session, Settings(tmp_path / "settings.ini"), tmp_path)
    made.settings.set("updates/check", False)  # a test asks nobody on the network
    yield made
    made.history.close()
    made.speeds.close()


@pytest.fixture
def shell(qtbot: QtBot, context: AppContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    """The window and all around it, with empty screens. Nothing is shown or loaded."""
    monkeypatch.setattr(Place, "open", lambda _, app: Screen(app))
    made = Shell(context, tmp_path / "slipstream.log")
    context.settings.set("server/port", _free_port())
    yield made
    made.quit()
    made.window.deleteLater()
    made.deleteLater()
    # Windows left alive would be styled anew by every later test that changes the theme.
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture
def ready(qtbot: QtBot, context: AppContext) -> AppContext:
    """`context` with the scripted model loaded."""
    context.session.load(FAKE)
    qtbot.waitUntil(lambda: context.session.info is not None, timeout=5000)
    return context
