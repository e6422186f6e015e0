"""What can be asked of one part of a message: of prose or of a card with code."""

from __future__ import annotations

from PySide6.QtCore import QObject, QPoint
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMenu

from slipstream_app.strings import mark, shown
from slipstream_app.widgets.code_card import CodeCard
from slipstream_app.widgets.prose import Prose


def is_in_use(part: Prose | CodeCard) -> bool:
    """It has something that a new one would not have: a selection, the keyboard, wrapped lines."""
    body = part.body if isinstance(part, CodeCard) else part
    is_wrapped = isinstance(part, CodeCard) and part.wrap.isChecked()
    return is_wrapped or body.textCursor().hasSelection() or body.hasFocus()


def add_copying(menu: QMenu, part: QObject, at: QPoint) -> None:
    """What can be copied of `part` at a place on the screen: its selection, and the link there."""
    copy = shown("MessageWidget", mark("MessageWidget", "Copy"))
    body = part.body if isinstance(part, CodeCard) else part
    if isinstance(body, Prose):
        menu.addAction(copy, body.copy).setEnabled(body.textCursor().hasSelection())
        if link := body.anchorAt(body.viewport().mapFromGlobal(at)):
            words = shown("MessageWidget", mark("MessageWidget", "Copy link"))
            menu.addAction(words, lambda: QGuiApplication.clipboard().setText(link))
    elif isinstance(part, CodeCard):
        menu.addAction(copy, part.body.copy).setEnabled(part.body.textCursor().hasSelection())
