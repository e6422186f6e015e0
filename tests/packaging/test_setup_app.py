"""py2app itself, as far as it gets without a Mac: module graph, copying of packages, the plist, the stub for arm64."""

from __future__ import annotations

import os
import plistlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bundle
import icon
import machos


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "darwin", reason="build.sh does it there")
def test_py2app_gets_as_far_as_this_systems_libraries(tmp_path: Path) -> None:
    """Six minutes. It ends where py2app reads the first library, which is none of a Mac's here."""
    uv = shutil.which("uv")
    assert uv, "uv is needed; pip install uv"
    source, env = tmp_path / "source", tmp_path / "env"
    for name in ("app", "core", "packaging", "resources"):
        shutil.copytree(bundle.ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "THIRD_PARTY_NOTICES.md"):
        shutil.copy(bundle.ROOT / name, source)
    icon.main(source / "build" / "icon")
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(env)], check=True, timeout=300)
    python = env / "bin" / "python"
    install = [uv, "pip", "install", "--quiet", "--python", str(python), "--editable", ".", "py2app", "setuptools"]
    subprocess.run(install, cwd=source, check=True, timeout=900)
    (mlx,) = env.glob("lib/python*/site-packages/mlx")
    (mlx / "__init__.py").touch()

    command = [str(python), "-W", "ignore", "setup_app.py", "py2app", "--dist-dir", "../dist", "--bdist-base", "../b"]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=source / "packaging", env=environment, capture_output=True, text=True, check=False, timeout=1800
    )
    assert "Unknown Mach-O header: 0x7f454c46" in done.stderr, done.stderr[-2000:]  # an ELF file

    contents = source / "dist" / "Slipstream.app" / "Contents"
    with (contents / "Info.plist").open("rb") as file:
        told = plistlib.load(file)
    assert {key: told.get(key) for key in bundle.plist()} == bundle.plist()
    assert machos.is_macho(contents / "MacOS" / told["CFBundleExecutable"])
    assert machos.look(contents / "MacOS").foreign == []
    (library,) = contents.glob("Resources/lib/python*.*/mlx_lm")
    assert [name for name in bundle.PACKAGES if not (library.parent / name).is_dir()] == []
    assert not (library.parent / "setuptools").exists()
