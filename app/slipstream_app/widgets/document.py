"""A longer text in Markdown to read and scroll. It fetches nothing; a click on a link opens the browser."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QUrl
from PySide6.QtGui import QTextCursor, QTextDocument
from PySide6.QtWidgets import QFrame, QTextBrowser, QWidget

from slipstream_app.markdown import without_images

_DIALECT = QTextDocument.MarkdownFeature.MarkdownDialectGitHub | QTextDocument.MarkdownFeature.MarkdownNoHTML


class Document(QTextBrowser):
    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setOpenExternalLinks(True)
        self.setUndoRedoEnabled(False)
        self.setTabChangesFocus(True)

    def show_text(self, markdown: str) -> None:
        self.document().setMarkdown(without_images(markdown), _DIALECT)
        self.moveCursor(QTextCursor.MoveOperation.Start)  # else it opens at its end

    def loadResource(self, kind: int, name: QUrl | str) -> object:
        """Nothing. Not None, at which Qt would look for a file by itself."""
        return QByteArray(b"")
