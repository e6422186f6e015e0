"""One job of the window, followed to its end."""

from __future__ import annotations

from contextlib import ExitStack

from PySide6.QtCore import QObject, Qt, Signal, Slot

from slipstream.events import Done, Event, Failed
from slipstream.jobs import Job
from slipstream.types import Request
from slipstream_app.bridge.session import Session


class JobFollower(QObject):
    """Hands on what one job says, in order, on the main thread."""

    said = Signal(object)  # Event

    def __init__(self, session: Session, request: Request, source: str, parent: QObject | None = None) -> None:
        """Raises Busy, Closed or ModelNotFound."""
        super().__init__(parent)
        self._session = session
        # Queued, as the first event is said inside `submit`, before there is a job to compare with.
        session.bus.said.connect(self._hear, Qt.ConnectionType.QueuedConnection)
        with ExitStack() as on_failure:
            on_failure.callback(session.bus.said.disconnect, self._hear)
            self.job: Job = session.submit(request, source)
            on_failure.pop_all()
        self.is_over = False

    def cancel(self) -> None:
        self._session.cancel(self.job)

    def forget(self) -> None:
        """Hear no more; the job is cancelled."""
        if not self.is_over:
            self.is_over = True
            self._session.bus.said.disconnect(self._hear)
            self.cancel()

    @Slot(int, object)
    def _hear(self, number: int, event: Event) -> None:
        if number != self.job.number or self.is_over:
            return
        if isinstance(event, Done | Failed):
            self.is_over = True
            self._session.bus.said.disconnect(self._hear)
        self.said.emit(event)
