"""Where the app's own files are, in a checkout, a wheel and the bundle."""

from __future__ import annotations

from pathlib import Path

from slipstream.store.paths import resources_dir


def icon_file(name: str) -> Path:
    return resources_dir() / "icons" / f"{name}.svg"


def i18n_dir() -> Path:
    return resources_dir() / "i18n"


def document(name: str) -> str:
    """A text that comes with the program, such as CHANGELOG.md. Empty where it is not there."""
    for folder in (resources_dir(), resources_dir().parent):  # in a wheel; in a checkout and the bundle
        try:
            return (folder / name).read_text(encoding="utf-8")
        except OSError:
            continue
    return ""
