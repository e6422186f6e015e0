from __future__ import annotations

import sys
from pathlib import Path

import pytest

import slipstream
from slipstream.store.paths import cache_dir, data_dir, resources_dir


def test_folders_follow_the_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", "relative/is/ignored")
    assert cache_dir() == tmp_path / ".cache/slipstream"
    assert data_dir() == tmp_path / ".local/share/slipstream"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "c"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "d"))
    assert cache_dir() == tmp_path / "c/slipstream"
    assert data_dir() == tmp_path / "d/slipstream"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_dir() == tmp_path / "Library/Caches/Slipstream"
    assert data_dir() == tmp_path / "Library/Application Support/Slipstream"


def test_resources_are_found_in_a_checkout_a_wheel_and_a_bundle(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert (resources_dir() / "demo/README.md").is_file()
    wheel = tmp_path / "site-packages/slipstream"
    (wheel / "_resources").mkdir(parents=True)
    monkeypatch.setattr(slipstream, "__file__", str(wheel / "__init__.py"))
    assert resources_dir() == wheel / "_resources"
    monkeypatch.setattr(sys, "frozen", "macosx_app", raising=False)
    monkeypatch.setenv("RESOURCEPATH", "/Applications/Slipstream.app/Contents/Resources")
    assert resources_dir() == Path("/Applications/Slipstream.app/Contents/Resources/resources")
