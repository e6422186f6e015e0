"""Chats that were deleted: out of sight at once, for good after a while or once they are old."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from slipstream_app.history import History

UNDO_MS = 10_000
PURGE_MS = 100  # between two chats that are deleted for good
DAY_S = 86400


class ChatTrash(QObject):
    """At most one deletion can be undone: the last."""

    list_changed = Signal()
    settled = Signal()  # nothing can be undone any more

    def __init__(self, history: History, is_running: Callable[[int], bool], parent: QObject | None = None) -> None:
        """`is_running`: whether an answer is under way in a chat."""
        super().__init__(parent)
        self._history = history
        self._is_running = is_running
        self._deleted: int | None = None
        self._undo = QTimer(self, singleShot=True, interval=UNDO_MS)
        self._undo.timeout.connect(self.settle)
        self._expired: list[int] = []
        self._purge = QTimer(self, interval=PURGE_MS)
        self._purge.timeout.connect(self._purge_one)

    def delete(self, chat: int) -> None:
        """Gone from sight; the one deleted before is gone for good."""
        self.settle()
        self._history.delete_chat(chat)
        self._deleted = chat
        self._undo.start()
        self.list_changed.emit()

    def undo(self) -> int | None:
        """Bring the last one back, and say which it was."""
        chat, self._deleted = self._deleted, None
        self._undo.stop()
        if chat is not None:
            self._history.restore_chat(chat)
            self.list_changed.emit()
        return chat

    @Slot()
    def settle(self) -> None:
        self._undo.stop()
        if self._deleted is not None:
            chat, self._deleted = self._deleted, None
            if not self._is_running(chat):  # else the next start does it
                self._history.purge(chat)
            self.settled.emit()

    def expire(self, days: int, spared: int | None) -> None:
        """Delete chats in which nothing was said for so long; 0 deletes none, and `spared` stays."""
        if days <= 0:
            return
        before_s = time.time() - days * DAY_S
        for row in self._history.chats():
            if row.updated_s < before_s and row.id != spared:
                self._history.delete_chat(row.id)
                self._expired.append(row.id)
        if self._expired:
            self.list_changed.emit()
            self._purge.start()

    @Slot()
    def _purge_one(self) -> None:
        """A chat's text leaves the search index one at a time, so that nothing stalls."""
        self._history.purge(self._expired.pop())
        if not self._expired:
            self._purge.stop()

    def rest(self) -> None:
        """The app ends: its next start deletes for good."""
        self._purge.stop()
        self._undo.stop()
