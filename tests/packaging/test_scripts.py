"""The shell scripts: a dry run anywhere, a refusal elsewhere than on a Mac, and no complaint of shellcheck's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = ("build.sh", "sign.sh", "dmg.sh", "notarize.sh")


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("NOTARY", "IDENTITY"))}
    return subprocess.run(
        [str(ROOT / "packaging" / script), *arguments],
        env=environment | {"PYTHON": sys.executable},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def files() -> set[Path]:
    return {path for path in (ROOT / "build").rglob("*") if "plan" not in path.parts}


@pytest.mark.parametrize(
    ("script", "last"),
    [
        ("build.sh", "verify_bundle.py build/dist/Slipstream.app"),
        ("sign.sh", "codesign --verify --deep --strict"),
        ("dmg.sh", "hdiutil verify"),
        ("notarize.sh", "spctl --assess"),
    ],
)
def test_a_dry_run_says_every_step_and_does_none(script: str, last: str) -> None:
    before = files()
    done = run(script, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert last in done.stdout
    assert files() == before


@pytest.mark.parametrize("script", SCRIPTS)
def test_an_unknown_option_is_refused(script: str) -> None:
    done = run(script, "--dry-ran")
    assert done.returncode == 2
    assert "--dry-ran" in done.stderr


@pytest.mark.skipif(sys.platform == "darwin", reason="it would do it")
@pytest.mark.parametrize("script", SCRIPTS)
def test_elsewhere_than_on_a_mac_it_says_so(script: str) -> None:
    done = run(script)
    assert done.returncode == 2
    assert "macOS" in done.stderr


def test_shellcheck_has_nothing_to_say() -> None:
    shellcheck = shutil.which("shellcheck")
    if shellcheck is None:
        pytest.skip("shellcheck is not installed (apt-get install shellcheck)")
    scripts = [*(ROOT / "packaging").glob("*.sh"), ROOT / "packaging" / "bin" / "slipstream", ROOT / ".ci" / "run"]
    done = subprocess.run([shellcheck, "-x", *map(str, scripts)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_installed_command_finds_the_app_through_links(tmp_path: Path) -> None:
    contents = tmp_path / "My Apps" / "Slipstream.app" / "Contents"
    command = contents / "Resources" / "bin" / "slipstream"
    command.parent.mkdir(parents=True)
    shutil.copy(ROOT / "packaging" / "bin" / "slipstream", command)
    program = contents / "MacOS" / "Slipstream"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nprintf "[%s]" "$@"\n')
    program.chmod(0o755)
    links = tmp_path / "bin"
    links.mkdir()
    (links / "slipstream").symlink_to(command)
    (links / "again").symlink_to("slipstream")

    def said(*arguments: str) -> str:
        return subprocess.run([str(links / "again"), *arguments], capture_output=True, text=True, check=True).stdout

    assert said("generate", "--prompt", "two words") == "[generate][--prompt][two words]"
    assert said() == "[--help]"  # a terminal is no place to open the window from
