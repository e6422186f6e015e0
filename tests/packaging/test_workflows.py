"""The workflows: they parse, pin what they use by commit, and call scripts that are there, in the right order."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # pyright: ignore[reportMissingModuleSource] - comes with transformers, without types

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def steps(file: Path) -> list[dict[str, Any]]:  # Any: YAML
    jobs: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_actions_are_pinned_by_commit_and_may_write_only_where_they_must(file: Path) -> None:
    told: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert told["permissions"] == {"contents": "read"}
    assert all("timeout-minutes" in job for job in told["jobs"].values())
    used = [step["uses"] for step in steps(file) if "uses" in step]
    assert used
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action) for action in used)


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_each_script_that_is_called_is_there(file: Path) -> None:
    called = re.findall(r"(?<![\w/])(packaging/[\w./]+\.(?:sh|py)|\.ci/run)", file.read_text(encoding="utf-8"))
    assert called
    assert [name for name in called if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_each_step_is_shell_that_parses(file: Path) -> None:
    for step in steps(file):
        if "run" in step:
            done = subprocess.run(["bash", "-n"], input=step["run"], capture_output=True, text=True, check=False)
            assert done.returncode == 0, (step, done.stderr)


def test_nothing_is_published_before_it_was_tried_signed_and_notarised() -> None:
    text = "\n".join(step.get("run", "") for step in steps(ROOT / ".github" / "workflows" / "release.yml"))
    order = ("build.sh", "sign.sh", "--selftest", "dmg.sh", "notarize.sh", "cask.py --dmg", "gh release create")
    places = [text.index(name) for name in order]
    assert places == sorted(places)


def test_secrets_are_given_to_the_steps_that_need_them_and_never_printed() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert "set -x" not in text
    lines = [line for line in text.splitlines() if "secrets." in line]
    assert all(re.fullmatch(r"\s+[A-Z_]+: \$\{\{ secrets\.\w+ \}\}", line) for line in lines), os.linesep.join(lines)


def test_a_pre_release_is_marked_as_one_and_moves_no_cask() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert 'case "$GITHUB_REF_NAME" in *-*) early=true ;; esac' in text
    assert '--prerelease="$early"' in text
    (cask,) = [
        step
        for step in steps(ROOT / ".github" / "workflows" / "release.yml")
        if step.get("name", "").startswith("The Cask")
    ]
    assert cask["if"] == "${{ !contains(github.ref_name, '-') }}"


def test_the_release_notes_are_this_versions_part_of_the_changelog() -> None:
    import slipstream

    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## {re.escape(slipstream.__version__)}\b", changelog, re.M)
