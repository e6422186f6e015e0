"""Who could draft for a model: with the loaded pair from the next answer on, with another one once it is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from slipstream.types import Mode
from slipstream_app.bridge.pair import PairChoice
from slipstream_app.models.acceptance import Acceptances, Accepted
from slipstream_app.models.drafting import Drafting
from slipstream_app.models.pairs import PairRow, Shelf

Value = Mode | PairChoice  # of the loaded pair, who drafts; of another, what to load


@dataclass(frozen=True, slots=True)
class DrafterOption:
    """`measured`: of each who drafts in it, what was kept here; None: not measured."""

    value: Value
    measured: tuple[tuple[Mode, Accepted | None], ...] = ()


def of_loaded(choice: PairChoice, drafting: Drafting, acceptances: Acceptances) -> tuple[DrafterOption, ...]:
    known = acceptances.of(choice)
    return tuple(DrafterOption(mode, _measured(_who(mode), known)) for mode in drafting.offered)


def of_row(row: PairRow, rows: Sequence[PairRow], acceptances: Acceptances) -> tuple[DrafterOption, ...]:
    """The pair itself, the other drafters that are here for its model, and none."""
    if row.shelf is not Shelf.ON_MAC or row.problem:
        return ()
    here = [one for one in rows if one.shelf is Shelf.ON_MAC and one.choice.target == row.choice.target and one.modes]
    made = [DrafterOption(one.choice, _measured(one.modes, acceptances.of(one.choice))) for one in here]
    return (*made, DrafterOption(without_drafter(row)))


def without_drafter(row: PairRow) -> PairChoice:
    return row.choice if row.choice.drafters == () else replace(row.choice, title=row.target_title, drafters=())


def _who(mode: Mode) -> tuple[Mode, ...]:
    return () if mode in (Mode.AUTO, Mode.BASELINE) else (mode,)


def _measured(modes: Sequence[Mode], known: Mapping[str, Accepted]) -> tuple[tuple[Mode, Accepted | None], ...]:
    return tuple((mode, known.get(mode.value)) for mode in modes)
