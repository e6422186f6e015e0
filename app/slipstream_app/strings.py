"""Words for people: marking them for the translators, and choosing the language. The words are in `resources/i18n`."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication


def mark(context: str, text: str) -> str:
    """Marks a text of a table; `shown` translates it where it is shown."""
    return text


def shown(context: str, text: str) -> str:
    return QCoreApplication.translate(context, text)
