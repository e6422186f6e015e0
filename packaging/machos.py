"""Mach-O files of a folder: architectures, the macOS they are built for, and whether what they load is there.

Reads files with macholib and runs nothing, so it says the same on Linux and on a Mac.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from macholib import mach_o
from macholib.MachO import MachO, MachOHeader

_MAGICS = {0xFEEDFACF, 0xCFFAEDFE, 0xFEEDFACE, 0xCEFAEDFE, 0xCAFEBABE, 0xBEBAFECA, 0xCAFEBABF, 0xBFBAFECA}
_SYSTEM = ("/usr/lib/", "/System/Library/")
_ARM64 = 0x0100000C
_LOADS = {mach_o.LC_LOAD_DYLIB, mach_o.LC_LOAD_WEAK_DYLIB, mach_o.LC_REEXPORT_DYLIB}


@dataclass(frozen=True, slots=True)
class Image:
    """The arm64 part of a file."""

    path: Path
    architectures: tuple[str, ...]
    arm64_bytes: int  # of that part alone; the whole file where there is no other
    minimum_macos: str
    loads: tuple[str, ...]  # without weak ones
    rpaths: tuple[str, ...]
    identity: str  # LC_ID_DYLIB, or nothing


@dataclass(frozen=True, slots=True)
class Findings:
    images: list[Image]
    missing: dict[Path, list[str]] = field(default_factory=dict[Path, list[str]])  # by the file that wants them
    foreign: list[Path] = field(default_factory=list[Path])  # without arm64 code
    duplicates: dict[str, list[Path]] = field(default_factory=dict[str, list[Path]])  # one library, several files


def is_macho(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(8)
    if len(start) < 8 or struct.unpack(">I", start[:4])[0] not in _MAGICS:
        return False
    # Java classes have a universal file's magic, and a version above 40 where the count of architectures stands.
    return start[:4] != b"\xca\xfe\xba\xbe" or struct.unpack(">I", start[4:])[0] < 40


def look(folder: Path, *, outside: tuple[str, ...] = ()) -> Findings:
    """Every Mach-O file under `folder`. `outside`: libraries by end of path that something else provides."""
    images, foreign = [], []
    for path in sorted(folder.rglob("*")):
        if not is_macho(path):
            continue
        image = _image(path)
        if image is None:
            foreign.append(path)
        else:
            images.append(image)
    missing = {image.path: lost for image in images if (lost := list(_lost(image, outside)))}
    return Findings(images, missing, foreign, _duplicates(images))


def _image(path: Path) -> Image | None:
    headers = MachO(str(path)).headers
    names = tuple(mach_o.CPU_TYPE_NAMES.get(h.header.cputype, "?").lower() for h in headers)
    ours = next((h for h in headers if h.header.cputype == _ARM64), None)
    if ours is None:
        return None
    size = ours.size if len(headers) > 1 else path.stat().st_size
    loads = tuple(name for _, name in _named(ours, _LOADS - {mach_o.LC_LOAD_WEAK_DYLIB}))
    rpaths = tuple(name for _, name in _named(ours, {mach_o.LC_RPATH}))
    identity = next((name for _, name in _named(ours, {mach_o.LC_ID_DYLIB})), "")
    return Image(path, names, size, _minimum(ours), loads, rpaths, identity)


def _named(header: MachOHeader, kinds: set[int]) -> Iterator[tuple[int, str]]:
    for load, _, data in header.commands or ():
        if load.cmd in kinds:
            yield load.cmd, bytes(data).rstrip(b"\0").decode("utf-8", "replace")


def _minimum(header: MachOHeader) -> str:
    for load, command, _ in header.commands or ():
        if load.cmd == mach_o.LC_BUILD_VERSION:
            return _version(int(command.minos))
        if load.cmd == mach_o.LC_VERSION_MIN_MACOSX:
            return _version(int(command.version))
    return "0"


def _version(number: int) -> str:
    return f"{number >> 16}.{number >> 8 & 255}"


def _lost(image: Image, outside: tuple[str, ...]) -> Iterator[str]:
    for name in image.loads:
        if name.startswith(_SYSTEM) or name.endswith(outside) or name == image.identity:
            continue
        if not any(place.exists() for place in _places(name, image)):
            yield name


def _places(name: str, image: Image) -> Iterator[Path]:
    """Where the loader would look, as far as a file's own commands say. rpaths of whoever loads it are not known."""
    here = image.path.parent
    if name.startswith("@rpath/"):
        for rpath in image.rpaths:
            yield from _places(f"{rpath.rstrip('/')}/{name.removeprefix('@rpath/')}", image)
    elif name.startswith("@loader_path"):
        yield here / name.removeprefix("@loader_path").lstrip("/")
    elif name.startswith("/"):
        yield Path(name)


def _duplicates(images: list[Image]) -> dict[str, list[Path]]:
    """Libraries with the same identity or the same file name: two copies of one in a process do not know each other."""
    by_name: dict[str, list[Path]] = defaultdict(list)
    for image in images:
        if image.path.suffix == ".dylib" or image.identity:
            by_name[Path(image.identity or image.path.name).name].append(image.path)
    return {name: paths for name, paths in by_name.items() if len(paths) > 1}


def number(version: str) -> tuple[int, ...]:
    """Such as 14.0, as something that compares."""
    return tuple(int(part) for part in version.split("."))


def thin(folder: Path) -> int:
    """Keep the arm64 part of every universal file, as `lipo -thin arm64` does. Returns how many bytes went.

    The part is a whole Mach-O file with its own signature, so it is copied out as it stands.
    """
    saved = 0
    for path in sorted(folder.rglob("*")):
        if not is_macho(path):
            continue
        headers = MachO(str(path)).headers
        ours = next((header for header in headers if header.header.cputype == _ARM64), None)
        if len(headers) < 2 or ours is None:
            continue
        whole = path.read_bytes()
        fresh = path.with_name(f".{path.name}.thin")
        fresh.write_bytes(whole[ours.offset : ours.offset + ours.size])
        fresh.chmod(path.stat().st_mode)
        fresh.replace(path)
        saved += len(whole) - ours.size
    return saved
