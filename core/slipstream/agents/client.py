"""Finds, starts and tries out the client programs themselves. Knows nothing of their configuration."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from slipstream.agents.config import Place, ServerAddress, ServerUnreachable, served_models

VERSION_TIMEOUT_S = 60.0  # opencode needs up to 37 s of processor time to start
TEST_TIMEOUT_S = 900.0  # a slow machine may read the 12k tokens of a first prompt for minutes
SHOWN_OUTPUT = 300
# An app started from the Finder gets a short PATH; these are where installers put the clients.
SEARCHED = (
    ".local/bin",
    ".claude/local",
    ".opencode/bin",
    ".bun/bin",
    ".volta/bin",
    ".npm-global/bin",
    "/opt/homebrew/bin",
    "/usr/local/bin",
)
# Set by another run of a client, or meant for another server: none of it may reach ours.
FOREIGN = ("ANTHROPIC_", "CLAUDE", "OPENAI_", "CODEX_", "OPENCODE", "PI_", "AI_AGENT")


@dataclass(frozen=True, slots=True)
class Installed:
    path: Path
    version: str


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start a client; `env` comes on top of this process's own, None removes a variable."""

    argv: tuple[str, ...]
    env: Mapping[str, str | None]


class Outcome(StrEnum):
    PASSED = "passed"
    NOT_INSTALLED = "not_installed"
    NO_SERVER = "no_server"
    TIMED_OUT = "timed_out"
    FAILED = "failed"  # the client ended with an error
    NO_TOOL = "no_tool"  # it answered, but not with what only its tool could have read


@dataclass(frozen=True, slots=True)
class TestReport:
    __test__ = False  # not a test case, whatever pytest thinks of its name

    outcome: Outcome
    reason: str
    version: str = ""
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        return self.outcome is Outcome.PASSED


def locate(program: str, place: Place | None = None) -> Path | None:
    place = place or Place.here()
    nvm = sorted(place.home.glob(".nvm/versions/node/*/bin"), reverse=True)
    folders = [place.env.get("PATH") or os.defpath, *(str(place.home / name) for name in SEARCHED), *map(str, nvm)]
    found = shutil.which(program, path=os.pathsep.join(folders))
    return Path(found) if found else None


def find(program: str) -> Installed | None:
    """The program that a shell would start, or one where installers put it; None when it is not there."""
    path = locate(program)
    if path is None:
        return None
    try:
        done = subprocess.run(
            [path, "--version"],
            env=environment(path, {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return Installed(path, "")
    version = re.search(r"\d+\.\d+[\w.+-]*", done.stdout)
    return Installed(path, version.group() if version else "")


def environment(program: Path, changes: Mapping[str, str | None], host: str = "127.0.0.1") -> dict[str, str]:
    """Ours, with `changes`; the program's own folder is searched for node, and no proxy stands before the server."""
    env = dict(os.environ)
    env["PATH"] = os.pathsep.join([str(program.parent), env.get("PATH") or os.defpath])
    for name in ("NO_PROXY", "no_proxy"):
        known = [part for part in env.get(name, "").split(",") if part]
        env[name] = ",".join(dict.fromkeys([*known, "127.0.0.1", "localhost", "::1", host]))
    for name, value in changes.items():
        env.pop(name, None)
        if value is not None:
            env[name] = value
    return env


def without_foreign() -> dict[str, None]:
    return {name: None for name in os.environ if name.startswith(FOREIGN)}


def run(launch: Launch, host: str) -> int:
    """Start the client on this terminal and wait for it. Returns its exit status."""
    child = subprocess.Popen(launch.argv, env=environment(Path(launch.argv[0]), launch.env, host))
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Control-C is the client's to interpret
    try:
        status = child.wait()
    finally:
        signal.signal(signal.SIGINT, before)
    return status if status >= 0 else 128 - status


def tool_round(
    program: str,
    install: str,
    server: ServerAddress,
    prepare: Callable[[Installed, Path, str], Launch],
    limit_s: float,
) -> TestReport:
    """Ask the installed client for a word that stands in a file, so that only its tool can know it.

    `prepare(installed, folder, prompt)` writes the configuration under the folder, which is new, and says how to start.
    """
    started = time.monotonic()
    installed = find(program)
    if installed is None:
        return TestReport(Outcome.NOT_INSTALLED, f"{program} is not installed; install it with: {install}")
    try:
        served_models(server)
    except ServerUnreachable as error:
        return TestReport(Outcome.NO_SERVER, error.message, installed.version)
    word = f"CODE-{secrets.token_hex(4)}"
    with tempfile.TemporaryDirectory(prefix="slipstream-test-") as name:
        folder = Path(name).resolve()
        project = folder / "project"
        project.mkdir()
        note = project / "note.txt"
        note.write_text(f"The code word is {word}\n", "utf-8")
        prompt = f"Use a tool to read the file {note}. Then reply with the code word that it holds."
        launch = prepare(installed, folder, prompt)
        status, said, errors = _run_for(launch, project, folder, server.host, limit_s)
    seconds = time.monotonic() - started
    tail = " ".join((errors + " " + said).split())[-SHOWN_OUTPUT:]
    if server.key:
        tail = tail.replace(server.key, "…")
    if status is None:
        reason = f"no answer within {limit_s:g} s; the client said: {tail or 'nothing'}"
        return TestReport(Outcome.TIMED_OUT, reason, installed.version, seconds)
    if status != 0:
        reason = f"the client ended with status {status}: {tail or 'it said nothing'}"
        return TestReport(Outcome.FAILED, reason, installed.version, seconds)
    if word not in said:
        reason = f"the client answered, but the model did not read the file with a tool: {tail or 'an empty answer'}"
        return TestReport(Outcome.NO_TOOL, reason, installed.version, seconds)
    return TestReport(Outcome.PASSED, "read a file with a tool and answered", installed.version, seconds)


def _run_for(launch: Launch, project: Path, folder: Path, host: str, limit_s: float) -> tuple[int | None, str, str]:
    """Exit status (None: it took too long and was ended, with its children), what it said and what it complained of."""
    # Files, not pipes: a grandchild that lives on would hold a pipe open.
    out, err = folder / "out.txt", folder / "err.txt"
    # opencode takes its folder from PWD, and a file outside of it needs a permission that nobody is there to give.
    env = environment(Path(launch.argv[0]), {**launch.env, "PWD": str(project)}, host)
    with out.open("wb") as out_file, err.open("wb") as err_file:
        child = subprocess.Popen(
            launch.argv,
            cwd=project,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out_file,
            stderr=err_file,
            start_new_session=True,
        )
        status: int | None = None
        try:
            status = child.wait(limit_s)
        except subprocess.TimeoutExpired:
            pass
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    return status, out.read_text("utf-8", "replace"), err.read_text("utf-8", "replace")
