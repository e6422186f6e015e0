"""Where things lie on this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import slipstream


def cache_dir() -> Path:
    """For what can be made again. Not created here."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "Slipstream"
    return _xdg("XDG_CACHE_HOME", ".cache") / "slipstream"


def data_dir() -> Path:
    """For what cannot be made again. Not created here."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "Slipstream"
    return _xdg("XDG_DATA_HOME", ".local/share") / "slipstream"


def _xdg(variable: str, default: str) -> Path:
    """The XDG base directory rules: a relative path in the variable is ignored."""
    chosen = Path(os.environ.get(variable, ""))
    return chosen if chosen.is_absolute() else Path.home() / default


def resources_dir() -> Path:
    """The files under `resources/`: in the app's bundle, in an installed wheel, or in a checkout."""
    if getattr(sys, "frozen", None) == "macosx_app":  # py2app
        return Path(os.environ["RESOURCEPATH"]) / "resources"
    package = Path(slipstream.__file__).resolve().parent
    installed = package / "_resources"
    return installed if installed.is_dir() else package.parents[1] / "resources"
