"""Under which licence a model on disk was published, as its own files say."""

from __future__ import annotations

import re
from pathlib import Path

from slipstream.errors import SlipstreamError
from slipstream.models.gguf_header import read_header

_HEAD = re.compile(r"\A---\n(.*?)\n---\s*$", re.DOTALL | re.MULTILINE)  # of a model card
_READ = 64 * 1024  # bytes of a card in which its head ends


def licence_of(path: Path) -> str:
    """Of a folder by its card, else the name of its licence's file; of a GGUF by its header. "" where none is named."""
    if path.is_file():
        try:
            return read_header(path).text("general.license") or ""
        except SlipstreamError:
            return ""
    return _of_card(path / "README.md") or next((file.name for file in sorted(path.glob("LICEN[CS]E*"))), "")


def _of_card(file: Path) -> str:
    """A card begins with a few lines of YAML; of these, two are wanted, and they are plain words."""
    try:
        with file.open(encoding="utf-8", errors="replace") as card:
            head = _HEAD.match(card.read(_READ).replace("\r\n", "\n"))
    except OSError:
        return ""
    lines = (line.partition(":") for line in (head[1].splitlines() if head else ()))
    said = {key: value.strip().strip("\"'") for key, _, value in lines if key in ("license", "license_name")}
    name = said.get("license", "")
    return (said.get("license_name") or name) if name == "other" else name
