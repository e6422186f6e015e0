"""What macOS may ask the app to open: an address slipstream://PLACE, or the file of a model.

Any web page can open an address, so one goes to a screen and does nothing there. A file comes from its owner.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QUrl

from slipstream_app.bridge.pair import PairChoice
from slipstream_app.screens.registry import PLACES

SCHEME = "slipstream"
SUFFIX = ".gguf"


def place_of(url: QUrl) -> str | None:
    """The screen that an address names; None for every other."""
    name = url.host().lower()
    is_plain = url.scheme() == SCHEME and url.path() in ("", "/") and not url.hasQuery() and not url.hasFragment()
    return name if is_plain and any(place.name == name for place in PLACES) else None


def pair_of(url: QUrl) -> PairChoice | None:
    """A model's file as what can be loaded."""
    file = Path(url.toLocalFile())
    return PairChoice(file.stem, str(file)) if url.isLocalFile() and file.suffix.lower() == SUFFIX else None
