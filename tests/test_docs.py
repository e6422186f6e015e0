"""Commands in README and docs: each is one that the programs here take, or its block is marked `sh mac-only`.

What asks a server (`curl` lines, Python blocks) is run against one, with an engine that answers by rote.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from fakes import serving
from slipstream import cli

ROOT = Path(__file__).parents[1]
FILES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
# Words that stand for the reader's own.
PLACEHOLDERS = ("COMMAND",)


def blocks(file: Path, language: str = "sh") -> Iterator[str]:
    """Also those inside a list, without its indentation."""
    text = file.read_text(encoding="utf-8")
    for indent, block in re.findall(rf"^( *)```{language}\n(.*?)^ *```", text, re.M | re.S):
        yield re.sub(rf"^{indent}", "", block, flags=re.M)


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
        case ["curl", *_]:
            pass  # test_what_the_docs_ask_of_a_server runs it
        case ["apt-get", "install", package]:
            assert package in (ROOT / ".ci" / "run").read_text()
        case _:
            pytest.fail(f"nothing checks this command; if only a Mac has it, mark its block: ```sh mac-only\n{command}")


ADDRESS = "http://127.0.0.1:8765"
CURLS = [(file, command) for file, command in ALL if command.startswith("curl ")]
SNIPPETS = [(file.name, block) for file in FILES for block in blocks(file, "python")]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving() as served:
        yield served.url


@pytest.mark.parametrize(("file", "command"), CURLS)
def test_what_the_docs_ask_of_a_server_is_answered(file: str, command: str, url: str) -> None:
    del file
    asked = shlex.split(command.replace(ADDRESS, url))
    done = subprocess.run([*asked, "--fail-with-body", "--noproxy", "*"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert isinstance(json.loads(done.stdout), dict)


@pytest.mark.parametrize(("file", "block"), SNIPPETS)
def test_programs_in_the_docs_run(file: str, block: str, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ADDRESS in block, f"{file}: what does this program need?"
    names: dict[str, Any] = {}
    exec(compile(block.replace(ADDRESS, url), file, "exec"), names)
    for client in names.values():  # programs end with their clients open, and tests go on
        if isinstance(client, openai.OpenAI | anthropic.Anthropic):
            client.close()
    assert capsys.readouterr().out == "Hello world\n"


def test_every_block_says_what_it_is() -> None:
    """A block without a language would be checked by nobody."""
    known = {"sh", "sh mac-only", "python", "toml", "json", "text", ""}
    for file in FILES:
        fences = re.findall(r"^ *```(.*)$", file.read_text(encoding="utf-8"), re.M)
        assert len(fences) % 2 == 0, file.name
        assert set(fences) <= known, file.name
        assert all(language for language in fences[::2]), file.name


def test_every_page_is_linked_and_every_link_leads_somewhere() -> None:
    linked = set[Path]()
    for file in FILES:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", file.read_text(encoding="utf-8")):
            if "://" not in target:
                path = (file.parent / target).resolve()
                assert path.exists(), f"{file.name} links to {target}"
                linked.add(path)
    pages = {page.resolve() for page in (ROOT / "docs").glob("*.md")}
    assert pages <= linked, sorted(page.name for page in pages - linked)


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
