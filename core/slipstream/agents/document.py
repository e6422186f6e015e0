"""One view of the files that clients read, JSON or TOML: get, set and remove keys, keep everything else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal, Protocol

from slipstream.agents.jsonc import Json, JsonDocument
from slipstream.agents.toml import TomlDocument

Format = Literal["json", "jsonc", "toml"]
BOM = "\ufeff"


class Document(Protocol):
    @property
    def text(self) -> str: ...
    @property
    def value(self) -> Json: ...
    @property
    def is_bare(self) -> bool: ...
    def has(self, path: Sequence[str]) -> bool: ...
    def get(self, path: Sequence[str]) -> Json: ...
    def raw(self, path: Sequence[str]) -> str | None: ...
    def read_raw(self, raw: str) -> Json: ...
    def set(self, path: Sequence[str], value: Json) -> None: ...
    def set_raw(self, path: Sequence[str], raw: str) -> None: ...
    def remove(self, path: Sequence[str]) -> None: ...


def open_document(text: str, form: Format) -> Document:
    """Raises ValueError, with the reason, when the text is not what its form promises."""
    if form == "toml":
        return TomlDocument(text)
    return JsonDocument(text, comments=form == "jsonc")


def edited(text: str, document: Document) -> str:
    """The document's text with the byte order mark and the line ends that `text` had."""
    after = document.text
    if _has_crlf(text):
        after = after.replace("\n", "\r\n")
    return BOM + after if text.startswith(BOM) else after


def canonical(value: Json) -> str:
    """The same text for the same value; TOML's dates and nan are values too."""
    return json.dumps(value, sort_keys=True, default=str, ensure_ascii=False)


def plain(text: str) -> str:
    """Text for a document: no byte order mark, and one line end if it was the same throughout."""
    text = text.removeprefix(BOM)
    return text.replace("\r\n", "\n") if _has_crlf(text) else text


def _has_crlf(text: str) -> bool:
    ends = text.count("\n")
    return ends > 0 and text.count("\r\n") == ends


__all__ = ["Document", "Format", "Json", "canonical", "edited", "open_document", "plain"]
