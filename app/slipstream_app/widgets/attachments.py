"""Files that go with a message: read as text when they are added, shown as chips."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QRect, QSize, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QToolButton, QWidget

from slipstream_app.icons import icon
from slipstream_app.messages import Attachment
from slipstream_app.numbers import count_text, number_text
from slipstream_app.theme import XS, S, Theme
from slipstream_app.widgets.panel import Words

MAX_BYTES = 4 * 1024 * 1024  # of a file; more text than any context takes
_IMAGES = {".png", ".jpg", ".jpeg", ".gif", ".webp", ".heic", ".bmp", ".tif", ".tiff", ".svgz", ".avif"}


class Refused(Exception):
    """Why a file cannot be attached: a key of the composer's sentences, and the file's name."""

    def __init__(self, reason: str, name: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.name = name


def read(path: Path) -> Attachment:
    """The text of a file. Raises Refused: "image", "large", "unreadable", "pdf_empty" or "binary"."""
    name = path.name
    if path.suffix.lower() in _IMAGES:
        raise Refused("image", name)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise Refused("large", name)
        data = path.read_bytes()
    except OSError as error:
        raise Refused("unreadable", name) from error
    if data.startswith(b"%PDF"):
        return Attachment(name, _pdf_text(data, name))
    for encoding in ("utf-8-sig", *(("utf-16",) if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ())):
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            return Attachment(name, text)
    raise Refused("binary", name)


def _pdf_text(data: bytes, name: str) -> str:
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        pages = [page.extract_text() for page in PdfReader(io.BytesIO(data)).pages]
    except (PyPdfError, ValueError, KeyError, TypeError, RecursionError) as error:  # what damaged files make it raise
        raise Refused("unreadable", name) from error
    text = "\n\n".join(page.strip() for page in pages if page.strip())
    if not text:
        raise Refused("pdf_empty", name)
    return text


class Chip(QFrame):
    removed = Signal()

    def __init__(
        self, theme: Theme, attachment: Attachment, *, can_remove: bool, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setProperty("role", "chip")
        name = Words(theme, attachment.name, scale=0.92)
        size = Words(theme, _size(len(attachment.text)), "muted", scale=0.92)
        row = QHBoxLayout(self)
        row.setContentsMargins(S, XS, XS if can_remove else S, XS)
        row.setSpacing(S)
        row.addWidget(name)
        row.addWidget(size)
        if can_remove:
            remove = QToolButton()
            remove.setProperty("role", "flat")
            remove.setIcon(icon(theme, "x", "muted"))
            remove.setIconSize(QSize(theme.px(12), theme.px(12)))
            remove.setAccessibleName(self.tr("Remove {0}").format(attachment.name))
            remove.clicked.connect(self.removed)
            row.addWidget(remove)
        self.setToolTip(attachment.text[:600])


class Chips(QWidget):
    """Chips that flow over several lines."""

    removed = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget | None = None, *, can_remove: bool = False) -> None:
        super().__init__(parent)
        self._theme = theme
        self._can_remove = can_remove
        self._attachments: tuple[Attachment, ...] = ()
        self._chips: list[Chip] = []
        theme.resized.connect(self.refresh_theme)

    def set_attachments(self, attachments: Sequence[Attachment]) -> None:
        self._attachments = tuple(attachments)
        for chip in self._chips:
            chip.hide()
            chip.deleteLater()
        self._chips = []
        for at, attachment in enumerate(self._attachments):
            chip = Chip(self._theme, attachment, can_remove=self._can_remove, parent=self)
            chip.removed.connect(lambda at=at: self.removed.emit(at))
            chip.show()
            self._chips.append(chip)

    def fit(self, width: int) -> int:
        x = y = row = 0
        for chip in self._chips:
            size = chip.sizeHint()
            wide = min(size.width(), width)
            if x and x + wide > width:
                x, y = 0, y + row + XS
                row = 0
            chip.setGeometry(QRect(x, y, wide, size.height()))
            x += wide + S
            row = max(row, size.height())
        return y + row

    @Slot()
    def refresh_theme(self) -> None:
        self.set_attachments(self._attachments)


def _size(characters: int) -> str:
    return count_text(characters) if characters < 1024 else f"{number_text(characters / 1024, 0)} K"
