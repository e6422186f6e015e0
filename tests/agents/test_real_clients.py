"""The real client programs, from npm, against `slipstream serve`: a tool round with the scripted model, a text turn
with the built-in pair.

Run with: pytest -m client tests/agents/test_real_clients.py
It installs what it needs (about 1.3 GB) under ~/.cache/slipstream-clients, or $SLIPSTREAM_CLIENTS_CACHE, once.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from slipstream.agents import client, plan, write
from slipstream.agents.client import Outcome
from slipstream.agents.config import ModelCard, Place, ServerAddress, served_models
from slipstream.agents.registry import AGENTS, LAUNCHERS

pytestmark = pytest.mark.client

NODE = "node@24.21.0"  # pi needs 22.19
PACKAGES = {
    "claude": "@anthropic-ai/claude-code@2.1.332",
    "pi": "@earendil-works/pi-coding-agent@1.6.0",
    "codex": "@openai/codex@0.171.0",
    "opencode": "opencode-ai@1.18.33",
}
PROGRAMS = {"claude-code": "claude", "pi": "pi", "codex": "codex", "opencode": "opencode"}
SCRIPTS = Path(__file__).parents[1] / "data/scripts"
ODD_KEY = "!sk-$HOME-0123456789abcdef"  # letters that some clients would read as a command or a variable
SHORT_ANSWER = 64  # tokens: so small a model need not come to an end by itself
HELLO = "Hello from the server."
LIMIT_S = 180.0
PAIR_LIMIT_S = 420.0  # the built-in pair on a slow CPU reads 50 to 150 tokens a second


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


@contextmanager
def _serving(*arguments: str, key: str | None = None) -> Generator[ServerAddress]:
    """`slipstream serve` as a user starts it, on a free port."""
    locked = ("--api-key", key) if key else ()
    command = [sys.executable, "-m", "slipstream", "serve", "--port", "0", *arguments, *locked]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        ready = next((found for line in program.stdout if (found := re.search(r"ready at (\S+)", line))), None)
        assert ready is not None, "the server ended"
        try:
            yield ServerAddress(ready[1], key)
        finally:
            program.send_signal(signal.SIGINT)
            assert "Stopped." in program.communicate(timeout=60)[0]


@pytest.fixture(scope="module")
def scripted() -> Iterator[ServerAddress]:
    with _serving("--scripted", str(SCRIPTS / "agents.toml")) as server:
        yield server


@pytest.fixture(scope="module")
def pair() -> Iterator[ServerAddress]:
    """The built-in pair: real weights."""
    with _serving() as server:
        yield server


def _card(server: ServerAddress) -> ModelCard:
    return served_models(server)[0]


def _metrics(server: ServerAddress) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {server.key}"}
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # the fixture's proxies lead nowhere
    with opener.open(urllib.request.Request(f"{server.url}/metrics.json", headers=headers)) as response:
        return json.load(response)


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("name", AGENTS)
def test_client_reads_a_file_with_its_tool(name: str) -> None:
    with _serving("--scripted", str(SCRIPTS / "agents.toml"), key=ODD_KEY) as server:
        report = AGENTS[name].test(server, _card(server), LIMIT_S)
        assert report.outcome is Outcome.PASSED, report.reason
        assert report.version == PACKAGES[PROGRAMS[name]].rsplit("@", 1)[1]
        told = _metrics(server)
        assert told["finished"].get("stop", 0) >= 2 and not told["failed"], told
        # Whatever a client changes between two turns, the second begins where the first ended.
        assert told["reused_tokens"] > 0.45 * told["prompt_tokens"], told


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("name", AGENTS)
def test_report_says_when_no_tool_was_used(name: str, tmp_path: Path) -> None:
    script = tmp_path / "no-tool.toml"
    script.write_text(f"[[turn]]\nsays = {json.dumps(HELLO)}\n", "utf-8")
    with _serving("--scripted", str(script)) as server:
        report = AGENTS[name].test(server, _card(server), LIMIT_S)
    assert report.outcome is Outcome.NO_TOOL, report.reason


CHATS = {
    "claude-code": ("-p", "Say hello."),
    "pi": ("-p", "Say hello."),
    "codex": ("exec", "--skip-git-repo-check", "Say hello."),
    "opencode": ("run", "Say hello."),
}
# Claude Code and opencode fill the built-in model's 8192 tokens with tools before the first word.
WITHOUT_TOOLS = {
    "claude-code": ("--bare", "-p", "Say hello."),
    "pi": ("-p", "Say hello."),
    "codex": ("exec", "--skip-git-repo-check", "Say hello."),
    "opencode": ("run", "Say hello."),
}


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("name", AGENTS)
def test_client_chats_from_what_was_written_into_the_home(name: str, scripted: ServerAddress, tmp_path: Path) -> None:
    place, card = Place.here(), _card(scripted)
    write.apply(AGENTS[name].plan(scripted, card, place))
    assert HELLO in _say(PROGRAMS[name], CHATS[name], {}, tmp_path)
    write.apply(plan.undo(AGENTS[name].NAME, place))
    assert AGENTS[name].plan(scripted, card, place).changes


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("name", AGENTS)
def test_client_completes_a_text_turn_with_the_built_in_pair(name: str, pair: ServerAddress, tmp_path: Path) -> None:
    place = Place.here()
    write.apply(AGENTS[name].plan(pair, _card(pair), place))
    if name == "opencode":
        config = place.home / ".config/opencode/opencode.json"
        written = json.loads(config.read_text("utf-8"))
        for model in written["provider"]["slipstream"]["models"].values():
            model["limit"]["output"] = SHORT_ANSWER
        config.write_text(json.dumps(written | {"tools": {"*": False}}), "utf-8")
    before = _metrics(pair)["output_tokens"]
    said = _say(PROGRAMS[name], WITHOUT_TOOLS[name], {}, tmp_path, PAIR_LIMIT_S)
    assert said.strip()
    told = _metrics(pair)
    assert told["output_tokens"] > before and not told["failed"], told


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("program", LAUNCHERS)
def test_launcher_beats_the_users_own_settings_and_leaves_them_alone(
    program: str, scripted: ServerAddress, tmp_path: Path
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
    launch = LAUNCHERS[program].launcher(scripted, _card(scripted), place, found, args, folder)
    assert HELLO in _say(program, launch.argv[1:], launch.env, tmp_path)
    assert theirs.read_bytes() == before


def _say(
    program: str, args: tuple[str, ...], env: dict[str, str | None] | object, folder: Path, limit_s: float = LIMIT_S
) -> str:
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
        timeout=limit_s,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout
