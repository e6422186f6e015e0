"""Files of JSON lines that a power cut may have cut anywhere. Standard library alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def entries(data: bytes) -> list[dict[str, Any]]:
    """The objects in these lines. What is no whole one was cut, and is left out."""
    found: list[dict[str, Any]] = []
    for line in data.split(b"\n"):
        try:
            entry: Any = json.loads(line)  # Any: JSON
        except ValueError:
            continue
        if isinstance(entry, dict):
            found.append(entry)
    return found


def append(path: Path, entry: Mapping[str, Any]) -> None:
    """Add a line; behind one that was cut, a new one is begun."""
    with path.open("ab+") as file:
        is_cut = False
        if file.seek(0, 2):
            file.seek(-1, 2)
            is_cut = file.read(1) != b"\n"
        file.write((b"\n" if is_cut else b"") + json.dumps(entry).encode() + b"\n")
