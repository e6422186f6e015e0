"""After a change of colours: widgets look at the palette again, those in sight at once, others a little at a time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from PySide6.QtCore import QObject, QTimer, Slot
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import isValid

SLICE_S = 0.008  # between two looks at events


@runtime_checkable
class Coloured(Protocol):
    """A widget with colours that the palette does not give it."""

    def recolour(self) -> None: ...


class Restyling(QObject):
    """Qt keeps the colours it once read from a style sheet, so each widget has to be polished again. Main thread."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._waiting: deque[QWidget] = deque()  # with all that is in them
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(self._go_on)

    @property
    def is_running(self) -> bool:
        return self._timer.isActive()

    def start(self) -> None:
        """Before this returns, all that can be seen has the new colours."""
        self._waiting.clear()
        # Parents first: what they pass on is not passed on twice. With what of a widget can be seen, in its own pixels.
        seen = deque((window, window.rect()) for window in QApplication.topLevelWidgets())
        hidden: list[QWidget] = []
        while seen:
            widget, sight = seen.popleft()
            if not widget.isVisible():
                hidden.append(widget)
                continue
            if sight.isEmpty():
                self._waiting.append(widget)  # a wheel's turn away
                continue
            restyle(widget)
            for child in _children(widget):
                seen.append((child, sight.translated(-child.pos()).intersected(child.rect())))
        self._waiting.extend(hidden)
        self._timer.start()

    @Slot()
    def _go_on(self) -> None:
        until = time.monotonic() + SLICE_S
        while self._waiting:
            widget = self._waiting.popleft()
            if isValid(widget):
                restyle(widget)
                self._waiting.extendleft(_children(widget))
            if time.monotonic() > until:
                return
        self._timer.stop()


def _children(widget: QWidget) -> Iterable[QWidget]:
    return (child for child in widget.children() if isinstance(child, QWidget) and not child.isWindow())


def restyle(widget: QWidget) -> None:
    """As the style sheet has it now, for the palette and the properties of now."""
    font = widget.font()
    style = widget.style()
    style.unpolish(widget)
    style.polish(widget)
    if widget.font() != font:  # Qt goes back to the one that the widget had when it was first polished
        widget.setFont(font)
    QWidget.update(widget)  # a list has another `update`
    if isinstance(widget, Coloured):
        widget.recolour()
