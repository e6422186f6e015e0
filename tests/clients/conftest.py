"""Programs of others, installed once under ~/.cache/slipstream-clients or $SLIPSTREAM_CLIENTS_CACHE."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

INSTALL_S = 600


def _cache() -> Path:
    return Path(os.environ.get("SLIPSTREAM_CLIENTS_CACHE") or Path.home() / ".cache/slipstream-clients")


def _need(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.fail(f"{program} is needed; install it")
    return found


def node_modules(*packages: str) -> Path:
    """A folder in which Node finds the packages. Run scripts from there."""
    folder = _cache() / "-".join(package.strip("@").replace("/", "_") for package in packages)
    if not (folder / "installed").exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = [_need("npm"), "install", "--no-audit", "--no-fund", "--prefix", str(folder), *packages]
        subprocess.run(command, check=True, timeout=INSTALL_S)
        (folder / "installed").touch()
    return folder


def python_program(package: str, program: str) -> str:
    """A program of a PyPI package, in an environment of its own: it must not see ours, nor we what it needs."""
    folder = _cache() / package
    found = folder / "bin" / program
    if not found.exists():
        uv = _need("uv")
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(folder)], check=True, timeout=60)
        command = [uv, "pip", "install", "--quiet", "--python", str(folder / "bin/python"), package]
        subprocess.run(command, check=True, timeout=INSTALL_S)
    return str(found)


def run(command: list[str], folder: Path, timeout_s: float = 600) -> str:
    """What it printed, whatever its exit status says."""
    environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False
    )
    return done.stdout + done.stderr
