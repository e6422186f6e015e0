"""A report for a bug: versions, the machine, what the engine did, the last lines of the log. No texts, no keys."""

from __future__ import annotations

import importlib.metadata
import json
import platform
from pathlib import Path

import slipstream
from slipstream.events import Faulted, Ready, Status, Working
from slipstream_app import log
from slipstream_app.bridge.pair import PairChoice
from slipstream_app.mac import machine
from slipstream_app.settings import Settings
from slipstream_app.settings_table import SETTINGS

LIBRARIES = ("mlx", "mlx-lm", "transformers", "PySide6-Essentials", "starlette", "uvicorn", "numpy")
LOG_LINES = 200


def report(status: Status, choice: PairChoice | None, settings: Settings) -> str:
    """As text. The home folder's name is taken out."""
    found = machine(Path.home())
    facts = {
        "slipstream": slipstream.__version__,
        "python": platform.python_version(),
        "system": found.system,
        "chip": found.chip,
        "memory_bytes": found.memory_bytes,
        "libraries": {name: _version(name) for name in LIBRARIES},
        "pair": None if choice is None else choice.as_json(),
        "status": _told(status),
        "settings": {row.key: settings.get(row.key) for row in SETTINGS if not row.is_secret},
    }
    lines = log.ring.lines()[-LOG_LINES:]
    text = json.dumps(facts, indent=2, ensure_ascii=False) + "\n\n" + "\n".join(lines) + "\n"
    return text.replace(str(Path.home()), "~")


def _told(status: Status) -> str:
    match status:
        case Faulted(error):
            return f"{type(status).__name__}: {error.code}: {error.message}"
        case Ready(model) | Working(model):
            return f"{type(status).__name__}: {model.name}, {model.dtype}, {model.quantisation}, {model.context}"
        case _:
            return type(status).__name__


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
