"""After a change of colours or sizes: widgets look at the style sheet again, those in sight at once, others a little at
a time.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from functools import cache
from typing import Protocol, cast, runtime_checkable

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Slot
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import isValid

SLICE_S = 0.008  # between two looks at events
_LEAVING = Qt.WidgetAttribute.WA_DontShowOnScreen  # kept only until there is time to delete it


@runtime_checkable
class Coloured(Protocol):
    """A widget with colours that the palette does not give it."""

    def recolour(self) -> None: ...


@runtime_checkable
class Sized(Protocol):
    """A widget whose text is larger or smaller than other text, or bold."""

    def resize_text(self) -> None: ...


@cache
def _is_coloured(kind: type[QWidget]) -> bool:  # to ask each widget costs as much as to style it
    return issubclass(kind, Coloured)


@cache
def _is_sized(kind: type[QWidget]) -> bool:
    return issubclass(kind, Sized)


class Restyling(QObject):
    """Qt keeps the colours and lengths it once read from a style sheet, so each widget has to be polished again.

    Main thread.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._waiting: deque[QWidget] = deque()  # with all that is in them
        self._hidden: list[QWidget] = []  # that waited, or do: each is looked after, should it be shown meanwhile
        self._is_resized = False  # those that wait need new sizes
        self._is_recoloured = False  # and new colours
        self._around: list[QWidget] = []  # in sight, with something in them that waits
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(self._go_on)

    @property
    def is_running(self) -> bool:
        return self._timer.isActive()

    def change_sheet(self, app: QApplication, sheet: str, *, is_recoloured: bool) -> None:
        """Another style sheet, and where `is_recoloured` another palette. Before this returns, all that can be seen
        follows it.

        Set as usual, Qt would style every widget whose rules it has read, and once more for each of its ancestors:
        seconds with all screens open. So what it has read goes first.
        """
        style = app.style()
        style.unpolish(app)  # `QStyleSheetStyle` forgets all rules here, and looks for widgets in no other place
        style.polish(app)
        app.setStyleSheet(sheet)
        self.start(is_resized=True, is_recoloured=is_recoloured)

    def start(self, *, is_resized: bool = False, is_recoloured: bool = True) -> None:
        """Before this returns, all that can be seen has the new colours, and its new size where `is_resized`."""
        self._is_resized = is_resized or (self._is_resized and self.is_running)
        self._is_recoloured = is_recoloured or (self._is_recoloured and self.is_running)
        self._waiting.clear()
        self._let_go()
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
            self._restyle(widget)
            for child in _children(widget):
                seen.append((child, sight.translated(-child.pos()).intersected(child.rect())))
        for widget in hidden:
            self._look_after(widget)
        self._waiting.extend(hidden)
        self._around = [parent for widget in hidden if (parent := widget.parentWidget()) is not None]
        self._timer.start()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Of widgets that are hidden while others are restyled: no page, drawer or menu is shown with its old sizes."""
        if event.type() is QEvent.Type.Show and isinstance(watched, QWidget):
            self._hurry(watched)
        return False

    def _hurry(self, root: QWidget) -> None:
        """It is being shown: what will be seen of it waits no longer."""
        mine = [
            widget
            for widget in self._waiting
            if isValid(widget) and (widget is root or root.isAncestorOf(widget)) and widget.isVisibleTo(root)
        ]
        for widget in mine:
            self._waiting.remove(widget)
        while mine:
            widget = mine.pop()
            self._restyle(widget)
            for child in _children(widget):
                if child.isHidden():
                    self._look_after(child)
                    self._waiting.appendleft(child)
                else:
                    mine.append(child)

    def _look_after(self, hidden: QWidget) -> None:
        self._hidden.append(hidden)
        hidden.installEventFilter(self)

    def _let_go(self) -> None:
        for widget in self._hidden:
            if isValid(widget):
                widget.removeEventFilter(self)
        self._hidden = []

    @Slot()
    def _go_on(self) -> None:
        until = time.monotonic() + SLICE_S
        while self._waiting:
            widget = self._waiting.popleft()
            if isValid(widget):
                self._restyle(widget)
                for child in _children(widget):
                    if child.isHidden():
                        self._look_after(child)
                    self._waiting.appendleft(child)
            if time.monotonic() > until:
                return
        self._timer.stop()
        self._let_go()
        if self._is_resized:
            for widget in dict.fromkeys(self._around):
                if isValid(widget):
                    _measure_anew(widget)  # some bars are as high as what hides in them
        self._is_resized = self._is_recoloured = False
        self._around = []

    def _restyle(self, widget: QWidget) -> None:
        restyle(widget, is_resized=self._is_resized, is_recoloured=self._is_recoloured)


def _children(widget: QWidget) -> Iterable[QWidget]:
    return (
        child
        for child in widget.children()
        if isinstance(child, QWidget) and not child.isWindow() and not child.testAttribute(_LEAVING)
    )


def _measure_anew(widget: QWidget) -> None:
    QApplication.sendEvent(widget, QEvent(QEvent.Type.StyleChange))


def restyle(widget: QWidget, *, is_resized: bool = False, is_recoloured: bool = True) -> None:
    """As the style sheet has it now, for the palette and the properties of now."""
    font, kind, style = widget.font(), type(widget), widget.style()
    if is_recoloured:
        style.unpolish(widget)
    style.polish(widget)
    if is_resized and _is_sized(kind):
        cast(Sized, widget).resize_text()
    elif widget.font() != font:  # Qt goes back to the one that the widget had when it was first polished
        widget.setFont(font)
    if is_resized:
        _measure_anew(widget)
    QWidget.update(widget)  # a list has another `update`
    if is_recoloured and _is_coloured(kind):
        cast(Coloured, widget).recolour()
