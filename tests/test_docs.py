"""Commands in README and docs: each is one that the programs here take, or its block is marked `sh mac-only`."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slipstream import cli

ROOT = Path(__file__).parents[1]
FILES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
# Words that stand for the reader's own.
PLACEHOLDERS = ("COMMAND",)


def blocks(file: Path) -> Iterator[str]:
    yield from re.findall(r"^```sh\n(.*?)^```", file.read_text(encoding="utf-8"), re.M | re.S)


def commands(file: Path) -> Iterator[str]:
    """Of shell blocks, and of code in tables and sentences that starts with one of our programs."""
    for block in blocks(file):
        for line in block.replace("\\\n", " ").splitlines():
            yield from (part.strip() for part in re.sub(r"\s+#.*$", "", line).split("&&") if part.strip())
    prose = re.sub(r"^```.*?^```", "", file.read_text(encoding="utf-8"), flags=re.M | re.S)
    for code in re.findall(r"`((?:uv run|slipstream) [^`]+)`", prose):
        if not any(word in code.split() for word in PLACEHOLDERS):
            yield code.replace("\\|", "|")


ALL = [(file.name, command) for file in FILES for command in commands(file)]


def test_there_are_commands_to_check() -> None:
    assert len(ALL) > 20
    assert ("README.md", "uv run slipstream") in ALL


@pytest.mark.parametrize(("file", "command"), ALL)
def test_a_command_in_the_docs_is_one_that_is_taken(file: str, command: str) -> None:
    del file
    match shlex.split(command):
        case ["uv", "run", "slipstream", *arguments] | ["slipstream", *arguments]:
            if "--help" not in arguments:
                cli._parser().parse_args(arguments)  # ends the test when it refuses
        case ["uv", "run", "poe", task]:
            assert task in PROJECT["tool"]["poe"]["tasks"]
        case ["uv", "run", "pytest", *arguments]:
            check_pytest(arguments)
        case ["uv", "run", "python", script, *_]:
            check_script(ROOT / script)
        case [script, "--dry-run"] if script.startswith("packaging/"):
            assert (ROOT / script).is_file()  # and tests/packaging/test_scripts.py runs it
        case ["export", *assignments]:
            assert all("=" in each for each in assignments)
        case ["python3", "-m", "pip", *_]:
            assert "pip install -q" in (ROOT / ".ci" / "run").read_text()  # which runs it
        case ["apt-get", "install", package]:
            assert package in (ROOT / ".ci" / "run").read_text()
        case _:
            pytest.fail(f"nothing checks this command; if only a Mac has it, mark its block: ```sh mac-only\n{command}")


def check_pytest(arguments: list[str]) -> None:
    markers = {line.split(":")[0] for line in PROJECT["tool"]["pytest"]["ini_options"]["markers"]}
    for number, argument in enumerate(arguments):
        if argument == "-m":
            assert arguments[number + 1] in markers
        elif argument.startswith("tests/"):
            assert (ROOT / argument).exists()


def check_script(script: Path) -> None:
    assert script.is_file()
    if "argparse" in script.read_text(encoding="utf-8"):
        done = subprocess.run([sys.executable, str(script), "--help"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "usage:" in done.stdout
