"""What was chosen in the app's Settings and holds for the command line too: `settings.json` in the data folder.

The app writes the file; nothing here does. A value that an option names wins over it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from slipstream.store.paths import data_dir, expanded

logger = logging.getLogger(__name__)

FILE = "settings.json"
DEFAULT_PORT = 8765  # of the server
BITS = ("", "4-bit", "8-bit", "bf16")  # "": as recommended for each model


@dataclass(frozen=True, slots=True)
class Preferences:
    """What is absent or cannot be used is as if nothing had been chosen."""

    models_folder: Path | None = None  # looked through beside the usual places
    bits: str = ""  # of models to download, where they are published so: a key of the catalogue's `quants`
    models_limit: int | None = None  # bytes that the shared cache and conversions may take
    kv_bits: int = 0
    port: int = DEFAULT_PORT
    prompt_cache_ram: int | None = None  # bytes
    prompt_cache_disk: int | None = None  # bytes


_said: set[str] = set()  # warnings of this run: the file is read for many options, and once is enough


def _warn(message: str, *values: object) -> None:
    said = message % values
    if said not in _said:
        _said.add(said)
        logger.warning(said)


def read(file: Path | None = None) -> Preferences:
    """Never raises: a file that cannot be read is said in the log once a run, and counts as empty."""
    path = file or data_dir() / FILE
    try:
        stored: object = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return Preferences()
    except (OSError, ValueError, RecursionError) as error:
        _warn("%s cannot be read (%s); the defaults hold", path, error)
        return Preferences()
    if not isinstance(stored, Mapping):
        _warn("%s holds no settings; the defaults hold", path)
        return Preferences()
    given = cast(Mapping[str, Any], stored)  # Any: JSON

    def number(key: str, take: Callable[[int], int | None]) -> int | None:
        if key not in given:
            return None
        try:
            return take(int(given[key]))
        except (TypeError, ValueError, OverflowError):
            _warn("%s: %s cannot be %r; the default holds", path, key, given[key])
            return None

    def choice(key: str, allowed: tuple[str, ...]) -> str:
        value = given.get(key, "")
        if value in allowed:
            return str(value)
        _warn("%s: %s cannot be %r; the default holds", path, key, value)
        return ""

    return Preferences(
        models_folder=_folder(given.get("models/folder")),
        bits=choice("models/bits", BITS),
        models_limit=number("models/limit_gb", _gigabytes_of_disk),
        kv_bits=number("performance/kv_bits", _kv_bits) or 0,
        port=number("server/port", _port) or DEFAULT_PORT,
        prompt_cache_ram=number("performance/cache_ram_gb", _gigabytes),
        prompt_cache_disk=number("performance/cache_disk_gb", _gigabytes),
    )


def _folder(given: object) -> Path | None:
    return expanded(given) if isinstance(given, str) and given else None


def _kv_bits(given: int) -> int:
    if given not in (0, 4, 8):
        raise ValueError(given)
    return given


def _port(given: int) -> int:
    if not 0 < given < 65536:
        raise ValueError(given)
    return given


def _gigabytes_of_disk(given: int) -> int | None:
    """Bytes, in powers of ten as disks are counted. 0: no limit."""
    return given * 10**9 if given > 0 else None


def _gigabytes(given: int) -> int | None:
    """Bytes. -1 leaves it to the program."""
    return given * 2**30 if given >= 0 else None
