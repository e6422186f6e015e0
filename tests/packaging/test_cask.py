"""The Cask: generated, loads in Ruby, and its zap names what the code writes and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cask
import slipstream
from slipstream.store import paths
from slipstream_app import mac

HERE = Path(__file__).parent


def test_the_committed_cask_is_the_generated_one() -> None:
    assert cask.differences() == []


def test_a_changed_cask_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = tmp_path / "slipstream.rb"
    changed.write_text(cask.CASK.read_text().replace("Application Support/Slipstream", "Application Support"))
    monkeypatch.setattr(cask, "CASK", changed)
    assert cask.differences()


def loaded() -> dict[str, Any]:
    ruby = shutil.which("ruby")
    if ruby is None:
        pytest.skip("ruby is not installed (apt-get install ruby)")
    command = [ruby, "-W", str(HERE / "cask_stub.rb"), str(cask.CASK)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # Ruby's own warnings
    return json.loads(done.stdout)


def test_ruby_loads_every_stanza() -> None:
    said = loaded()
    assert said["version"] == [slipstream.__version__]
    assert said["url"][0].endswith(f"/v{slipstream.__version__}/Slipstream-{slipstream.__version__}-arm64.dmg")
    assert {"arch": "arm64"} in said["depends_on"]
    assert {"macos": ">= :sonoma"} in said["depends_on"]
    assert said["uninstall"][0]["quit"] == mac.AGENT
    assert said["livecheck"][0]["strategy"] == ["github_latest"]
    assert said["app"] == ["Slipstream.app"]
    assert said["binary"][0].startswith("/Applications/Slipstream.app/Contents/")
    assert sorted(said["zap"][0]["trash"]) == sorted((*cask.WRITTEN, *cask.BY_MACOS))


def test_zap_names_what_the_code_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setenv("HOME", str(tmp_path))
    mac.set_login_item(True)
    (login_item,) = (tmp_path / "Library" / "LaunchAgents").iterdir()
    written = {paths.data_dir(), paths.cache_dir(), login_item}
    zapped = {tmp_path / path.removeprefix("~/") for path in cask.WRITTEN}
    assert {path for path in zapped if "Preferences" not in path.parts} == written


def test_zap_names_the_settings_of_this_organisation_and_application() -> None:
    """Qt's rule for a name without a dot: com, the organisation, the application (QSettings, platform notes)."""
    from slipstream_app import main

    source = Path(main.__file__).read_text(encoding="utf-8")
    assert 'app.setApplicationName("Slipstream")' in source
    assert 'app.setOrganizationName("Slipstream")' in source
    assert "setOrganizationDomain" not in source
    assert "~/Library/Preferences/com.slipstream.Slipstream.plist" in cask.WRITTEN


def test_macos_keeps_the_rest_under_the_bundle_id() -> None:
    assert all(mac.AGENT in path for path in cask.BY_MACOS)


def test_the_checksum_is_the_images(tmp_path: Path) -> None:
    image = tmp_path / "a.dmg"
    image.write_bytes(b"image")
    command = [sys.executable, str(cask.bundle.ROOT / "packaging" / "cask.py"), "--dmg", str(image), "--dry-run"]
    done = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=True, timeout=60)
    assert 'sha256 "6105d6cc76af400325e94d588ce511be5bfdbb73b437dc51eca43917d7a43e3d"' in done.stdout
