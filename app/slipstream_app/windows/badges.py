"""The sidebar's counts: what came to an end on a screen while nobody looked at it."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot

from slipstream.events import Done, Event, Failed, Finish
from slipstream_app.screens.base import AppContext, Screen
from slipstream_app.widgets.sidebar import Sidebar

CHAT = "chat"  # the screen, and the source of its jobs


class Badges(QObject):
    def __init__(self, app: AppContext, sidebar: Sidebar, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._sidebar = sidebar
        self._counts: dict[str, int] = {}
        self._seen = ""  # the screen that can be seen
        self._replies: set[int] = set()  # numbers of jobs
        app.bus.opened.connect(self._on_opened)
        app.bus.said.connect(self._on_said)
        app.trainings.made.connect(self._on_made)

    def see(self, place: str) -> None:
        """This screen is in front now; "": none, as the window is hidden."""
        self._seen = place
        if self._counts.pop(place, 0):
            self._sidebar.set_badge(place, 0)

    def follow(self, screen: Screen) -> None:
        screen.news.connect(self._on_news)

    def add(self, place: str) -> None:
        if place != self._seen:
            self._counts[place] = self._counts.get(place, 0) + 1
            self._sidebar.set_badge(place, self._counts[place])

    @Slot()
    def _on_news(self) -> None:
        screen = self.sender()
        if isinstance(screen, Screen):
            self.add(screen.NAME)

    @Slot(object)
    def _on_made(self, _: object) -> None:
        self.add("models")

    @Slot(int, str, object)
    def _on_opened(self, job: int, source: str, request: object) -> None:
        if source == CHAT:
            self._replies.add(job)

    @Slot(int, object)
    def _on_said(self, job: int, event: Event) -> None:
        if job in self._replies and isinstance(event, Done | Failed):
            self._replies.discard(job)
            if not (isinstance(event, Done) and event.reason is Finish.CANCELLED):
                self.add(CHAT)
