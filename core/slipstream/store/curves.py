"""Cost curves on disk: one file for each model, quantisation, version and machine; in it, one set for each power state.

Reading and writing may happen on any thread and in several processes.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipstream.curves import Curves, Table
from slipstream.store import machine
from slipstream.store.atomic import exclusive, write_text
from slipstream.store.paths import cache_dir
from slipstream.types import Mode, ModelInfo

FORMAT = 1
_NUMBERS: dict[str, Any] = {"bandwidth": float, "weight_bytes": int, "row_bytes": int}


@dataclass(frozen=True, slots=True)
class Measured:
    """Curves, and when and under what power they were measured."""

    curves: Curves
    power: str
    at_s: float  # seconds since 1970


def key_of(identity: str) -> str:
    """The name of a model's curves on this machine. `identity`: of the loaded model (engine/identity.py)."""
    return hashlib.sha256(f"{identity} chip={machine.chip()}".encode()).hexdigest()[:32]


def curves_of(info: ModelInfo, power: str | None = None) -> Measured | None:
    """What was measured of a loaded model, under the present power state unless another is named. None: nothing."""
    return read(info.measured_as, power=power) if info.measured_as else None


def any_kept() -> bool:
    """Whether anything was ever measured here."""
    return any((cache_dir() / "curves").glob("*.json"))


def read(key: str, parts: Mapping[Mode, str] | None = None, *, power: str | None = None) -> Measured | None:
    """`parts`: names of the loaded drafters by mode; curves of other drafters are left out. None: whichever there are.

    A file that cannot be read is as if it were not there.
    """
    power = power or machine.power()
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
        stored: Any = json.loads(_file(key).read_text("utf-8"))  # Any: the file may say anything
        found: Any = stored["states"][power] if stored["format"] == FORMAT else None
        if found is None:
            return None
        wanted = {part: mode.value for mode, part in parts.items()} if parts is not None else None
        drafters = {
            mode if wanted is None else wanted[part]: _table(table)
            for part, (mode, table) in found["drafters"].items()
            if table and (wanted is None or part in wanted)
        }
        numbers = {name: kind(found[name]) for name, kind in _NUMBERS.items()}
        if not all(0 <= number < math.inf for number in numbers.values()):
            return None
        curves = Curves(_table(found["target"]), drafters, _table(found["prefill"]), **numbers)
        return Measured(curves, power, float(found["at_s"])) if curves.target else None
    return None


def write(key: str, curves: Curves, parts: Mapping[Mode, str]) -> None:
    """Keep curves under the present power state, beside those of other states and drafters. Raises OSError."""
    power, file = machine.power(), _file(key)
    with exclusive(file.with_suffix(".lock")):
        states: dict[str, Any] = {}
        drafters: dict[str, Any] = {}
        with suppress(OSError, ValueError, KeyError, TypeError):
            stored: Any = json.loads(file.read_text("utf-8"))
            states = dict(stored["states"]) if stored["format"] == FORMAT else {}
            drafters = dict(states[power]["drafters"])
        drafters |= {parts[Mode(mode)]: (mode, table) for mode, table in curves.drafters.items()}
        states[power] = {
            "at_s": time.time(),
            "target": curves.target,
            "drafters": drafters,
            "prefill": curves.prefill,
            **{name: getattr(curves, name) for name in _NUMBERS},
        }
        write_text(file, json.dumps({"format": FORMAT, "states": states}) + "\n")


def _table(stored: Mapping[str, Mapping[str, float]]) -> Table:
    """JSON's names are text. Raises ValueError for what nobody measured: nothing at a context, or no time."""
    table = {int(context): {int(at): float(ms) for at, ms in row.items()} for context, row in stored.items()}
    if not all(row and all(0 <= ms < math.inf for ms in row.values()) for row in table.values()):
        raise ValueError("no table of milliseconds")
    return table


def _file(key: str) -> Path:
    return cache_dir() / "curves" / f"{key}.json"
