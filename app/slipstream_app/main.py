"""Starts the app: Qt, the engine's thread, the window."""

from __future__ import annotations

import sys
from pathlib import Path

from PySide6.QtWidgets import QApplication

from slipstream.store.paths import data_dir
from slipstream_app.bridge.pair import BUILT_IN
from slipstream_app.bridge.session import Session
from slipstream_app.history import open_history
from slipstream_app.models.requests import RequestTable
from slipstream_app.models.telemetry import Telemetry
from slipstream_app.models.telemetry_history import TelemetryHistory
from slipstream_app.screens.base import AppContext, Navigator
from slipstream_app.settings import Settings
from slipstream_app.theme import Theme
from slipstream_app.widgets.banner import Banners
from slipstream_app.windows.main_window import MainWindow


def make_context(session: Session, settings: Settings, folder: Path) -> AppContext:
    """`folder`: where chats and the history of speeds are kept."""
    telemetry, speeds = Telemetry(), TelemetryHistory(folder / "speeds.db")
    requests = RequestTable(session.server)
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
        requests=requests,
    )


def run() -> int:
    app = QApplication(sys.argv[:1])
    app.setApplicationName("Slipstream")
    app.setOrganizationName("Slipstream")
    session = Session()
    context = make_context(session, Settings(), data_dir())
    window = MainWindow(context)
    window.show()
    window.go("chat")
    session.load(BUILT_IN)
    code = app.exec()
    context.speeds.close()
    session.stop()
    return code
