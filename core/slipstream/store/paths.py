"""Where things lie on this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import slipstream
from slipstream.errors import InvalidRequest


def home() -> Path:
    """The user's folder. Raises InvalidRequest where neither HOME nor the system's list of users names one."""
    try:
        return Path.home()
    except RuntimeError as error:
        raise InvalidRequest("this user has no home folder; set HOME to a folder that can be written to") from error


def expanded(path: str | Path) -> Path:
    """With ~ as a home folder; unchanged where there is no such user."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def cache_dir() -> Path:
    """For what can be made again. Not created here."""
    if sys.platform == "darwin":
        return home() / "Library" / "Caches" / "Slipstream"
    return _xdg("XDG_CACHE_HOME", ".cache") / "slipstream"


def data_dir() -> Path:
    """For what cannot be made again. Not created here."""
    if sys.platform == "darwin":
        return home() / "Library" / "Application Support" / "Slipstream"
    return _xdg("XDG_DATA_HOME", ".local/share") / "slipstream"


def _xdg(variable: str, default: str) -> Path:
    """The XDG base directory rules: a relative path in the variable is ignored."""
    chosen = Path(os.environ.get(variable, ""))
    return chosen if chosen.is_absolute() else home() / default


def resources_dir() -> Path:
    """The files under `resources/`: in the app's bundle, in an installed wheel, or in a checkout."""
    if getattr(sys, "frozen", None) == "macosx_app":  # py2app
        return Path(os.environ["RESOURCEPATH"]) / "resources"
    package = Path(slipstream.__file__).resolve().parent
    installed = package / "_resources"
    return installed if installed.is_dir() else package.parents[1] / "resources"
