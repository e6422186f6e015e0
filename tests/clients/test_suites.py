"""Public conformance suites against `slipstream serve` with the built-in pair.

Run with: pytest -m client tests/clients (needs uv, node and npm)
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakes import FakeTokeniser, serving
from server.requests import chat, get

from .conftest import node_modules, python_program, run

pytestmark = pytest.mark.client

SERVE = "from slipstream_app.command import main; main()"
COMPLY = "llm-comply==0.5.0"
CANARY = "compatcanary@0.2.2"
SCHEMATHESIS = "schemathesis==4.32.5"
CASES = 2000
# All but what this model cannot do: images get a 400. The others that do not pass are ones the suite itself skips or
# only warns of.
IMAGES = "Image Input"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    command = [sys.executable, "-c", SERVE, "serve", "--port", "0"]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as program:
        try:
            assert program.stdout is not None
            told = ""
            while not (found := re.search(r"http://127\.0\.0\.1:\d+", told)):
                line = program.stdout.readline()
                assert line, told
                told += line
            yield found.group()
        finally:
            program.terminate()


@pytest.mark.parametrize(("dialect", "passes"), [("openai-chat", 7), ("anthropic", 7), ("open-responses", 11)])
def test_llm_comply(dialect: str, passes: int, url: str, tmp_path: Path) -> None:
    chat(url, max_tokens=1)  # the model is loaded
    program = python_program(COMPLY, "llm-comply")
    said = run(
        [program, "-u", f"{url}/v1", "-k", "any", "-m", "any", "--format", dialect, "--timeout", "300"], tmp_path
    )
    assert re.findall(r"❌ (.*) \(\d+ms\)", said) == [IMAGES], said
    assert f"Results: {passes}/" in said, said
    assert "HTTP 400" in said


def test_compatcanary(url: str, tmp_path: Path) -> None:
    model = get(url, "/v1/models").json()["data"][0]["id"]
    folder = node_modules(CANARY)
    command = ["node", "node_modules/compatcanary/src/cli.js", "scan", "--base-url", f"{url}/v1", "--model", model]
    said = run([*command, "--api-key", "any", "--timeout", "300", "--fail-on", "never"], folder)
    assert "Score: 100/100" in said, said


def test_schemathesis_finds_no_server_error(tmp_path: Path) -> None:
    """Against the server without a model: thousands of answers, and the routes are the same."""
    program = python_program(SCHEMATHESIS, "schemathesis")
    report = tmp_path / "events.ndjson"
    with serving(tokeniser=FakeTokeniser()) as served:
        command = [program, "run", f"{served.url}/openapi.json", "--checks", "not_a_server_error"]
        command += ["--phases", "coverage,fuzzing", "--max-examples", "80", "--continue-on-failure", "--no-color"]
        said = run([*command, "--report", "ndjson", "--report-ndjson-path", str(report)], tmp_path, 1800)
        assert get(served.url, "/health").json()["status"] == "ok"
    # It ends with "No issues found" only where it has no advice on the specification either.
    cases: Any = re.search(r"(\d+) generated(?:, (\d+) passed)?", said.replace(",", ""))
    assert cases and int(cases.group(1)) >= CASES, said
    assert cases.group(1) == cases.group(2) or "No issues found" in said, said
    assert "❌" not in said, said
    assert json.loads(report.read_text().splitlines()[0])
