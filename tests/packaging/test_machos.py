"""What is said of libraries: missing, twice, for another processor, for a later macOS; and thinning them."""

from __future__ import annotations

from pathlib import Path

import machos
import tiny_macho
from tiny_macho import ARM64, X86_64


def put(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_a_library_is_found_through_rpath_and_loader_path(tmp_path: Path) -> None:
    user = put(
        tmp_path / "mlx" / "core.so",
        tiny_macho.thin(loads=["@rpath/libmlx.dylib", "/usr/lib/libSystem.B.dylib"], rpaths=["@loader_path/lib"]),
    )
    assert machos.look(tmp_path).missing == {user: ["@rpath/libmlx.dylib"]}
    put(tmp_path / "mlx" / "lib" / "libmlx.dylib", tiny_macho.thin(identity="@rpath/libmlx.dylib"))
    assert machos.look(tmp_path).missing == {}


def test_an_absolute_path_of_the_building_machine_is_missing(tmp_path: Path) -> None:
    user = put(tmp_path / "a.so", tiny_macho.thin(loads=["/opt/homebrew/lib/libomp.dylib"]))
    assert machos.look(tmp_path).missing == {user: ["/opt/homebrew/lib/libomp.dylib"]}


def test_two_copies_of_a_library_are_reported(tmp_path: Path) -> None:
    data = tiny_macho.thin(identity="@rpath/libmlx.dylib")
    both = [put(tmp_path / name / "libmlx.dylib", data) for name in ("Frameworks", "lib")]
    assert machos.look(tmp_path).duplicates == {"libmlx.dylib": both}


def test_intel_code_alone_is_foreign(tmp_path: Path) -> None:
    path = put(tmp_path / "old.dylib", tiny_macho.thin(X86_64))
    assert machos.look(tmp_path).foreign == [path]


def test_the_macos_it_was_built_for_is_read(tmp_path: Path) -> None:
    put(tmp_path / "new.so", tiny_macho.thin(macos=(26, 1)))
    (image,) = machos.look(tmp_path).images
    assert image.minimum_macos == "26.1"
    assert machos.number("26.1") > machos.number("14.0") > machos.number("9.12")


def test_thinning_keeps_the_arm64_part_byte_for_byte(tmp_path: Path) -> None:
    ours = tiny_macho.thin(ARM64, identity="@rpath/a.dylib", padding=5000)
    path = put(tmp_path / "a.dylib", tiny_macho.fat((X86_64, tiny_macho.thin(X86_64, padding=9000)), (ARM64, ours)))
    path.chmod(0o755)
    before = path.stat().st_size
    assert machos.thin(tmp_path) == before - len(ours)
    assert path.read_bytes() == ours
    assert path.stat().st_mode & 0o777 == 0o755
    assert machos.thin(tmp_path) == 0


def test_other_files_are_no_machos(tmp_path: Path) -> None:
    java = put(tmp_path / "A.class", b"\xca\xfe\xba\xbe\x00\x00\x00\x34" + bytes(100))
    text = put(tmp_path / "a.txt", b"cafebabe")
    assert not machos.is_macho(java)
    assert not machos.is_macho(text)
    assert not machos.is_macho(put(tmp_path / "empty", b""))
