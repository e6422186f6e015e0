"""Folders the user added, in which models are looked for. They stay where they are."""

from __future__ import annotations

import json
from pathlib import Path

from slipstream.errors import ModelNotFound
from slipstream.store import files, preferences
from slipstream.store.atomic import write_text
from slipstream.store.paths import data_dir, expanded


def listed() -> list[Path]:
    """Last the one that the app's Settings name."""
    added = _added()
    chosen = preferences.read().models_folder
    return [*added, *([chosen] if chosen is not None and chosen not in added else [])]


def add(folder: Path) -> None:
    """Look for models in this folder too. Raises ModelNotFound when it is no folder."""
    folder = expanded(folder).resolve()
    if not folder.is_dir():
        raise ModelNotFound(f"{folder} is no folder; give one that holds models")
    _write([*(known for known in _added() if known != folder), folder])


def remove(folder: Path) -> None:
    """Look there no more. Deletes nothing."""
    folder = expanded(folder).resolve()
    _write([known for known in _added() if known != folder])


def _settings() -> Path:
    return data_dir() / "models.json"


def _added() -> list[Path]:
    folders = files.read_json(_settings()).get("folders")
    return [Path(item) for item in folders if isinstance(item, str)] if isinstance(folders, list) else []


def _write(folders: list[Path]) -> None:
    if _settings().exists() and not files.read_json(_settings()):
        _settings().replace(_settings().with_suffix(".damaged"))  # its owner may still read something in it
    write_text(_settings(), json.dumps({"folders": [str(folder) for folder in folders]}, indent=2) + "\n")
