"""Chats to files and back: Markdown of the branch that is shown, JSON of every branch."""

from __future__ import annotations

import json
from pathlib import Path

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QFileDialog, QWidget

from slipstream_app.history import History, HistoryError
from slipstream_app.models.chat_files import as_json, as_markdown, import_json, shown_branch
from slipstream_app.widgets.banner import Banners
from slipstream_app.widgets.saving import save_text


class ChatExchange(QWidget):
    """Never seen; the dialogs are its own."""

    imported = Signal(int)  # the new chat
    refused = Signal(str)

    def __init__(self, history: History, banners: Banners, parent: QWidget) -> None:
        super().__init__(parent)
        self._history = history
        self._banners = banners
        self.hide()

    @Slot(int)
    def export(self, chat: int) -> None:
        row = self._history.chat(chat)
        if row is None:
            return
        stem = "".join(char if char.isalnum() or char in " -_" else "-" for char in row.title).strip() or "chat"
        kinds = f"{self.tr('Markdown')} (*.md);;JSON (*.json)"
        name, kind = QFileDialog.getSaveFileName(self, self.tr("Export chat"), f"{stem}.md", kinds)
        if name:
            self.write(chat, Path(name), is_json="json" in kind.lower() or name.endswith(".json"))

    def write(self, chat: int, path: Path, *, is_json: bool) -> None:
        row = self._history.chat(chat)
        assert row is not None
        if is_json:
            text = json.dumps(as_json(self._history, chat), indent=1, ensure_ascii=False)
        else:
            text = as_markdown(row.title, shown_branch(self._history, row))
        save_text(self._banners, path, text)

    @Slot()
    def choose(self) -> None:
        """A file to import."""
        name, _ = QFileDialog.getOpenFileName(self, self.tr("Import chat"), "", "JSON (*.json)")
        if name:
            self.read(Path(name))

    def read(self, path: Path) -> None:
        try:
            chat = import_json(self._history, path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            self.refused.emit(self.tr("{0} cannot be read ({1}).").format(path.name, error))
        except HistoryError as error:
            self.refused.emit(str(error))
        else:
            self.imported.emit(chat)
