"""A block of Markdown, shown: to read, to select, with links that a click opens. It asks nobody for anything."""

from __future__ import annotations

from typing import NamedTuple, cast

from PySide6.QtCore import QByteArray, QSize, Qt, QUrl, Signal, Slot
from PySide6.QtGui import (
    QContextMenuEvent,
    QDesktopServices,
    QFont,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextFrameFormat,
    QTextList,
    QTextTable,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QTextBrowser, QWidget

from slipstream_app.markdown import without_images
from slipstream_app.theme import Theme

_DIALECT = QTextDocument.MarkdownFeature.MarkdownDialectGitHub | QTextDocument.MarkdownFeature.MarkdownNoHTML
_OPENED = ("http", "https", "mailto")  # schemes that a click may open
_HEADINGS = {1: 1.45, 2: 1.25, 3: 1.1}  # times the size of text


class _Colours(NamedTuple):
    code: QTextCharFormat
    link: QTextCharFormat
    quiet: QTextCharFormat


class Prose(QTextBrowser):
    """Read-only. `menu_asked` instead of a context menu: the message has one for all its parts."""

    menu_asked = Signal(object)  # QPoint, global
    selected = Signal()  # some of its text is selected now

    def __init__(
        self, theme: Theme, text: str = "", *, is_markdown: bool = True, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self._text = ""
        self._is_markdown = is_markdown
        self._width = -1
        self._height = 0
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setOpenLinks(False)
        self.setUndoRedoEnabled(False)
        self.viewport().setAutoFillBackground(False)
        self.setProperty("role", "bare")
        self.document().setDocumentMargin(0)
        self.anchorClicked.connect(self._open)
        self.selectionChanged.connect(self._on_selection)
        theme.resized.connect(self.refresh_theme)
        self.setFont(theme.font())
        if text:
            self.set_text(text)

    @property
    def text(self) -> str:
        return self._text

    def set_text(self, text: str) -> None:
        if text == self._text:
            return
        self._text = text
        self._show()

    def _show(self) -> None:
        document = self.document()
        document.setDefaultFont(self._theme.font())
        if self._is_markdown:
            document.setMarkdown(without_images(self._text), _DIALECT)
            self._dress()
        else:
            document.setPlainText(self._text)
        self._width = -1

    def fit(self, width: int) -> int:
        if width != self._width:
            self._width = width
            document = self.document()
            document.setTextWidth(width)
            self._height = int(document.size().height() + 0.999)
        return self._height

    def sizeHint(self) -> QSize:
        return QSize(self._width, self._height)

    def loadResource(self, kind: int, name: QUrl | str) -> object:
        """Nothing, whatever is asked for: a reply must not cause a request or read a file.

        Not None, at which Qt would look for a file by itself.
        """
        return QByteArray(b"")

    def _dress(self) -> None:
        """Qt's Markdown has its own ideas of margins, sizes and code; these are ours."""
        document = self.document()
        theme = self._theme
        gap = theme.px(6)
        document.setIndentWidth(theme.px(22))
        code_font = theme.code_font()
        colours = self._colours()
        colours.code.setFontFamilies([code_font.family()])
        colours.code.setFontFixedPitch(True)
        colours.code.setProperty(QTextFormat.Property.FontPointSize, code_font.pointSizeF())
        cursor = QTextCursor(document)
        cursor.beginEditBlock()
        block = document.begin()
        while block.isValid():
            self._dress_block(block, cursor, gap)
            _colour_block(block, cursor, colours)
            block = block.next()
        cursor.endEditBlock()
        for table in _tables(document):
            self._dress_table(table)

    def _colours(self) -> _Colours:
        colours = _Colours(QTextCharFormat(), QTextCharFormat(), QTextCharFormat())
        colours.code.setBackground(self._theme.color("raised"))
        colours.link.setForeground(self._theme.color("accent"))
        colours.quiet.setForeground(self._theme.color("muted"))
        return colours

    def _dress_block(self, block: QTextBlock, cursor: QTextCursor, gap: int) -> None:
        kept = block.blockFormat()
        made = QTextBlockFormat()
        in_list = cast(QTextList | None, block.textList()) is not None
        made.setTopMargin(0 if block.blockNumber() == 0 else (2 if in_list else gap))
        made.setBottomMargin(2 if in_list else 0)
        made.setLineHeight(125, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        cursor.setPosition(block.position())
        cursor.mergeBlockFormat(made)
        if level := kept.headingLevel():
            heading = QTextCharFormat()
            size = self._theme.font().pointSizeF() * _HEADINGS.get(level, 1.0)
            heading.setProperty(QTextFormat.Property.FontPointSize, size)
            heading.setProperty(QTextFormat.Property.FontSizeAdjustment, 0)
            heading.setFontWeight(QFont.Weight.DemiBold)
            cursor.movePosition(QTextCursor.MoveOperation.EndOfBlock, QTextCursor.MoveMode.KeepAnchor)
            cursor.mergeCharFormat(heading)

    def _dress_table(self, table: QTextTable) -> None:
        dress = table.format()
        dress.setCellPadding(self._theme.px(5))
        dress.setCellSpacing(0)
        dress.setBorder(1)
        dress.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
        dress.setBorderCollapse(True)
        dress.setTopMargin(0)
        dress.setBottomMargin(self._theme.px(4))
        dress.setBorderBrush(self._theme.color("border"))
        table.setFormat(dress)

    @Slot()
    def refresh_theme(self) -> None:
        self.setFont(self._theme.font())
        self._show()

    def recolour(self) -> None:
        """What has a colour of its own, in place: what is selected stays so."""
        if not self._is_markdown:
            return
        document, colours = self.document(), self._colours()
        cursor = QTextCursor(document)
        cursor.beginEditBlock()
        block = document.begin()
        while block.isValid():
            _colour_block(block, cursor, colours)
            block = block.next()
        cursor.endEditBlock()
        for table in _tables(document):
            dress = table.format()
            dress.setBorderBrush(self._theme.color("border"))
            table.setFormat(dress)

    @Slot(QUrl)
    def _open(self, url: QUrl) -> None:
        if url.scheme() in _OPENED:
            QDesktopServices.openUrl(url)

    @Slot()
    def _on_selection(self) -> None:
        if self.textCursor().hasSelection():
            self.selected.emit()

    def contextMenuEvent(self, e: QContextMenuEvent) -> None:
        self.menu_asked.emit(e.globalPos())

    def wheelEvent(self, e: QWheelEvent) -> None:
        e.ignore()  # the transcript scrolls


def _colour_block(block: QTextBlock, cursor: QTextCursor, colours: _Colours) -> None:
    is_quote = bool(block.blockFormat().property(QTextFormat.Property.BlockQuoteLevel))
    for start, length, found in _pieces(block):
        if found.isAnchor():
            _merge(cursor, start, length, colours.link)
        elif is_quote:
            _merge(cursor, start, length, colours.quiet)
        if found.fontFixedPitch():
            _merge(cursor, start, length, colours.code)


def _pieces(block: QTextBlock) -> list[tuple[int, int, QTextCharFormat]]:
    """Position, length and format of each piece of one format. Values, since a merge may join the pieces themselves."""
    found: list[tuple[int, int, QTextCharFormat]] = []
    at = block.begin()
    while not at.atEnd():
        piece = at.fragment()
        if piece.isValid():
            found.append((piece.position(), piece.length(), piece.charFormat()))
        at += 1
    return found


def _merge(cursor: QTextCursor, start: int, length: int, made: QTextCharFormat) -> None:
    cursor.setPosition(start)
    cursor.setPosition(start + length, QTextCursor.MoveMode.KeepAnchor)
    cursor.mergeCharFormat(made)


def _tables(document: QTextDocument) -> list[QTextTable]:
    return [frame for frame in document.rootFrame().childFrames() if isinstance(frame, QTextTable)]
