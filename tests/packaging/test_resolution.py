"""One pyproject for every platform: what a Mac would install can be resolved here."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def resolve(*options: str, **environment: str) -> str:
    uv = shutil.which("uv")
    assert uv, "uv is needed to resolve; pip install uv"
    command = [uv, "pip", "compile", "pyproject.toml", "--quiet", "--no-header", *options]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("python", ["3.11", "3.13"])
def test_a_mac_with_apple_silicon_resolves(python: str) -> None:
    found = resolve(
        "--python-platform", "aarch64-apple-darwin", "--python-version", python, MACOSX_DEPLOYMENT_TARGET="14.0"
    )
    for package in ("mlx==0.32.4", "mlx-metal==0.32.4", "mlx-lm==0.32.2", "pyside6-essentials==6.9.3"):
        assert package in found
    assert "mlx-cpu" not in found
    assert "torch==" not in found


def test_linux_with_an_nvidia_gpu_resolves() -> None:
    found = resolve("--python-platform", "x86_64-manylinux_2_35", "--python-version", "3.12", "--extra", "cuda")
    assert "mlx-cuda-13==0.32.4" in found


def test_linux_with_a_cpu_resolves() -> None:
    found = resolve("--python-platform", "x86_64-manylinux_2_35", "--python-version", "3.11")
    assert "mlx-cpu==0.32.4" in found
    assert "mlx-cuda" not in found
