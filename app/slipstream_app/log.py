"""The program's log: a file that rolls over, the last lines in memory, with Qt's messages and uncaught errors."""

from __future__ import annotations

import logging
import logging.handlers
import sys
import threading
from collections import deque
from pathlib import Path
from types import TracebackType

from PySide6.QtCore import QtMsgType, qInstallMessageHandler

from slipstream.log import LINE, Formatter

FILE_BYTES = 1_000_000
FILES = 3
LINES = 2000

_LEVELS = {
    QtMsgType.QtDebugMsg: logging.DEBUG,
    QtMsgType.QtInfoMsg: logging.INFO,
    QtMsgType.QtWarningMsg: logging.WARNING,
    QtMsgType.QtCriticalMsg: logging.ERROR,
    QtMsgType.QtFatalMsg: logging.CRITICAL,
}

_FORMAT = Formatter(LINE)


class LogRing(logging.Handler):
    """The last records, formatted. Any thread may log while another reads."""

    def __init__(self, length: int = LINES) -> None:
        super().__init__(logging.INFO)
        self._lines: deque[tuple[int, str]] = deque(maxlen=length)
        self._guard = threading.Lock()
        self.count = 0  # of all lines ever, so that a reader sees what is new
        self.setFormatter(_FORMAT)

    def emit(self, record: logging.LogRecord) -> None:
        text = self.format(record)
        with self._guard:
            self._lines.append((record.levelno, text))
            self.count += 1

    def lines(self, level: int = logging.INFO) -> list[str]:
        """Oldest first; those of `level` and above."""
        with self._guard:
            return [text for number, text in self._lines if number >= level]


ring = LogRing()


def start(folder: Path) -> Path:
    """Log to `folder` from now on. Returns the file."""
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    if ring not in root.handlers:
        root.addHandler(ring)
    file = folder / "slipstream.log"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handler = logging.handlers.RotatingFileHandler(file, maxBytes=FILE_BYTES, backupCount=FILES, encoding="utf-8")
    except OSError as error:
        logging.getLogger(__name__).warning("no log file: %s", error)
    else:
        handler.setFormatter(_FORMAT)
        root.addHandler(handler)
    # Libraries tell their own story at this level, with addresses in it.
    for name in ("httpx", "huggingface_hub", "urllib3"):
        logging.getLogger(name).setLevel(logging.WARNING)
    qInstallMessageHandler(_from_qt)
    sys.excepthook = _uncaught
    threading.excepthook = lambda args: _uncaught(args.exc_type, args.exc_value, args.exc_traceback)
    return file


def _from_qt(kind: QtMsgType, _: object, text: str) -> None:
    logging.getLogger("qt").log(_LEVELS.get(kind, logging.INFO), "%s", text)


def _uncaught(kind: type[BaseException], error: BaseException | None, traceback: TracebackType | None) -> None:
    if error is None or issubclass(kind, KeyboardInterrupt):
        return
    logging.getLogger("slipstream").critical("uncaught", exc_info=(kind, error, traceback))
    sys.__excepthook__(kind, error, traceback)
