"""Where the splitters of a screen stand, kept across starts."""

from __future__ import annotations

import json

from PySide6.QtCore import QEvent, QObject, QTimer, Slot
from PySide6.QtWidgets import QSplitter, QWidget

from slipstream_app.screens.base import Screen
from slipstream_app.settings import Settings
from slipstream_app.widgets.divided import Divided


def recall(settings: Settings, screen: Screen) -> None:
    """What was kept of other splitters than these is left out."""
    for number, splitter in enumerate(screen.findChildren(QSplitter)):
        sizes = _sizes(settings.recall(_key(screen, number)))
        if len(sizes) == splitter.count():
            splitter.setSizes(sizes)
            hidden = [part for part in map(splitter.widget, range(splitter.count())) if part.isHidden()]
            if hidden:
                _WhenShown(splitter, hidden[0], sizes)


def remember(settings: Settings, screen: Screen) -> None:
    """But where a part is hidden, whose size says nothing then, and where nobody moved it."""
    for number, splitter in enumerate(screen.findChildren(QSplitter)):
        sizes = splitter.sizes()
        if all(sizes) and not (isinstance(splitter, Divided) and splitter.divides_itself):
            settings.remember(_key(screen, number), json.dumps(sizes))


class _WhenShown(QObject):
    """A part that is hidden has no size yet: set once it is shown."""

    def __init__(self, splitter: QSplitter, part: QWidget, sizes: list[int]) -> None:
        super().__init__(splitter)
        self._splitter = splitter
        self._sizes = sizes
        part.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.Show:
            watched.removeEventFilter(self)
            QTimer.singleShot(0, self._set)
        return False

    @Slot()
    def _set(self) -> None:
        self._splitter.setSizes(self._sizes)
        self.deleteLater()


def _sizes(kept: object) -> list[int]:
    try:
        found: object = json.loads(str(kept or "[]"))
    except ValueError:
        return []
    return [int(size) for size in found if type(size) is int and size > 0] if isinstance(found, list) else []


def _key(screen: Screen, number: int) -> str:
    return f"splitters/{screen.NAME}/{number}"
