"""Starts the app: Qt, the window, then the engine's thread. Imports neither MLX nor charts."""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QtMsgType, qInstallMessageHandler
from PySide6.QtWidgets import QApplication

from slipstream.store.paths import data_dir
from slipstream_app import log, strings
from slipstream_app.bridge.session import Session
from slipstream_app.history import open_history
from slipstream_app.models.acceptance import Acceptances
from slipstream_app.models.activity import Activity
from slipstream_app.models.calibrating import Calibrating
from slipstream_app.models.drafting import Drafting
from slipstream_app.models.keep_alive import KeepAlive
from slipstream_app.models.requests import RequestTable
from slipstream_app.models.speedups import Speedups
from slipstream_app.models.telemetry import Telemetry
from slipstream_app.models.telemetry_history import TelemetryHistory
from slipstream_app.models.trainings import Trainings
from slipstream_app.screens.base import AppContext, Navigator
from slipstream_app.settings import Settings
from slipstream_app.single import begin
from slipstream_app.theme import Theme
from slipstream_app.widgets.banner import Banners
from slipstream_app.windows.shell import Shell


def make_context(session: Session, settings: Settings, folder: Path) -> AppContext:
    """`folder`: where chats and the history of speeds are kept."""
    telemetry, speeds = Telemetry(), TelemetryHistory(folder / "speeds.db")
    requests, speedups = RequestTable(session.server), Speedups(settings)
    telemetry.listen(session.bus)
    telemetry.ended.connect(speeds.add)
    session.bus.server_changed.connect(requests.on_server)
    requests.changed.connect(telemetry.on_request)
    return AppContext(
        session=session,
        bus=session.bus,
        settings=settings,
        theme=Theme(),
        banners=Banners(),
        navigator=Navigator(),
        server=session.server,
        history=open_history(folder / "chats.db"),
        telemetry=telemetry,
        speeds=speeds,
        speedups=speedups,
        acceptances=Acceptances(session, settings),
        requests=requests,
        activity=Activity(session.bus),
        calibrating=Calibrating(session),
        keep_alive=KeepAlive(settings),
        drafting=Drafting(session, settings, speedups),
        trainings=Trainings(folder / "training"),
    )


def run(*, is_hidden: bool = False, cannot_open: Callable[[], int] = lambda: 1) -> int:
    """The exit code. `cannot_open` says what to do where Qt finds no display, and gives that code."""
    gc.freeze()  # what is imported stays: looking through it for garbage would hold the window up

    def hear(kind: QtMsgType, _: object, text: str) -> None:
        """Without a display or its libraries Qt aborts. Nothing is open yet that had to be closed."""
        print(text, file=sys.stderr)
        if kind is QtMsgType.QtFatalMsg:
            os._exit(cannot_open())

    before = qInstallMessageHandler(hear)
    app = QApplication(sys.argv[:1])
    qInstallMessageHandler(before)
    app.setApplicationName("Slipstream")
    app.setOrganizationName("Slipstream")
    app.setQuitOnLastWindowClosed(False)
    first = begin(data_dir(), app)
    if first is None:
        print("Slipstream is open already; its window comes to the front.")
        return 0
    log_file = log.start(data_dir() / "logs")
    settings = Settings()
    strings.install(app, settings.text("general/language"))
    session = Session()
    context = make_context(session, settings, data_dir())
    shell = Shell(context, log_file)
    shell.ended.connect(app.quit)
    first.asked.connect(shell.show_window)
    shell.open(is_hidden=is_hidden)
    code = app.exec()
    first.close()  # the next start is a window of its own
    is_clean = session.stop()
    context.trainings.closing()
    context.history.close()
    context.speeds.close()
    if not is_clean:  # a thread hangs in MLX, and Python would wait for it for ever
        logging.getLogger(__name__).warning("left with the engine still busy")
        logging.shutdown()
        os._exit(code)
    del shell
    return code
