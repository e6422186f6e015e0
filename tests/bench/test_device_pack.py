from __future__ import annotations

import struct

import pytest

from bench.device_pack import FATBIN, MACHINE_CODE, keep_architecture, section


def entry(architecture: int, payload: bytes, kind: int = MACHINE_CODE) -> bytes:
    head = bytearray(64)
    struct.pack_into("<HHIQ", head, 0, kind, 0x101, len(head), len(payload))
    struct.pack_into("<I", head, 28, architecture)
    return bytes(head) + payload


def fat_binary(*entries: bytes) -> bytes:
    body = b"".join(entries)
    return struct.pack("<IHHQ", FATBIN, 1, 16, len(body)) + body


def library(code: bytes) -> bytearray:
    """An ELF file with the sections "", .shstrtab and .nv_fatbin."""
    names = b"\0.shstrtab\0.nv_fatbin\0"
    data = bytearray(64) + names + code
    struct.pack_into("<Q", data, 0x28, len(data))
    struct.pack_into("<HHH", data, 0x3A, 64, 3, 1)
    for name, offset, size in ((0, 0, 0), (1, 64, len(names)), (11, 64 + len(names), len(code))):
        data += struct.pack("<IIQQQQ", name, 0, 0, 0, offset, size).ljust(64, b"\0")
    return data


def test_other_gpus_code_goes_and_every_fat_binary_stays_in_its_place() -> None:
    wanted = entry(90, b"hopper!!")
    first = fat_binary(entry(80, b"ampere" * 4), wanted, entry(90, b"ptx text", kind=1))
    second = fat_binary(wanted, entry(120, b"blackwell"))
    data = library(first + second)
    before = len(data)
    offset, _ = section(data, ".nv_fatbin")

    assert keep_architecture(data, 90) == 2

    assert len(data) == before
    for start in (offset, offset + len(first)):
        magic, _, head, length = struct.unpack_from("<IHHQ", data, start)
        assert magic == FATBIN
        assert data[start + head : start + head + length] == wanted
    assert b"ampere" not in data
    assert b"blackwell" not in data


def test_a_library_without_code_for_the_gpu_is_refused() -> None:
    with pytest.raises(ValueError, match="no code for 90"):
        keep_architecture(library(fat_binary(entry(80, b"ampere"))), 90)
