"""How the `models` command names models and writes what is known of them, for people and for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slipstream.commands.output import can_say_everything
from slipstream.errors import ModelNotFound
from slipstream.store import catalog, local, preferences
from slipstream.store.catalog import DrafterEntry, TargetEntry
from slipstream.store.local import Broken, Complete, LocalModel, Partial, Place, Role
from slipstream.store.sizes import words

if TYPE_CHECKING:
    from slipstream.store.memory import Fit

OK, NO, STOPPED = 0, 1, 130


def repository(name: str) -> tuple[str, TargetEntry | None]:
    """A hub name, from the catalogue where there is no publisher in it."""
    known = catalog.default()
    target = known.find(name)
    if "/" in name:
        return name, target
    if target is None:
        raise ModelNotFound(f"the catalogue has no {name}; write it as publisher/model, or search for it")
    return target.precision(preferences.read().bits)[1], target


def here_as(name: str) -> LocalModel | None:
    try:
        return local.find(name)
    except ModelNotFound:
        return None


def state_of(model: LocalModel) -> str:
    match model.state:
        case Complete():
            return "complete"
        case Partial(done, total):
            return f"incomplete, {words(done)} of {words(total)}; go on with: slipstream models pull {model.name}"
        case Broken(reason):
            return reason


def expectation(drafter: DrafterEntry) -> str:
    said = [drafter.kind]
    if drafter.acceptance:
        said.append(f"{drafter.acceptance:g} tokens per pass")
    if drafter.speedup:
        said.append(f"{drafter.speedup:g}x ({drafter.measured})")
    return f"  [{', '.join(said)}]"


def fit_line(found: Fit) -> str:
    share = f"{words(found.total)} of {words(found.limit.bytes)} {found.limit.kind} at {found.context:,} tokens"
    return f"{found.verdict.value}: {share}"


def tokens(count: int | None) -> str:
    return f"{count:,}" if count else ""


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    for row in (header, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def pairs(items: dict[str, str | None]) -> None:
    shown = {key: value for key, value in items.items() if value}
    width = max(map(len, shown))
    for key, value in shown.items():
        print(f"  {key:{width}}  {value}")


def as_json(model: LocalModel) -> dict[str, Any]:
    state = model.state
    known = (
        catalog.default().find(model.name) if model.role is Role.TARGET and model.place is not Place.BUILT_IN else None
    )
    return plain(model) | {
        "state": type(state).__name__.lower(),
        "reason": state.reason if isinstance(state, Broken) else None,
        "done": state.done if isinstance(state, Partial) else None,
        "total": state.total if isinstance(state, Partial) else None,
        "drafters": [drafter.repo for drafter in known.drafters] if known else [],
    }


def print_indented(data: object) -> int:
    print(json.dumps(data, indent=2, ensure_ascii=not can_say_everything(sys.stdout)))
    return OK


def plain(value: Any) -> Any:
    """A dataclass as what JSON can say. Any: whatever a dataclass may hold."""

    def simple(item: Any) -> Any:
        match item:
            case Enum():
                return item.value
            case Path():
                return str(item)
            case dict():
                return {str(key): simple(each) for key, each in item.items()}
            case list() | tuple():
                return [simple(each) for each in item]
            case _:
                return item

    return simple(asdict(value))
