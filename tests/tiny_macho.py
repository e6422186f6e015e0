"""Mach-O files of a few hundred bytes: only what the loader's questions are about."""

from __future__ import annotations

import struct
from collections.abc import Sequence

ARM64, X86_64 = 0x0100000C, 0x01000007
_LOAD, _ID, _RPATH, _BUILD = 0xC, 0xD, 0x8000001C, 0x32
_PAGE = 4096


def thin(
    cpu: int = ARM64,
    *,
    identity: str = "",
    loads: Sequence[str] = (),
    rpaths: Sequence[str] = (),
    macos: tuple[int, int] = (14, 0),
    padding: int = 0,
) -> bytes:
    """A dynamic library for one processor."""
    commands = [struct.pack("<IIIIII", _BUILD, 24, 1, macos[0] << 16 | macos[1] << 8, 0, 0)]
    if identity:
        commands.append(_named(_ID, identity, is_library=True))
    commands += [_named(_LOAD, name, is_library=True) for name in loads]
    commands += [_named(_RPATH, name, is_library=False) for name in rpaths]
    body = b"".join(commands)
    header = struct.pack("<IIIIIIII", 0xFEEDFACF, cpu, 0, 6, len(commands), len(body), 0, 0)
    return header + body + bytes(padding)


def fat(*parts: tuple[int, bytes]) -> bytes:
    """A universal file of several."""
    offset, table, body = _PAGE, b"", b""
    for cpu, data in parts:
        table += struct.pack(">IIIII", cpu, 0, offset, len(data), 12)
        padded = data + bytes(-len(data) % _PAGE)
        body += padded
        offset += len(padded)
    start = struct.pack(">II", 0xCAFEBABE, len(parts)) + table
    return start + bytes(_PAGE - len(start)) + body


def _named(command: int, name: str, *, is_library: bool) -> bytes:
    fixed = 24 if is_library else 12
    text = name.encode() + b"\0"
    text += bytes(-(fixed + len(text)) % 8)
    start = struct.pack("<III", command, fixed + len(text), fixed)
    return start + (struct.pack("<III", 0, 0x10000, 0x10000) if is_library else b"") + text
