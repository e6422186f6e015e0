"""What VoiceOver is told without being asked: that something ended or went wrong, never each token."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent


def announce(about: QObject, words: str, *, is_urgent: bool = False) -> None:
    """`is_urgent`: what is being read is broken off for it."""
    event = QAccessibleAnnouncementEvent(about, words)
    if is_urgent:
        event.setPoliteness(QAccessible.AnnouncementPoliteness.Assertive)
    tell(event)


def tell(event: QAccessibleAnnouncementEvent) -> None:
    QAccessible.updateAccessibility(event)
