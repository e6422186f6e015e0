"""The real client programs, from npm, against a scripted server: do they accept what we write?

Run with: pytest -m client tests/agents/test_real_clients.py
It installs what it needs (about 1.3 GB) under ~/.cache/slipstream-clients, or $SLIPSTREAM_CLIENTS_CACHE, once.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from slipstream.agents import client, plan, write
from slipstream.agents.client import Outcome
from slipstream.agents.config import Place
from slipstream.agents.registry import AGENTS, LAUNCHERS

from .conftest import MODEL, Scripted

pytestmark = pytest.mark.client

NODE = "node@24.21.0"  # pi needs 22.19
PACKAGES = {
    "claude": "@anthropic-ai/claude-code@2.1.332",
    "pi": "@earendil-works/pi-coding-agent@1.6.0",
    "codex": "@openai/codex@0.171.0",
    "opencode": "opencode-ai@1.18.33",
}
PROGRAMS = {"claude-code": "claude", "pi": "pi", "codex": "codex", "opencode": "opencode"}
ROUTES = {
    "claude-code": "/v1/messages",
    "pi": "/v1/chat/completions",
    "codex": "/v1/responses",
    "opencode": "/v1/chat/completions",
}
LIMIT_S = 180.0


def _install(npm: str, package: str, cache: Path) -> Path:
    folder = cache / package.replace("/", "_")
    binaries = folder / "node_modules" / ".bin"
    if not (folder / "installed").exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), package]
        subprocess.run(command, check=True, timeout=600)
        # npm 11 runs no install scripts; Claude Code's links its binary.
        script = folder / "node_modules/@anthropic-ai/claude-code/install.cjs"
        if script.exists():
            subprocess.run(["node", str(script)], cwd=script.parent, check=True, timeout=120)
        (folder / "installed").touch()
    return binaries


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The clients on PATH, an empty home, and no way out: every proxy variable points at a closed port."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.fail("npm is needed to install the clients")
    cache = Path(os.environ.get("SLIPSTREAM_CLIENTS_CACHE") or Path.home() / ".cache/slipstream-clients")
    folders = [_install(npm, package, cache) for package in (NODE, *PACKAGES.values())]
    monkeypatch.setenv("PATH", os.pathsep.join([*map(str, folders), os.environ["PATH"]]))
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", *client.without_foreign()):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("name", AGENTS)
def test_client_reads_a_file_with_its_tool(name: str, locked: Scripted) -> None:
    report = AGENTS[name].test(locked.address, locked.card, LIMIT_S)
    assert report.outcome is Outcome.PASSED, report.reason
    assert report.version == PACKAGES[PROGRAMS[name]].rsplit("@", 1)[1]
    bodies = locked.posted(ROUTES[name])
    assert len(bodies) >= 2
    assert {body["model"] for body in bodies} == {MODEL}


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("name", AGENTS)
def test_report_says_when_no_tool_was_used(name: str, scripted: Scripted) -> None:
    scripted.reads_files = False
    report = AGENTS[name].test(scripted.address, scripted.card, LIMIT_S)
    assert report.outcome is Outcome.NO_TOOL, report.reason


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("name", AGENTS)
def test_client_chats_from_what_was_written_into_the_home(name: str, scripted: Scripted, tmp_path: Path) -> None:
    place = Place.here()
    write.apply(AGENTS[name].plan(scripted.address, scripted.card, place))
    arguments = {
        "claude-code": ("-p", "Say hello."),
        "pi": ("-p", "Say hello."),
        "codex": ("exec", "--skip-git-repo-check", "Say hello."),
        "opencode": ("run", "Say hello."),
    }
    assert "Hello from the server." in _say(PROGRAMS[name], arguments[name], {}, tmp_path)
    write.apply(plan.undo(AGENTS[name].NAME, place))
    assert AGENTS[name].plan(scripted.address, scripted.card, place).changes


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("program", LAUNCHERS)
def test_launcher_beats_the_users_own_settings_and_leaves_them_alone(
    program: str, scripted: Scripted, tmp_path: Path
) -> None:
    place = Place.here()
    elsewhere = '{"env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "ANTHROPIC_MODEL": "x"}}\n'
    theirs = place.home / {"claude": ".claude/settings.json", "pi": ".pi/agent/models.json"}[program]
    theirs.parent.mkdir(parents=True)
    theirs.write_text(elsewhere if program == "claude" else '{"providers": {} /* mine */}\n', "utf-8")
    before = theirs.read_bytes()
    found = client.locate(program, place)
    assert found
    folder = tmp_path / "launch"
    folder.mkdir()
    args = ("-p", "Say hello.")
    launch = LAUNCHERS[program].launcher(scripted.address, scripted.card, place, found, args, folder)
    assert "Hello from the server." in _say(program, launch.argv[1:], launch.env, tmp_path)
    assert theirs.read_bytes() == before


def _say(program: str, args: tuple[str, ...], env: dict[str, str | None] | object, folder: Path) -> str:
    found = client.locate(program)
    assert found
    changes: dict[str, str | None] = {**client.without_foreign(), "OPENCODE_DISABLE_MODELS_FETCH": "1"}
    changes |= {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "PI_OFFLINE": "1"}
    changes |= env if isinstance(env, dict) else {}
    project = folder / "project"
    project.mkdir(exist_ok=True)
    done = subprocess.run(
        [str(found), *args],
        env=client.environment(found, changes),
        cwd=project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout
