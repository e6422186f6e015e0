"""A text into a file that the user chose, and a sentence of what became of it."""

from __future__ import annotations

from pathlib import Path

from slipstream_app.strings import mark, shown
from slipstream_app.widgets.banner import Banner, Banners, Kind

_SAVED = mark("Saving", "Saved to {0}")
_NOT_SAVED = mark("Saving", "{0} could not be written: {1}")


def save_text(banners: Banners, file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        words = shown("Saving", _NOT_SAVED).format(file.name, error.strerror or error)
        banners.show(Banner("saving", Kind.ERROR, words))
    else:
        banners.show(Banner("saving", Kind.INFO, shown("Saving", _SAVED).format(file)))
