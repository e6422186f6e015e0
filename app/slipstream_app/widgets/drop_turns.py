"""Asks whether the oldest turns of a chat may be sent no longer, and shows which."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QMessageBox, QWidget

from slipstream_app.messages import Message

SHOWN = 12  # lines; of more, the first and the last
LINE = 70  # characters


class DropTurns(QMessageBox):
    agreed = Signal()

    def __init__(self, dropped: Sequence[Message], tokens_left: int, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("drop-turns")
        self.setText(self.tr("Send the oldest %n message(s) no longer?", None, len(dropped)))
        lines = [f"{'→' if one.role == 'user' else '←'} {' '.join(one.text.split())[:LINE]}" for one in dropped]
        if len(lines) > SHOWN:
            lines = [*lines[: SHOWN // 2], "…", *lines[1 - SHOWN // 2 :]]
        left = self.tr("They stay in the chat. %Ln token(s) are left to send.", "", tokens_left)
        self.setInformativeText("\n".join(lines) + "\n\n" + left)
        drop = self.addButton(self.tr("Drop"), QMessageBox.ButtonRole.AcceptRole)
        self.addButton(QMessageBox.StandardButton.Cancel)
        drop.clicked.connect(self.agreed)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
