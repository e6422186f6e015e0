"""Strips of the Chat screen: find in a chat, and a sentence with a button."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QWidget

from slipstream_app.messages import Message
from slipstream_app.theme import M, S, Theme
from slipstream_app.widgets.panel import Words, button


class FindBar(QFrame):
    next_asked = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", "bar")
        self.words = QLineEdit()
        self.words.setPlaceholderText(self.tr("Find in this chat"))
        self.words.setAccessibleName(self.tr("Find in this chat"))
        self.words.returnPressed.connect(self.next_asked)
        self.note = Words(theme, role="muted")
        done = button(self.tr("Done"))
        done.clicked.connect(self.hide)
        row = QHBoxLayout(self)
        row.setContentsMargins(M, S, M, S)
        for widget in (self.words, self.note, done):
            row.addWidget(widget)
        self._found: int | None = None  # shown last
        self.hide()

    def open(self) -> None:
        self.show()
        self.words.setFocus()
        self.words.selectAll()

    @property
    def wanted(self) -> str:
        return self.words.text().strip().lower()

    def next_in(self, path: Sequence[Message]) -> int | None:
        """The next message with the words, round and round."""
        hits = [message.id for message in path if self.wanted in message.text.lower()]
        if not hits:
            self.note.say(self.tr("Nothing found"))
            return None
        at = (hits.index(self._found) + 1) % len(hits) if self._found in hits else 0
        self._found = hits[at]
        self.note.say(self.tr("{0} of {1}").format(at + 1, len(hits)))
        return self._found


class OfferBar(QFrame):
    """A sentence, and what can be done about it."""

    accepted = Signal()

    def __init__(self, theme: Theme, role: str, offer: str, *, is_primary: bool = False) -> None:
        super().__init__()
        self.setProperty("role", role)
        self.words = Words(theme, role="" if is_primary else "muted")
        self.button = button(offer, "primary" if is_primary else "")
        self.button.clicked.connect(self.accepted)
        row = QHBoxLayout(self)
        row.setContentsMargins(M, S, S if is_primary else M, S)
        row.addWidget(self.words, 1)
        row.addWidget(self.button)
        self.hide()
