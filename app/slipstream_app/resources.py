"""Where the app's own files are, in a checkout, a wheel and the bundle."""

from __future__ import annotations

from pathlib import Path

from slipstream.store.paths import resources_dir


def icon_file(name: str) -> Path:
    return resources_dir() / "icons" / f"{name}.svg"


def i18n_dir() -> Path:
    return resources_dir() / "i18n"
