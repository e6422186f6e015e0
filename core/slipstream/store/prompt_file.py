"""One file of kept prompts: safetensors with a checksum over all of it. What it may say is not trusted."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FORMAT = "slipstream-prompt-1"
MAX_HEADER = 2**20

_NO_SUM = "0" * 64
_SIZES = {"U8": 1, "I8": 1, "BOOL": 1, "U16": 2, "I16": 2, "F16": 2, "BF16": 2, "U32": 4, "I32": 4, "F32": 4, "I64": 8}


@dataclass(frozen=True, slots=True)
class Stored:
    """An array as a file has it: safetensors' name of the type, shape, and bytes."""

    dtype: str
    shape: tuple[int, ...]
    data: memoryview  # contiguous


class Damaged(Exception):
    """A file is not what was written."""


def header(
    arrays: Mapping[str, Stored], identity: str, part: str, start: int, end: int
) -> tuple[bytes, list[memoryview]]:
    """The header, still without its checksum, and the data behind it."""
    entries: dict[str, Any] = {
        "__metadata__": {
            "format": FORMAT,
            "identity": identity,
            "part": part,
            "start": str(start),
            "end": str(end),
            "sha256": _NO_SUM,
        }
    }
    data: list[memoryview] = []
    at = 0
    for name, stored in arrays.items():
        view = stored.data.cast("B") if stored.data.nbytes else memoryview(b"")
        entries[name] = {
            "dtype": stored.dtype,
            "shape": list(stored.shape),
            "data_offsets": [at, at + view.nbytes],
        }
        at += view.nbytes
        data.append(view)
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text, data


def signed(header: bytes, data: Sequence[memoryview]) -> bytes:
    """The header with its checksum."""
    summed = hashlib.sha256(header)
    for view in data:
        summed.update(view)
    return header.replace(_NO_SUM.encode(), summed.hexdigest().encode(), 1)


def parse(whole: bytes, identity: str) -> dict[str, Stored]:
    """The arrays of a whole file. Raises Damaged when anything in it differs from what was written."""
    entries, metadata, begin = head(whole[: 8 + MAX_HEADER], len(whole), identity)
    claimed = metadata["sha256"]
    told = whole[:begin].replace(claimed.encode(), _NO_SUM.encode(), 1)
    view = memoryview(whole)
    summed = hashlib.sha256(told)
    summed.update(view[begin:])
    if summed.hexdigest() != claimed:
        raise Damaged("its checksum is wrong")
    arrays: dict[str, Stored] = {}
    for name, entry in entries.items():
        low, high = entry["data_offsets"]
        arrays[name] = Stored(entry["dtype"], tuple(entry["shape"]), view[begin + low : begin + high])
    return arrays


def head(raw: bytes, size: int, identity: str) -> tuple[dict[str, Any], dict[str, str], int]:
    """Entries, metadata, and where the data begins. Every number is checked: the file may say anything."""
    try:
        (length,) = struct.unpack_from("<Q", raw)
        if length > MAX_HEADER or 8 + length > size:
            raise Damaged("it is cut short")
        header: dict[str, Any] = json.loads(raw[8 : 8 + length])
        metadata: dict[str, str] = header.pop("__metadata__")
        if metadata["format"] != FORMAT or metadata["identity"] != identity:
            raise Damaged("it is of another kind")
        at = 0
        for entry in header.values():
            low, high = entry["data_offsets"]
            count = 1
            for side in entry["shape"]:
                if type(side) is not int or side < 0:
                    raise Damaged("its header is wrong")
                count *= side
            if low != at or high - low != count * _SIZES[entry["dtype"]]:
                raise Damaged("its header is wrong")
            at = high
        start, end = int(metadata["start"]), int(metadata["end"])
        tokens = header["tokens"]
        if tokens["dtype"] != "I32" or tokens["shape"] != [end] or not 0 <= start < end:
            raise Damaged("its header is wrong")
        if len(metadata["sha256"]) != 64 or type(metadata["part"]) is not str:
            raise Damaged("its header is wrong")
        if 8 + length + at != size:
            raise Damaged("it is cut short")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, struct.error) as error:
        raise Damaged("its header cannot be read") from error
    return header, metadata, 8 + length
