"""Where a message is written: text that grows, files, a count of tokens, and Send or Stop."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QMimeData, QSize, Qt, Signal, Slot
from PySide6.QtGui import (
    QDragEnterEvent,
    QDragMoveEvent,
    QDropEvent,
    QFocusEvent,
    QInputMethodEvent,
    QKeyEvent,
    QTextCursor,
)
from PySide6.QtWidgets import (
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QPlainTextEdit,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from slipstream_app.icons import icon
from slipstream_app.messages import Attachment
from slipstream_app.models.attached_file import Refused
from slipstream_app.models.attaching import Attaching
from slipstream_app.models.chat_prompt import Count
from slipstream_app.numbers import count_text
from slipstream_app.theme import XS, M, S, Theme
from slipstream_app.widgets.attachments import Chips, ReadingRow
from slipstream_app.widgets.panel import Words, button, set_role

PASTE_CHARACTERS = 8 * 1024  # a longer paste becomes a file
MAX_SHARE = 0.4  # of the window's height
AMBER = 0.9  # of the context


class Input(QPlainTextEdit):
    """Return sends, with Shift or Option it breaks the line; or, swapped, the other way round with Command."""

    submitted = Signal()
    up_pressed = Signal()  # in an empty input
    files_dropped = Signal(list)  # Path
    pasted = Signal(str)  # more than fits a message
    images_dropped = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.return_sends = True
        self._is_composing = False
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setProperty("role", "bare")
        self.setTabChangesFocus(True)
        self.document().setDocumentMargin(2)
        self.setAcceptDrops(True)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        self._is_composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._is_composing = False
        super().focusOutEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        held = event.modifiers()
        keys = Qt.KeyboardModifier
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if self._is_composing:
                super().keyPressEvent(event)
                return
            breaks = bool(held & (keys.ShiftModifier | keys.AltModifier))
            commanded = bool(held & keys.ControlModifier)  # Command, on a Mac
            if commanded or (self.return_sends and not breaks):
                self.submitted.emit()
            else:
                self.insertPlainText("\n")
                self.ensureCursorVisible()
            return
        if event.key() == Qt.Key.Key_Up and not self.toPlainText() and held == keys.NoModifier:
            self.up_pressed.emit()
            return
        super().keyPressEvent(event)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return source.hasText() or source.hasUrls() or source.hasImage()

    def insertFromMimeData(self, source: QMimeData) -> None:
        files = [Path(url.toLocalFile()) for url in source.urls() if url.isLocalFile()]
        if files:
            self.files_dropped.emit(files)
        elif source.hasText():
            text = source.text()
            if len(text) > PASTE_CHARACTERS:
                self.pasted.emit(text)
            else:
                self.insertPlainText(text)
        elif source.hasImage():
            self.images_dropped.emit()


class Composer(QFrame):
    """Reports what happens; whoever owns it decides what may be sent."""

    submitted = Signal()
    stop_asked = Signal()
    edited = Signal()  # text or files are other ones
    edit_last_asked = Signal()
    edit_cancelled = Signal()
    parameters_asked = Signal()
    drop_turns_asked = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._attachments: list[Attachment] = []
        self._is_running = False
        self._may_send = True
        self._is_too_long = False
        self._pastes = 0
        self._attaching = Attaching(self)
        self._attaching.read.connect(self._on_read)
        self._attaching.refused.connect(self._on_refused)
        self._attaching.changed.connect(self._refresh)
        self.setProperty("role", "card")
        self.note = Words(theme, role="warn", scale=0.95)
        self.note.setWordWrap(True)
        self.note.hide()
        self.reading = ReadingRow(theme, self._attaching)
        self.chips = Chips(theme, can_remove=True)
        self.chips.removed.connect(self._on_remove)
        self.chips.hide()
        self.input = Input(theme)
        self.input.setAccessibleName(self.tr("Message"))
        self.input.setPlaceholderText(self.tr("Message…"))
        self.input.textChanged.connect(self._on_text)
        self.input.submitted.connect(self._on_submit)
        self.input.up_pressed.connect(self.edit_last_asked)
        self.input.files_dropped.connect(self.add_files)
        self.input.pasted.connect(self._on_paste)
        self.input.images_dropped.connect(self._on_image)
        self.attach = self._tool("paperclip", self.tr("Attach text files or PDFs"))
        self.attach.clicked.connect(self._on_attach)
        self.parameters = self._tool("sliders-horizontal", self.tr("Parameters of this chat"))
        self.parameters.setCheckable(True)
        self.parameters.clicked.connect(self.parameters_asked)
        self.count = Words(theme, role="muted", scale=0.92)
        self.count.setAccessibleName(self.tr("Tokens against the context"))
        self.drop = button(self.tr("Drop oldest turns…"))
        self.drop.clicked.connect(self.drop_turns_asked)
        self.drop.hide()
        self.hint = Words(theme, role="muted", scale=0.92)
        self.cancel_edit = button(self.tr("Cancel edit"))
        self.cancel_edit.clicked.connect(self.edit_cancelled)
        self.cancel_edit.hide()
        self.send = button(self.tr("Send"), "primary")
        self.send.clicked.connect(self._on_send)
        self._lay_out()
        self.setTabOrder(self.input, self.attach)
        theme.changed.connect(self.refresh_theme)
        self.refresh_theme()
        self._refresh()

    def _lay_out(self) -> None:
        row = QHBoxLayout()
        row.setSpacing(S)
        for widget in (self.attach, self.parameters, self.count, self.drop):
            row.addWidget(widget)
        row.addStretch(1)
        for widget in (self.hint, self.cancel_edit, self.send):
            row.addWidget(widget)
        column = QVBoxLayout(self)
        column.setContentsMargins(M, S, S, S)
        column.setSpacing(XS)
        for widget in (self.note, self.reading, self.chips, self.input):
            column.addWidget(widget)
        column.addLayout(row)

    def _tool(self, name: str, words: str) -> QToolButton:
        tool = QToolButton()
        tool.setProperty("role", "flat")
        tool.setIcon(icon(self._theme, name, "muted"))
        tool.setToolTip(words)
        tool.setAccessibleName(words)
        return tool

    # What is in it.

    @property
    def text(self) -> str:
        return self.input.toPlainText()

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        return tuple(self._attachments)

    def set_text(self, text: str) -> None:
        self.input.setPlainText(text)
        self.input.moveCursor(QTextCursor.MoveOperation.End)
        self.input.setFocus()

    def clear(self) -> None:
        self._attaching.give_up()
        self.input.clear()
        self._set_attachments([])
        self.say("")

    @Slot(list)
    def add_files(self, files: Sequence[Path]) -> None:
        """Text of files as chips, once it is read; what cannot be is refused by name and reason."""
        if files:
            self.say("")
            self._attaching.take(files)

    @Slot(object)
    def _on_read(self, attachment: Attachment) -> None:
        self._set_attachments([*self._attachments, attachment])

    @Slot(object)
    def _on_refused(self, refused: Refused) -> None:
        self.say("  ".join(words for words in (self.note.text(), self.refusal(refused)) if words))

    def refusal(self, error: Refused) -> str:
        sentences = {
            "image": self.tr("{0}: this model reads text only."),
            "large": self.tr("{0} has more text than 4 MB; attach a part of it."),
            "large_pdf": self.tr("{0} is larger than 64 MB; attach a part of it."),
            "locked": self.tr("{0} is locked with a password; save a copy without one and attach that."),
            "unreadable": self.tr("{0} cannot be read; check the file."),
            "pdf_empty": self.tr("{0} has no text in it, only pictures of pages; attach its text."),
            "binary": self.tr("{0} is no text file; attach text or a PDF."),
        }
        return sentences[error.reason].format(error.name)

    def say(self, text: str) -> None:
        """A sentence above the text, until the next."""
        self.note.say(text)
        self.note.setVisible(bool(text))

    def _set_attachments(self, attachments: list[Attachment]) -> None:
        self._attachments = attachments
        self.chips.set_attachments(attachments)
        self.chips.setVisible(bool(attachments))
        self._fit()
        self._refresh()
        self.edited.emit()

    # What it may do.

    def set_running(self, is_running: bool) -> None:
        self._is_running = is_running
        self._refresh()

    def set_may_send(self, may_send: bool) -> None:
        self._may_send = may_send
        self._refresh()

    def set_editing(self, is_editing: bool) -> None:
        self.cancel_edit.setVisible(is_editing)
        self._refresh()

    def set_return_sends(self, is_on: bool) -> None:
        self.input.return_sends = is_on
        self._refresh()

    def set_count(self, count: Count | None) -> None:
        """None: it is not known now."""
        share = 0.0 if count is None else count.tokens / count.context
        self._is_too_long = share > 1
        words = ""
        if count is not None:
            words = self.tr("{0} / {1} tokens").format(count_text(count.tokens), count_text(count.context))
        if share > 1:
            words = self.tr("{0}, too long").format(words)
        elif share > AMBER:
            words = self.tr("{0}, nearly full").format(words)
        self.count.say(words, "bad" if share > 1 else "warn" if share > AMBER else "muted")
        self.drop.setVisible(share > AMBER)
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        has_something = bool(self.text.strip() or self._attachments)
        self.drop.setEnabled(not self._is_running)  # what an answer comes to is not known yet
        if self._is_running:
            self.send.setText(self.tr("Stop"))
            self.send.setAccessibleName(self.tr("Stop the answer"))
            self.send.setEnabled(True)
            set_role(self.send, "")
        else:
            self.send.setText(self.tr("Too long") if self._is_too_long else self.tr("Send"))
            self.send.setAccessibleName(self.send.text())
            self.send.setEnabled(
                self._may_send and has_something and not self._is_too_long and not self._attaching.names
            )
            set_role(self.send, "primary")
        self.hint.say(self.tr("Return sends") if self.input.return_sends else self.tr("⌘ Return sends"))

    @property
    def can_submit(self) -> bool:
        return not self._is_running and self.send.isEnabled()

    @Slot()
    def _on_submit(self) -> None:
        if self.can_submit:
            self.submitted.emit()

    @Slot()
    def _on_send(self) -> None:
        if self._is_running:
            self.stop_asked.emit()
        else:
            self._on_submit()

    @Slot()
    def _on_text(self) -> None:
        self._fit()
        self._refresh()
        self.edited.emit()

    @Slot(str)
    def _on_paste(self, text: str) -> None:
        self._pastes += 1
        self._set_attachments([*self._attachments, Attachment(self.tr("Pasted text {0}").format(self._pastes), text)])

    @Slot()
    def _on_image(self) -> None:
        self.say(self.tr("This model reads text only."))

    @Slot(int)
    def _on_remove(self, at: int) -> None:
        self._set_attachments([one for place, one in enumerate(self._attachments) if place != at])

    @Slot()
    def _on_attach(self) -> None:
        names, _ = QFileDialog.getOpenFileNames(self, self.tr("Attach files"))
        self.add_files([Path(name) for name in names])

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasUrls():
            event.acceptProposedAction()

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        self.input.insertFromMimeData(event.mimeData())
        event.acceptProposedAction()

    # How large it is.

    def _fit(self) -> None:
        """One line to 40 % of the window."""
        line = self.input.fontMetrics().lineSpacing()
        lines = self.input.document().size().height()  # in lines, for this kind of document
        window = self.window().height() or 600
        most = max(3 * line, int(window * MAX_SHARE))
        height = min(most, max(2, int(lines)) * line + 8)
        self.input.setFixedHeight(height)
        if not self.chips.isHidden():
            self.chips.setFixedHeight(self.chips.fit(max(200, self.width() - 2 * M)))

    def resizeEvent(self, event: object) -> None:
        self._fit()

    @Slot()
    def refresh_theme(self) -> None:
        self.input.setFont(self._theme.font())
        self.input.viewport().setFont(self._theme.font())  # the placeholder's, which a style sheet leaves as it was
        self.input.setPlaceholderText("")  # Qt lays it out anew for another text alone
        self.input.setPlaceholderText(self.tr("Message…"))
        size = self._theme.px(18)
        for tool in (self.attach, self.parameters):
            tool.setIconSize(QSize(size, size))
        self._fit()
