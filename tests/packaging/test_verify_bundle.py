"""A built app is checked: one that is whole passes, and each thing that may be wrong with it is named."""

from __future__ import annotations

import plistlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bundle
import tiny_macho
import verify_bundle

SITE = "Contents/Resources/lib/python3.11"


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """The smallest app that is whole."""
    app = tmp_path / "Slipstream.app"
    program = tiny_macho.thin()
    files: dict[str, bytes] = {
        "Contents/MacOS/Slipstream": program,
        f"Contents/Resources/{bundle.ICON}": b"icns",
        "Contents/Resources/THIRD_PARTY_NOTICES.txt": b"MIT",
        "Contents/Resources/bin/slipstream": b"#!/bin/sh\n",
        "Contents/Resources/resources/demo/SmolLM2-135M-Instruct.Q4_1.gguf": b"GGUF",
        f"{SITE}/mlx/core.so": tiny_macho.thin(loads=["@rpath/libmlx.dylib"], rpaths=["@loader_path/lib"]),
        f"{SITE}/mlx/lib/libmlx.dylib": tiny_macho.thin(identity="@rpath/libmlx.dylib"),
        f"{SITE}/mlx/lib/mlx.metallib": b"MTLB",
        f"{SITE}/PySide6/Qt/plugins/platforms/libqcocoa.dylib": program,
        f"{SITE}/PySide6/Qt/lib/QtCore.framework/Versions/A/QtCore": tiny_macho.thin(macos=(12, 0)),
        **{f"Contents/Resources/resources/{name}": b"x" for name in verify_bundle.RESOURCES},
    }
    for name, data in files.items():
        path = app / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (app / "Contents/Resources/bin/slipstream").chmod(0o755)
    bundle.mend_frameworks(app / SITE)
    write_plist(app, {})
    return app


def write_plist(app: Path, changes: dict[str, Any]) -> None:
    told = bundle.plist() | {"CFBundleExecutable": "Slipstream"} | changes
    (app / "Contents" / "Info.plist").write_bytes(plistlib.dumps(told))


def test_a_whole_app_passes(app: Path) -> None:
    assert list(verify_bundle.faults(app)) == []


def remove(name: str) -> Callable[[Path], None]:
    return lambda app: (app / name).unlink()


def put(name: str, data: bytes) -> Callable[[Path], None]:
    def harm(app: Path) -> None:
        (app / name).write_bytes(data)

    return harm


def move_mlx_away(app: Path) -> None:
    """As py2app does when it treats it as a library of the system's."""
    shutil.copytree(app / SITE / "mlx" / "lib", app / "Contents" / "Frameworks")
    (app / "Contents" / "Frameworks" / "mlx.metallib").unlink()


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (remove(f"{SITE}/mlx/lib/mlx.metallib"), "mlx.metallib does not lie beside"),
        (remove(f"{SITE}/mlx/lib/libmlx.dylib"), "loads @rpath/libmlx.dylib, which is missing"),
        (move_mlx_away, "libmlx.dylib is there 2 times"),
        (remove(f"{SITE}/PySide6/Qt/plugins/platforms/libqcocoa.dylib"), "cocoa plugin is missing"),
        (remove(f"{SITE}/PySide6/Qt/lib/QtCore.framework/Versions/Current"), "lacks the link Versions/Current"),
        (put(f"{SITE}/new.so", tiny_macho.thin(macos=(26, 0))), "needs macOS 26.0"),
        (put(f"{SITE}/old.so", tiny_macho.thin(tiny_macho.X86_64)), "has no arm64 code"),
        (put("Contents/MacOS/data.txt", b"text"), "MacOS/data.txt is no program"),
        (remove("Contents/Resources/resources/demo/SmolLM2-135M-Instruct.Q4_1.gguf"), "built-in target is missing"),
        (remove("Contents/Resources/resources/catalog.toml"), "catalog.toml is missing"),
        (remove(f"Contents/Resources/{bundle.ICON}"), "the icon Slipstream.icns is missing"),
        (remove("Contents/Resources/THIRD_PARTY_NOTICES.txt"), "THIRD_PARTY_NOTICES.txt is missing"),
        (remove("Contents/MacOS/Slipstream"), "names MacOS/Slipstream, which is not there"),
        (lambda app: write_plist(app, {"LSMinimumSystemVersion": "10.9"}), "LSMinimumSystemVersion is '10.9'"),
        (lambda app: write_plist(app, {"CFBundleVersion": "0.0"}), "CFBundleVersion is '0.0'"),
        (lambda app: (app / "Contents/Resources/bin/slipstream").chmod(0o644), "cannot be run"),
        (remove("Contents/Info.plist"), "is no app"),
    ],
)
def test_each_fault_is_named(app: Path, harm: Callable[[Path], None], words: str) -> None:
    harm(app)
    assert words in "\n".join(verify_bundle.faults(app))


def test_a_size_over_the_limit_is_a_fault(app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_bundle, "MAXIMUM_BYTES", 100)
    assert any("without the built-in target are more than 100" in fault for fault in verify_bundle.faults(app))


def test_the_selftest_runs_the_app_as_train(tmp_path: Path) -> None:
    """A stand-in for the app's program: the command line of this checkout, then one that knows no such command."""
    program = tmp_path / "Slipstream"
    for code, said in (("from slipstream.cli import main; sys.exit(main())", []), ("sys.exit('no')", ["no"])):
        program.write_text(f"#!{sys.executable}\nimport sys; {code}\n")
        program.chmod(0o755)
        assert [fault.split(": ")[1] for fault in verify_bundle._trains(str(program), {})] == said


@pytest.mark.skipif(sys.platform == "darwin", reason="it would run the app")
def test_the_selftest_refuses_elsewhere_than_on_a_mac(app: Path) -> None:
    command = [sys.executable, verify_bundle.__file__, str(app), "--selftest"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "needs a Mac" in done.stderr
