"""The engine's thread, as Qt sees it."""

from __future__ import annotations

import queue
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from slipstream.engine.costs import Costs
from slipstream.events import Empty, Report, Status
from slipstream.jobs import Inbox, cancelled_before_start
from slipstream.service import Engine, serve
from slipstream_app.bridge.pair import PairChoice, costs_of, ledger_of

if TYPE_CHECKING:
    from slipstream.engine.held import Ledger

OpenPair = Callable[[PairChoice, Report], Engine]


@dataclass(frozen=True, slots=True)
class Wish:
    """A pair to load, and the inbox whose closing ends its life."""

    choice: PairChoice
    inbox: Inbox


class EngineWorker(QObject):
    """Hosts the engine's loop on its thread, one pair after the other. Knows nothing of widgets or of what jobs say."""

    def __init__(self, open_pair: OpenPair, emit: Callable[[Status], None]) -> None:
        super().__init__()
        self._open_pair = open_pair
        self._emit = emit
        self.costs: Costs | None = None  # of the loaded pair
        self.ledger: Ledger | None = None
        self._wishes: queue.SimpleQueue[Wish | None] = queue.SimpleQueue()

    def wish(self, wish: Wish | None) -> None:
        """From any thread: what to load once the current inbox is closed. None ends `run`."""
        self._wishes.put(wish)

    @Slot()
    def run(self) -> None:
        """Returns after the wish None."""
        while (wish := self._wishes.get()) is not None:
            choice, inbox = wish.choice, wish.inbox
            if not inbox.is_closed:
                serve(inbox, lambda report, choice=choice: self._open(choice, report), self._emit, name=choice.title)
                self.costs = self.ledger = None
            while (job := inbox.get(wait=False)) is not None:  # taken back before it was loaded
                job.sink(cancelled_before_start(job))
            if self._wishes.empty():
                self._emit(Empty())

    def _open(self, choice: PairChoice, report: Report) -> Engine:
        engine = self._open_pair(choice, report)
        self.costs, self.ledger = costs_of(engine), ledger_of(engine)
        return engine
