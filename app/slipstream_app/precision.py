"""How a model's numbers are packed, in the user's language. The engine and the folders of models say it in English."""

from __future__ import annotations

import re

from slipstream_app.strings import mark, shown

_PACKED = re.compile(r"(?P<bits>\d+)-bit(?: group (?P<group>\d+))?")
_UNPACKED = re.compile(r"(?P<stored>.+), computed in (?P<type>\w+)")


def precision_text(said: str) -> str:
    """Of `ModelInfo.quantisation` or `LocalModel.quantisation`. Names of types, and what is not known, stay."""
    if unpacked := _UNPACKED.fullmatch(said):
        words = shown("Precision", mark("Precision", "{0}, computed in {1}"))
        return words.format(precision_text(unpacked["stored"]), unpacked["type"])
    return _PACKED.sub(_packed, said)


def _packed(found: re.Match[str]) -> str:
    if found["group"] is None:
        return shown("Precision", mark("Precision", "{0}-bit")).format(found["bits"])
    return shown("Precision", mark("Precision", "{0}-bit group {1}")).format(found["bits"], found["group"])
