"""How much of what each drafter drafted was kept on this machine, by finished answers of every kind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QObject, Signal, Slot

from slipstream.events import Delta, Done, Event, Failed
from slipstream_app.bridge.pair import PairChoice
from slipstream_app.bridge.session import Session
from slipstream_app.settings import Settings

KEY = "accepted"
MOST = 100_000  # drafts; what was seen before counts half once there are more, so that a new version of a drafter shows
KEPT = 100  # pairs


@dataclass(frozen=True, slots=True)
class Accepted:
    """One drafter's drafts."""

    drafted: int = 0
    accepted: int = 0
    rounds: int = 0

    @property
    def share(self) -> float:
        return self.accepted / self.drafted

    @property
    def per_round(self) -> float:
        """Tokens, the target's own included."""
        return 1 + self.accepted / self.rounds

    def plus(self, other: Accepted) -> Accepted:
        older = 0.5 if self.drafted > MOST else 1.0
        return Accepted(
            round(older * self.drafted) + other.drafted,
            round(older * self.accepted) + other.accepted,
            round(older * self.rounds) + other.rounds,
        )


class Acceptances(QObject):
    """Kept across starts, by pair and by who drafted; nothing is there before it was measured."""

    changed = Signal()

    def __init__(self, session: Session, settings: Settings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._settings = settings
        self._open: dict[int, tuple[PairChoice, dict[str, Accepted]]] = {}  # by job
        session.bus.opened.connect(self._on_opened)
        session.bus.said.connect(self._on_said)

    def of(self, choice: PairChoice) -> Mapping[str, Accepted]:
        """By who drafted, as a round names it: "dspark", "lookup", …"""
        return _read(self._stored().get(_name(choice)))

    @Slot(int, str, object)
    def _on_opened(self, job: int, *_: object) -> None:
        if self._session.choice is not None:
            self._open[job] = self._session.choice, {}

    @Slot(int, object)
    def _on_said(self, job: int, event: Event) -> None:
        if job not in self._open:
            return
        match event:
            case Delta(round=made) if made is not None and made.drafted:
                seen = self._open[job][1]
                new = Accepted(len(made.drafted), made.accepted, 1)
                seen[made.source] = seen.get(made.source, Accepted()).plus(new)
            case Done():
                self._keep(*self._open.pop(job))
            case Failed():
                del self._open[job]  # whatever went wrong, its rounds are no measurement
            case _:
                pass

    def _keep(self, choice: PairChoice, seen: Mapping[str, Accepted]) -> None:
        if not seen:
            return
        stored = self._stored()
        before = _read(stored.pop(_name(choice), None))
        after = before | {source: before.get(source, Accepted()).plus(new) for source, new in seen.items()}
        stored[_name(choice)] = {
            source: [one.drafted, one.accepted, one.rounds] for source, one in after.items()
        }  # at the end: the latest
        self._settings.remember(KEY, json.dumps(dict(list(stored.items())[-KEPT:])))
        self.changed.emit()

    def _stored(self) -> dict[str, Any]:
        """Any: a file may say anything."""
        try:
            found = json.loads(str(self._settings.recall(KEY, "") or "{}"))
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


def _name(choice: PairChoice) -> str:
    """Of the pair itself, whatever title it is shown under."""
    drafters = ("own",) if choice.drafters is None else choice.drafters
    return " + ".join((choice.target or "built in", *drafters))


def _read(stored: Any) -> dict[str, Accepted]:
    """What cannot be read was not measured."""
    found: dict[str, Accepted] = {}
    for source, numbers in stored.items() if isinstance(stored, dict) else ():
        try:
            one = Accepted(*(int(number) for number in numbers))
        except (TypeError, ValueError, OverflowError):
            continue
        if 0 <= one.accepted <= one.drafted and one.drafted > 0 and one.rounds > 0:
            found[str(source)] = one
    return found
