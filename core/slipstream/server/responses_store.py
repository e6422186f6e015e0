"""Answers that a later request may go on from, in memory and bounded: the oldest go first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slipstream.server.conversation import Message

MAX_RESPONSES = 256
MAX_BYTES = 64 * 1024 * 1024

Json = dict[str, Any]  # Any: a JSON document


@dataclass(frozen=True, slots=True)
class Kept:
    """`messages`: the whole conversation, the answer included, instructions not."""

    response: Json
    messages: tuple[Message, ...]
    bytes: int  # of what this turn added


class ResponseStore:
    def __init__(self, max_responses: int = MAX_RESPONSES, max_bytes: int = MAX_BYTES) -> None:
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._running: dict[str, tuple[Callable[[], Json], Callable[[], None]]] = {}
        self._max_responses = max_responses
        self._max_bytes = max_bytes
        self.bytes = 0

    def begin(self, response_id: str, state: Callable[[], Json], cancel: Callable[[], None]) -> None:
        """An answer is under way. `end` it in any case."""
        self._running[response_id] = (state, cancel)

    def end(self, response_id: str) -> None:
        self._running.pop(response_id, None)

    def keep(self, kept: Kept) -> None:
        self.forget(kept.response["id"])
        self._kept[kept.response["id"]] = kept
        self.bytes += kept.bytes
        while len(self._kept) > self._max_responses or (self.bytes > self._max_bytes and len(self._kept) > 1):
            self.forget(next(iter(self._kept)))

    def __len__(self) -> int:
        return len(self._kept)

    def forget(self, response_id: str) -> bool:
        kept = self._kept.pop(response_id, None)
        if kept is not None:
            self.bytes -= kept.bytes
        return kept is not None

    def find(self, response_id: str) -> Kept | None:
        if response_id in self._kept:
            self._kept.move_to_end(response_id)
        return self._kept.get(response_id)

    def response(self, response_id: str) -> Json | None:
        """As it stands, under way or ended."""
        if response_id in self._running:
            return self._running[response_id][0]()
        kept = self.find(response_id)
        return None if kept is None else kept.response

    def cancel(self, response_id: str) -> bool:
        """Whether it was under way."""
        running = self._running.get(response_id)
        if running is not None:
            running[1]()
        return running is not None

    def item(self, item_id: str) -> Json | None:
        """An output item of a kept answer, the latest first."""
        for kept in reversed(self._kept.values()):
            for item in kept.response["output"]:
                if item.get("id") == item_id:
                    return item
        return None
