"""Banners: one sentence above the screen, with what to do about it. The queue, and the strip that shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from slipstream_app.icons import icon
from slipstream_app.theme import M, S, Theme
from slipstream_app.widgets.announcing import announce
from slipstream_app.widgets.panel import with_units


class Kind(StrEnum):
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Banner:
    """`key` names the occasion: a second banner with it replaces the first."""

    key: str
    kind: Kind
    text: str
    action: str = ""  # the button's words
    run: Callable[[], None] | None = None
    details: str = ""


class Banners(QObject):
    """What there is to say now, the newest of the worst kind first."""

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._banners: list[Banner] = []

    def show(self, banner: Banner) -> None:
        self._banners = [other for other in self._banners if other.key != banner.key]
        self._banners.append(banner)
        self.changed.emit()

    def dismiss(self, key: str) -> None:
        kept = [banner for banner in self._banners if banner.key != key]
        if len(kept) != len(self._banners):
            self._banners = kept
            self.changed.emit()

    @property
    def current(self) -> Banner | None:
        order = {Kind.ERROR: 2, Kind.WARNING: 1, Kind.INFO: 0}
        newest_first = list(reversed(self._banners))
        return max(newest_first, key=lambda banner: order[banner.kind]) if newest_first else None

    def __len__(self) -> int:
        return len(self._banners)


COLOR = {Kind.INFO: "accent", Kind.WARNING: "warn", Kind.ERROR: "bad"}
ICON = {Kind.INFO: "info", Kind.WARNING: "triangle-alert", Kind.ERROR: "circle-alert"}


class BannerBar(QFrame):
    """Shows the current banner of a queue, one at a time, and how many there are."""

    def __init__(self, theme: Theme, banners: Banners, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._banners = banners
        self._shown: Banner | None = None
        self._mark = QLabel()
        self._text = QLabel()
        self._text.setWordWrap(True)
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._text.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self._count = QLabel()
        self._count.setProperty("role", "muted")
        self.action = QPushButton()
        self.details = QPushButton(self.tr("Details"))
        self.details.setCheckable(True)
        self.close_button = QToolButton()
        self.close_button.setProperty("role", "flat")
        self.close_button.setIcon(icon(theme, "x", "muted"))
        self.close_button.setAccessibleName(self.tr("Close this message"))
        self.close_button.setToolTip(self.tr("Close"))
        self._more = QLabel()
        self._more.setWordWrap(True)
        self._more.setTextFormat(Qt.TextFormat.PlainText)
        self._more.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._more.setProperty("role", "muted")
        row = QHBoxLayout()
        row.setSpacing(S)
        for widget, stretch in (
            (self._mark, 0),
            (self._text, 1),
            (self._count, 0),
            (self.details, 0),
            (self.action, 0),
            (self.close_button, 0),
        ):
            row.addWidget(widget, stretch)
        column = QVBoxLayout(self)
        column.setContentsMargins(M, S, S, S)
        column.addLayout(row)
        column.addWidget(self._more)
        self.action.clicked.connect(self._on_action)
        self.details.toggled.connect(self._more.setVisible)
        self.close_button.clicked.connect(self._on_close)
        banners.changed.connect(self.refresh)
        theme.changed.connect(self.refresh)
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        banner = self._banners.current
        self.setVisible(banner is not None)
        if banner is None:
            self._shown = None
            return
        size = self._theme.px(18)
        self._mark.setPixmap(icon(self._theme, ICON[banner.kind], COLOR[banner.kind]).pixmap(size, size))
        self._text.setText(with_units(banner.text))
        self.setAccessibleName(banner.text)
        self.action.setVisible(bool(banner.action))
        self.action.setText(banner.action)
        self.details.setVisible(bool(banner.details))
        self._more.setText(with_units(banner.details))
        self._count.setVisible(len(self._banners) > 1)
        self._count.setText(self.tr("%n messages", "", len(self._banners)))
        if banner is not self._shown:
            announce(self, banner.text, is_urgent=banner.kind is Kind.ERROR)
            self.details.setChecked(False)
            self._more.hide()
        self._shown = banner
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        color = self._theme.color(COLOR[self._shown.kind] if self._shown is not None else "border")
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._theme.color("raised"))
        painter.fillRect(0, 0, 3, self.height(), color)

    @Slot()
    def _on_action(self) -> None:
        banner = self._shown
        if banner is not None:
            self._banners.dismiss(banner.key)
            if banner.run is not None:
                banner.run()

    @Slot()
    def _on_close(self) -> None:
        if self._shown is not None:
            self._banners.dismiss(self._shown.key)
