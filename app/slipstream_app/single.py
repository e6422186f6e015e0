"""One window for one data folder: a second start asks the first to come to the front, and ends."""

from __future__ import annotations

import hashlib
from pathlib import Path

from PySide6.QtCore import QDir, QLockFile, QObject, Signal, Slot
from PySide6.QtNetwork import QLocalServer, QLocalSocket

ANSWER_MS = 1000
START_MS = 5000  # for another start to ask and listen
RAISE = b"raise\n"


def begin(folder: Path, parent: QObject | None = None) -> FirstWindow | None:
    """The first window of this data folder. None: there is another, which was asked to show itself.

    Starts at the same moment go one after the other: else each finds nobody, and each takes the other's place.
    """
    lock = QLockFile(lock_path(folder))
    lock.tryLock(START_MS)  # where it cannot be had, a start is better than none
    try:
        return None if ask_first(folder) else FirstWindow(folder, parent)
    finally:
        lock.unlock()


def lock_path(folder: Path) -> str:
    """Beside the socket. It is free when its process has died."""
    return str(Path(QDir.tempPath()) / f"{_name(folder)}.lock")


def ask_first(folder: Path) -> bool:
    """Whether another window has this data folder; it was asked to show itself."""
    socket = QLocalSocket()
    socket.connectToServer(_name(folder))
    if not socket.waitForConnected(ANSWER_MS):
        return False
    socket.write(RAISE)
    socket.waitForBytesWritten(ANSWER_MS)
    socket.disconnectFromServer()
    return True


class FirstWindow(QObject):
    """Listens for later starts. Made only where `ask_first` found nobody: what an ended process left is replaced."""

    asked = Signal()

    def __init__(self, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._on_connection)
        QLocalServer.removeServer(_name(folder))
        self.is_listening = self._server.listen(_name(folder))

    def close(self) -> None:
        self._server.close()

    @Slot()
    def _on_connection(self) -> None:
        while self._server.hasPendingConnections():
            socket = self._server.nextPendingConnection()
            socket.disconnected.connect(socket.deleteLater)
            self.asked.emit()


def _name(folder: Path) -> str:
    """Short: a socket's path may have 104 characters on a Mac."""
    return f"slipstream-{hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]}"
