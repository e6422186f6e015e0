"""A block of code: its language, copy, wrap, save, and colours once it is whole."""

from __future__ import annotations

import mimetypes
from math import ceil
from pathlib import Path

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QFontMetricsF,
    QGuiApplication,
    QTextCursor,
    QTextOption,
    QWheelEvent,
)
from PySide6.QtWidgets import QFileDialog, QFrame, QHBoxLayout, QLabel, QPlainTextEdit, QToolButton, QWidget

from slipstream_app.highlight import Highlighter
from slipstream_app.icons import icon
from slipstream_app.theme import M, S, Theme
from slipstream_app.widgets.block import Part

_ENDINGS = {
    **{"python": ".py", "javascript": ".js", "typescript": ".ts", "bash": ".sh", "sh": ".sh", "shell": ".sh"},
    **{"rust": ".rs", "c++": ".cpp", "cpp": ".cpp", "c": ".c", "java": ".java", "go": ".go", "swift": ".swift"},
    **{"html": ".html", "css": ".css", "json": ".json", "yaml": ".yaml", "toml": ".toml", "markdown": ".md"},
    **{"ruby": ".rb", "sql": ".sql", "kotlin": ".kt", "csharp": ".cs", "php": ".php", "xml": ".xml", "diff": ".diff"},
}


def colours(theme: Theme) -> dict[str, QColor]:
    """Of the highlighter's kinds."""
    by_kind = {
        "comment": "muted",
        "keyword": "accent",
        "string": "ok",
        "number": "warn",
        "function": "draft",
        "builtin": "ngram",
    }
    return {kind: theme.color(name) for kind, name in by_kind.items()}


class CodeText(QPlainTextEdit):
    """All lines are shown: the transcript scrolls, not the card."""

    menu_asked = Signal(object)  # QPoint, global

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setProperty("role", "bare")
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setTabChangesFocus(True)
        self.document().setDocumentMargin(0)
        self.set_wrap(False)

    def set_wrap(self, is_on: bool) -> None:
        self.setWordWrapMode(QTextOption.WrapMode.WrapAnywhere if is_on else QTextOption.WrapMode.NoWrap)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth if is_on else QPlainTextEdit.LineWrapMode.NoWrap)

    def height_at(self, width: int) -> int:
        self.resize(width, max(1, self.height()))
        lines = self.document().size().height()  # in lines, for this kind of document
        bar = self.horizontalScrollBar()
        needs_bar = bar.maximum() > 0
        line = ceil(QFontMetricsF(self.font()).lineSpacing())  # Qt lays each line out in whole pixels
        return int(lines * line + 1) + (bar.sizeHint().height() if needs_bar else 0)

    def contextMenuEvent(self, e: QContextMenuEvent) -> None:
        self.menu_asked.emit(e.globalPos())

    def wheelEvent(self, e: QWheelEvent) -> None:
        if abs(e.angleDelta().x()) > abs(e.angleDelta().y()):
            super().wheelEvent(e)
        else:
            e.ignore()


class CodeCard(Part):
    menu_asked = Signal(object)

    def __init__(self, theme: Theme, language: str, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self._language = language
        self._text = ""
        self._highlighter: Highlighter | None = None
        self.setProperty("role", "card")
        self.label = QLabel(language or self.tr("code"))
        self.label.setTextFormat(Qt.TextFormat.PlainText)
        self.label.setProperty("role", "muted")
        self.wrap = self._tool("wrap-text", self.tr("Wrap long lines"))
        self.wrap.setCheckable(True)
        self.wrap.toggled.connect(self._on_wrap)
        self.copy = self._tool("copy", self.tr("Copy code"))
        self.copy.clicked.connect(self._on_copy)
        self.save = self._tool("save", self.tr("Save code as a file"))
        self.save.clicked.connect(self._on_save)
        self.body = CodeText(theme, self)
        self.body.setAccessibleName(self.tr("Code, {0}").format(language) if language else self.tr("Code"))
        self.body.menu_asked.connect(self.menu_asked)
        self.head = QWidget(self)
        row = QHBoxLayout(self.head)
        row.setContentsMargins(M, 2, S, 2)
        row.setSpacing(2)
        row.addWidget(self.label)
        row.addStretch(1)
        for tool in (self.wrap, self.copy, self.save):
            row.addWidget(tool)
        theme.resized.connect(self.refresh_theme)
        self.refresh_theme()

    def _tool(self, name: str, words: str) -> QToolButton:
        tool = QToolButton()
        tool.setIcon(icon(self.theme, name, "muted"))
        tool.setIconSize(QSize(self.theme.px(16), self.theme.px(16)))
        tool.setProperty("role", "flat")
        tool.setToolTip(words)
        tool.setAccessibleName(words)
        return tool

    @property
    def language(self) -> str:
        return self._language

    @property
    def text(self) -> str:
        return self._text

    def set_text(self, text: str, *, is_whole: bool) -> None:
        """Grows by appending where it can, so that a long block costs no more than its new end."""
        if text != self._text:
            if text.startswith(self._text) and self._text:
                cursor = QTextCursor(self.body.document())
                cursor.movePosition(QTextCursor.MoveOperation.End)
                cursor.insertText(text[len(self._text) :])
            else:
                self.body.setPlainText(text)
            self._text = text
        if is_whole and self._highlighter is None and self._language:
            self._highlighter = Highlighter(self.body.document(), colours(self.theme))
            self._highlighter.start(self._language, text)

    def fit(self, width: int) -> int:
        head = self.head.sizeHint().height()
        self.head.setGeometry(1, 1, width - 2, head)
        inner = width - 2 * M
        body = self.body.height_at(inner)
        self.body.setGeometry(M, head + 2, inner, body)
        return head + body + 2 + S

    @Slot(bool)
    def _on_wrap(self, is_on: bool) -> None:
        self.body.set_wrap(is_on)
        self.resized.emit()

    @Slot()
    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(self._text)
        self.copy.setIcon(icon(self.theme, "check", "ok"))
        self.copy.setToolTip(self.tr("Copied"))

    @Slot()
    def _on_save(self) -> None:
        ending = _ENDINGS.get(self._language) or mimetypes.guess_extension(f"text/x-{self._language}") or ".txt"
        name, _ = QFileDialog.getSaveFileName(self, self.tr("Save code"), f"code{ending}")
        if name:
            self.save_to(Path(name))

    def save_to(self, file: Path) -> None:
        try:
            file.write_text(self._text + "\n", encoding="utf-8")
        except OSError as error:
            self.save.setIcon(icon(self.theme, "circle-alert", "bad"))
            self.save.setToolTip(self.tr("{0} could not be written: {1}").format(file.name, error.strerror or error))
        else:
            self.save.setIcon(icon(self.theme, "check", "ok"))
            self.save.setToolTip(self.tr("Saved to {0}").format(file))

    @Slot()
    def refresh_theme(self) -> None:
        self.label.setFont(self.theme.font(0.9))
        self.body.setFont(self.theme.code_font())
        for tool in (self.wrap, self.copy, self.save):
            tool.setIconSize(QSize(self.theme.px(16), self.theme.px(16)))

    def recolour(self) -> None:
        if self._highlighter is not None:
            self._highlighter.recolour(colours(self.theme))
