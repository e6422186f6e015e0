"""The front of a GGUF file: its metadata, and which tensors it holds. Every length is checked before it is believed.

`mx.load` trusts the header: a tensor type it cannot read exactly gives an error without a name, or is converted
silently. So this is read first. Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import math
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from slipstream.errors import ModelIncomplete, ModelNotFound, UnsupportedModel

# The tensor types that mx.load keeps exactly: values in a block, bytes of a block, bits of a packed weight.
READABLE = {
    "F32": (1, 4, None),
    "F16": (1, 2, None),
    "Q4_0": (32, 18, 4),
    "Q4_1": (32, 20, 4),
    "Q8_0": (32, 34, 8),
}

# The same of every type that somebody here reads.
SIZES = {kind: (block, size) for kind, (block, size, _) in READABLE.items()} | {"BF16": (1, 2)}

# ggml's numbers; those that are missing were withdrawn.
_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 9: "Q8_1",
    10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K",
    16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS",
    24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", 30: "BF16",
    34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4",
}  # fmt: skip

# Metadata values: struct's letter for each number type; 8 is a string, 9 an array.
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9

_ALIGNMENT = 32
_MAX_DIMENSIONS = 4

_Item = TypeVar("_Item", str, int)


@dataclass(frozen=True, slots=True)
class Tensor:
    kind: str
    shape: tuple[int, ...]  # rows first, as in numpy
    offset: int = 0  # of its data, from the header's `start`


@dataclass(frozen=True, slots=True)
class Header:
    """What a file says of itself. The getters raise ModelIncomplete when a value is missing or makes no sense."""

    path: Path
    metadata: dict[str, Any]  # Any: numbers, strings, or lists of them, as the file says
    tensors: dict[str, Tensor]
    start: int = 0  # where the tensors' data begins in the file

    def whole(self, key: str, default: int | None = None) -> int:
        value: object = self.metadata.get(key, default)
        if not isinstance(value, int) or value < 0:
            raise damaged(self.path, f"its {key} is {value!r:.60}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        value: object = self.metadata.get(key, default)
        if not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
            raise damaged(self.path, f"its {key} is {value!r:.60}")
        return float(value)

    def text(self, key: str) -> str:
        value: object = self.metadata.get(key)
        if not isinstance(value, str):
            raise damaged(self.path, f"its {key} is {value!r:.60}")
        return value

    def items(self, key: str, kind: type[_Item]) -> list[_Item]:
        values: object = self.metadata.get(key)
        if not isinstance(values, list) or not all(isinstance(value, kind) for value in values):
            raise damaged(self.path, f"its {key} is missing or of the wrong type")
        return values


def damaged(path: Path, what: str) -> ModelIncomplete:
    return ModelIncomplete(f"{path} is damaged or incomplete: {what}; download it again", path=str(path))


class _Reader:
    """Takes values off the front of a file's bytes. Raises ModelIncomplete instead of reading past the end."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self._path = path
        self._data = data
        self.position = 0

    @property
    def left(self) -> int:
        return len(self._data) - self.position

    def take(self, count: int) -> bytes:
        if count > self.left:
            raise damaged(self._path, f"it ends in its header, at byte {len(self._data)}")
        self.position += count
        return self._data[self.position - count : self.position]

    def numbers(self, letter: str, count: int = 1) -> tuple[Any, ...]:
        layout = f"<{letter}"
        raw = self.take(count * struct.calcsize(layout))  # before unpacking: a count may be anything
        return tuple(value for (value,) in struct.iter_unpack(layout, raw))

    def string(self) -> str:
        raw = self.take(self.numbers("Q")[0])
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise damaged(self._path, "a text in its header is not UTF-8") from error

    def value(self) -> Any:
        kind: int = self.numbers("I")[0]
        if kind != _ARRAY:
            return self._values(kind, 1)[0]
        kind, count = *self.numbers("I"), *self.numbers("Q")
        return self._values(kind, count)

    def _values(self, kind: int, count: int) -> list[Any]:
        if kind in _NUMBERS:
            return list(self.numbers(_NUMBERS[kind], count))
        if kind != _STRING:
            raise damaged(self._path, f"a value in its header has the unknown type {kind}")
        # A text takes at least the eight bytes of its length, so a wild count ends at the end of the file.
        return [self.string() for _ in range(count)]


def read_header(path: Path) -> Header:
    """Raises ModelNotFound, ModelIncomplete (unreadable, cut short or damaged) or UnsupportedModel."""
    if not path.exists():
        raise ModelNotFound(f"no file at {path}; check the path", path=str(path))
    try:
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise UnsupportedModel(f"{path} is not a GGUF file; choose a model folder or a GGUF", path=str(path))
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _parse(path, _Reader(path, data))
    except OSError as error:
        raise ModelIncomplete(
            f"{path} cannot be read ({error.strerror}); check the path and its permissions"
        ) from error


def _parse(path: Path, reader: _Reader) -> Header:
    reader.take(len(b"GGUF"))
    version: int = reader.numbers("I")[0]
    if version not in (2, 3):
        raise UnsupportedModel(f"{path} is GGUF version {version}; choose a little-endian file of version 2 or 3")
    tensor_count, value_count = reader.numbers("Q", 2)
    metadata: dict[str, Any] = {}
    for _ in range(value_count):
        key = reader.string()
        metadata[key] = reader.value()
    tensors: dict[str, Tensor] = {}
    ends = [0]
    for _ in range(tensor_count):
        name = reader.string()
        dimensions: int = reader.numbers("I")[0]
        if not 1 <= dimensions <= _MAX_DIMENSIONS or name in tensors:
            raise damaged(path, f"tensor {name!r} is listed twice or has {dimensions} dimensions")
        shape = reader.numbers("Q", dimensions)[::-1]
        number, offset = *reader.numbers("I"), *reader.numbers("Q")
        kind = _TYPES.get(number, f"type {number}")
        tensors[name] = Tensor(kind, shape, offset)
        if kind in SIZES:
            ends.append(offset + byte_count(path, name, kind, shape))
    if metadata.get("general.alignment", _ALIGNMENT) != _ALIGNMENT:
        raise UnsupportedModel(f"{path} does not align its tensors to {_ALIGNMENT} bytes; choose another file")
    start = -(-reader.position // _ALIGNMENT) * _ALIGNMENT
    have, want = reader.position + reader.left, start + max(ends)
    if have < want:
        raise ModelIncomplete(f"{path} is cut short: {have} of {want} bytes; download it again", have=have, want=want)
    return Header(path, metadata, tensors, start)


def byte_count(path: Path, name: str, kind: str, shape: tuple[int, ...]) -> int:
    """The size of a tensor's data. Its kind must be in SIZES."""
    block, size = SIZES[kind]
    if 0 in shape or shape[-1] % block:
        raise damaged(path, f"tensor {name!r} is {list(shape)}, which {kind} cannot be")
    return math.prod(shape) // block * size
