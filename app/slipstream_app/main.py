"""Starts the app: Qt, the engine's thread, the window."""

from __future__ import annotations

import argparse
import sys

from PySide6.QtWidgets import QApplication

from slipstream.commands.options import add_pair, cache_limits, open_pair
from slipstream.service import Engine
from slipstream.types import Mode
from slipstream_app.bridge.session import Session
from slipstream_app.windows.main_window import MainWindow


def run() -> int:
    app = QApplication(sys.argv[:1])
    app.setApplicationName("Slipstream")
    session = Session(open_demo, "the built-in pair")
    window = MainWindow(session)
    window.show()
    session.start()
    return app.exec()


def open_demo() -> Engine:
    """The built-in pair with both drafters. On the engine's thread."""
    parser = argparse.ArgumentParser()
    add_pair(parser)
    return open_pair(parser.parse_args([]), (Mode.DSPARK, Mode.DFLASH), cache_limits())
