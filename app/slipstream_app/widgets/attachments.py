"""Files that go with a message, shown as chips."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRect, QSize, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QToolButton, QWidget

from slipstream_app.icons import icon
from slipstream_app.messages import Attachment
from slipstream_app.models.attaching import Attaching
from slipstream_app.numbers import brief_text
from slipstream_app.theme import XS, S, Theme
from slipstream_app.widgets.panel import Words, button


class Chip(QFrame):
    removed = Signal()

    def __init__(
        self, theme: Theme, attachment: Attachment, *, can_remove: bool, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setProperty("role", "chip")
        name = Words(theme, attachment.name, scale=0.92)
        size = Words(theme, brief_text(len(attachment.text)), "muted", scale=0.92)
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


class ReadingRow(QWidget):
    """Names the files that are being read, and gives them up. Hidden where there are none."""

    def __init__(self, theme: Theme, attaching: Attaching, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._attaching = attaching
        self.words = Words(theme, role="muted", scale=0.95)
        self.give_up = button(self.tr("Cancel"), name=self.tr("Do not attach them"))
        self.give_up.clicked.connect(attaching.give_up)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.words, 1)
        row.addWidget(self.give_up)
        attaching.changed.connect(self._show)
        self._show()

    @Slot()
    def _show(self) -> None:
        names = self._attaching.names
        self.words.say(self.tr("Reading {0}…").format(", ".join(names)))
        self.setVisible(bool(names))
