"""The command line, with client programs that only look like one."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

import pytest

from slipstream.agents import client
from slipstream.agents.client import Outcome
from slipstream.agents.commands import add_parsers
from slipstream.agents.config import (
    ModelCard,
    Place,
    ServerAddress,
    ServerUnreachable,
    choose_model,
    served_models,
)
from slipstream.agents.registry import AGENTS, LAUNCHERS
from slipstream.errors import InvalidRequest
from slipstream.store.preferences import DEFAULT_PORT

from .conftest import CONTEXT, MODEL, Scripted

KEY = "sk-local-0123456789abcdef"
NOBODY = "http://127.0.0.1:9"  # the discard port: nothing listens
SETTINGS = Path(".claude/settings.json")
every_agent = pytest.mark.parametrize("name", AGENTS)


def slipstream(*args: str | Path) -> int:
    parser = argparse.ArgumentParser(prog="slipstream")
    add_parsers(parser.add_subparsers(required=True))
    parsed = parser.parse_args([str(arg) for arg in args])
    return parsed.run(parsed)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of our own, with nothing on PATH that a test has not put there."""
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    for name in (*client.without_foreign(), "XDG_CONFIG_HOME", "XDG_DATA_HOME", "SLIPSTREAM_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{home / 'bin'}:/usr/bin:/bin")
    return home


def fake(home: Path, program: str, body: str) -> None:
    path = home / "bin" / program
    path.write_text(f"#!{sys.executable}\nimport json, os, pathlib, subprocess, sys, time\n{body}\n", "utf-8")
    path.chmod(0o755)


def test_default_address_is_the_servers() -> None:
    assert ServerAddress().url == f"http://127.0.0.1:{DEFAULT_PORT}"


@pytest.mark.parametrize(
    "url", ["", "localhost:8765", "ftp://x", "http://", "http://a b", "http://h:99999", "http://u:p@h", "http://h?x=1"]
)
def test_wrong_addresses_are_refused(url: str) -> None:
    with pytest.raises(InvalidRequest):
        ServerAddress(url)


@pytest.mark.parametrize("key", ["", "a b", "ü", "a\nb"])
def test_wrong_keys_are_refused_without_being_repeated(key: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        ServerAddress(key=key)
    assert not key or key not in refused.value.message


@every_agent
def test_show_prints_the_diff_and_changes_nothing(
    name: str, home: Path, scripted: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(home.rglob("*"))
    assert slipstream("agents", name, "show", "--url", scripted.address.url) == 0
    shown = capsys.readouterr().out
    assert f"+++ {home}" in shown
    assert MODEL in shown
    assert str(CONTEXT) in shown
    assert sorted(home.rglob("*")) == before


@every_agent
def test_write_and_undo_round(name: str, home: Path, locked: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    key = locked.address.key
    assert key
    options = ("--url", locked.address.url, "--key", key)
    assert slipstream("agents", name, "write", "--yes", *options) == 0
    assert slipstream("agents", name, "write", "--yes", *options) == 0
    assert "nothing to change" in capsys.readouterr().out
    assert slipstream("agents", name, "undo", "--yes") == 0
    assert slipstream("agents", name, "undo") == 0
    said = capsys.readouterr()
    assert "Slipstream has changed nothing" in said.out
    assert key not in said.out + said.err
    assert [path.name for path in home.iterdir() if path.name not in (".local", "Library")] == ["bin"]


@every_agent
def test_without_a_terminal_write_needs_yes(
    name: str, home: Path, scripted: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(home.rglob("*"))
    assert slipstream("agents", name, "write", "--url", scripted.address.url) == 2
    assert "--yes" in capsys.readouterr().err
    assert sorted(home.rglob("*")) == before


@every_agent
def test_without_a_terminal_undo_needs_yes_too(
    name: str, home: Path, scripted: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    assert slipstream("agents", name, "write", "--yes", "--url", scripted.address.url) == 0
    before = sorted(home.rglob("*"))
    assert slipstream("agents", name, "undo") == 2
    assert "--yes" in capsys.readouterr().err
    assert sorted(home.rglob("*")) == before


def test_write_asks_and_takes_no_for_an_answer(home: Path, scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    for answer, status in (("n", 1), ("", 1), ("y", 0)):
        monkeypatch.setattr("builtins.input", lambda _, answer=answer: answer)
        assert slipstream("agents", "claude-code", "write", "--url", scripted.address.url) == status
        assert (home / SETTINGS).exists() is (status == 0)


@every_agent
def test_key_is_never_printed(name: str, home: Path, locked: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    key = locked.address.key
    assert key
    assert slipstream("agents", name, "show", "--url", locked.address.url, "--key", key) == 0
    assert slipstream("agents", name, "write", "--url", locked.address.url, "--key", key, "--yes") == 0
    assert slipstream("agents", name, "show", "--url", locked.address.url, "--key", f"{key}2", "--model", "m") == 0
    said = capsys.readouterr()
    assert key not in said.out + said.err
    assert key.replace("$", "$$") not in said.out + said.err


def test_another_home_is_used_in_place_of_ours_and_of_what_moved_ours(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "moved"))
    other = tmp_path / "other"
    other.mkdir()
    options = ("--url", NOBODY, "--model", "m", "--context", "65536", "--yes")
    assert slipstream("agents", "codex", "write", "--home", other, *options) == 0
    assert (other / ".codex" / "config.toml").exists()
    assert not (tmp_path / "moved").exists()
    assert slipstream("agents", "codex", "write", *options) == 0
    assert (tmp_path / "moved" / "config.toml").exists()
    assert not (home / ".codex").exists()
    assert slipstream("agents", "codex", "undo", "--home", other, "--yes") == 0
    assert not (other / ".codex").exists()
    assert (tmp_path / "moved" / "config.toml").exists()


@pytest.mark.parametrize(
    ("name", "variable", "file"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", "settings.json"),
        ("pi", "PI_CODING_AGENT_DIR", "models.json"),
        ("codex", "CODEX_HOME", "config.toml"),
        ("opencode", "XDG_CONFIG_HOME", "opencode/opencode.json"),
        ("opencode", "OPENCODE_CONFIG_DIR", "opencode.json"),
        ("opencode", "OPENCODE_CONFIG", ""),
    ],
)
def test_moved_configuration_is_found(name: str, variable: str, file: str, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    for value, home in ((str(moved), tmp_path / "home"), ("~/moved", tmp_path)):
        place = Place(home, {variable: value}, tmp_path / "journals")
        paths = [change.path for change in AGENTS[name].plan(ServerAddress(), ModelCard("m"), place).changes]
        assert (moved / file if file else moved) in paths
        assert all(path.is_relative_to(moved) for path in paths)


def test_opencode_writes_where_most_counts(tmp_path: Path) -> None:
    place = Place.at(tmp_path)
    folder = tmp_path / ".config" / "opencode"
    folder.mkdir(parents=True)
    for name in ("config.json", "opencode.json", "opencode.jsonc"):
        (folder / name).write_text("{}", "utf-8")
        change = AGENTS["opencode"].plan(ServerAddress(), ModelCard("m"), place).changes[0]
        assert change.path == folder / name


@pytest.mark.parametrize(("mode", "after"), [(None, "default"), ("auto", "default"), ("acceptEdits", "acceptEdits")])
def test_claude_code_keeps_a_permission_mode_that_works(mode: str | None, after: str, place: Place) -> None:
    path = place.home / SETTINGS
    path.parent.mkdir()
    path.write_text(json.dumps({"permissions": {"defaultMode": mode}} if mode else {}), "utf-8")
    change = AGENTS["claude-code"].plan(ServerAddress(), ModelCard("m", 131_072), place)
    assert json.loads(change.changes[0].after or "")["permissions"]["defaultMode"] == after
    # What does more than name the server is said.
    assert [note.code for note in change.notes] == ["asks_first"] * (mode != after) + ["less_traffic"]


def test_notes_warn_of_what_would_not_work(place: Place) -> None:
    path = place.home / SETTINGS
    path.parent.mkdir()
    path.write_text('{"env": {"ANTHROPIC_API_KEY": "sk-ant-0123456789"}}', "utf-8")
    change = AGENTS["claude-code"].plan(ServerAddress(), ModelCard("m", 8192), place)
    assert [note.code for note in change.notes] == ["small_context", "two_keys", "asks_first", "less_traffic"]
    (place.home / ".codex").mkdir()
    (place.home / ".codex" / "config.toml").write_text('profile = "work"\n[profiles.work]\nmodel = "x"\n', "utf-8")
    change = AGENTS["codex"].plan(ServerAddress(), ModelCard("m"), place)
    assert [note.code for note in change.notes] == ["profile"]


# ------------------------------------------------------------------ the served model


def test_model_and_window_come_from_the_server(scripted: Scripted) -> None:
    assert served_models(scripted.address) == [ModelCard(MODEL, CONTEXT)]
    assert choose_model(scripted.address, None, None) == (ModelCard(MODEL, CONTEXT), ())
    assert choose_model(scripted.address, MODEL, 4096)[0].context == 4096
    card, notes = choose_model(scripted.address, "other", None)
    assert card.name == "other"
    assert [note.code for note in notes] == ["model_not_listed"]


def test_without_a_server_the_model_must_be_named() -> None:
    nobody = ServerAddress(NOBODY)
    with pytest.raises(ServerUnreachable, match="--model"):
        choose_model(nobody, None, None)
    card, notes = choose_model(nobody, "m", None)
    assert card.context < 65_536
    assert [note.code for note in notes] == ["context_guessed"]
    assert choose_model(nobody, "m", 65_536) == (ModelCard("m", 65_536), ())


def test_wrong_key_is_named_as_the_reason(locked: Scripted) -> None:
    with pytest.raises(ServerUnreachable, match=r"401.*--key"):
        served_models(ServerAddress(locked.address.url, "wrong"))


def test_errors_end_with_a_sentence_and_a_status(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert slipstream("agents", "pi", "show", "--url", NOBODY) == 1
    assert "slipstream serve" in capsys.readouterr().err
    assert slipstream("agents", "pi", "show", "--url", "nonsense") == 2
    assert "nonsense" in capsys.readouterr().err
    (home / SETTINGS).parent.mkdir()
    (home / SETTINGS).write_text("{", "utf-8")
    assert slipstream("agents", "claude-code", "write", "--yes", "--url", NOBODY, "--model", "m") == 1
    assert "is not valid JSON" in capsys.readouterr().err
    assert (home / SETTINGS).read_text("utf-8") == "{"


# ------------------------------------------------------------------ launchers

DUMP = """
settings = sys.argv[sys.argv.index("--settings") + 1] if "--settings" in sys.argv else None
extension = sys.argv[sys.argv.index("-e") + 1] if "-e" in sys.argv else None
file = settings or extension
mode = oct(pathlib.Path(file).parent.stat().st_mode & 0o777)
dump = {"argv": sys.argv[1:], "env": dict(os.environ), "file": file, "mode": mode, "text": open(file).read()}
open(os.path.expanduser("~/dump.json"), "w").write(json.dumps(dump))
sys.exit(7)
"""


@pytest.mark.parametrize("program", LAUNCHERS)
def test_launcher_hands_over_arguments_status_and_server(
    program: str, home: Path, locked: Scripted, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    key = locked.address.key
    assert key
    fake(home, program, DUMP)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "for somebody else")
    monkeypatch.setenv("SLIPSTREAM_API_KEY", key)
    before = {path for path in home.rglob("*") if path.is_file()}
    args = ("-p", "say hi", "--url", locked.address.url, "-c", "--", "--model", "theirs", "--", "-x")
    assert slipstream(program, *args) == 7
    dump = json.loads((home / "dump.json").read_text("utf-8"))
    assert dump["argv"][-7:] == ["-p", "say hi", "-c", "--model", "theirs", "--", "-x"]
    assert locked.address.url in dump["text"]
    assert MODEL in dump["text"]
    assert str(CONTEXT) in dump["text"]
    assert dump["mode"] == "0o700"
    assert "127.0.0.1" in dump["env"]["NO_PROXY"]
    assert not any(key in arg for arg in dump["argv"])  # other users can read those
    if program == "claude":
        env = json.loads(dump["text"])["env"]
        assert env["ANTHROPIC_AUTH_TOKEN"] == key
        assert env["ANTHROPIC_API_KEY"] == ""
        assert "ANTHROPIC_API_KEY" not in dump["env"]
    assert not Path(dump["file"]).exists()
    assert {path for path in home.rglob("*") if path.is_file()} - before == {home / "dump.json"}
    capfd.readouterr()


@pytest.mark.parametrize("program", LAUNCHERS)
def test_launcher_says_how_to_install(
    program: str, home: Path, scripted: Scripted, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(client, "locate", lambda *_: None)
    assert slipstream(program, "--url", scripted.address.url, "-p", "hi") == 1
    assert "npm install" in capsys.readouterr().err


def test_launcher_help_is_ours(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert slipstream("claude", "--help") == 0
    assert "slipstream claude [--url URL]" in capsys.readouterr().out


# ------------------------------------------------------------------ the test of a client


def test_report_when_the_client_is_missing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "locate", lambda *_: None)
    for agent in AGENTS.values():
        report = agent.test(ServerAddress(NOBODY), ModelCard("m"))
        assert report.outcome is Outcome.NOT_INSTALLED
        assert agent.INSTALL in report.reason


def test_report_when_the_server_is_missing(home: Path) -> None:
    fake(home, "pi", "print('1.2.3')")
    report = AGENTS["pi"].test(ServerAddress(NOBODY), ModelCard("m"))
    assert (report.outcome, report.version) == (Outcome.NO_SERVER, "1.2.3")


ANSWERS = """
if "--version" in sys.argv: print("pi 1.2.3"); sys.exit()
note = next(arg for arg in sys.argv if "note.txt" in arg).split("file ")[1].split(". Then")[0]
"""


@pytest.mark.parametrize(
    ("body", "outcome", "reason"),
    [
        ("print(open(note).read())", Outcome.PASSED, "read a file"),
        ("print('I cannot read files')", Outcome.NO_TOOL, "I cannot read files"),
        ("print('no such model', file=sys.stderr); sys.exit(3)", Outcome.FAILED, "status 3: no such model"),
    ],
)
def test_report_of_what_the_client_did(
    body: str, outcome: Outcome, reason: str, home: Path, scripted: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    fake(home, "pi", ANSWERS + body)
    assert slipstream("agents", "pi", "test", "--url", scripted.address.url) == (outcome is not Outcome.PASSED)
    said = capsys.readouterr().out
    assert said.startswith(f"{'PASS' if outcome is Outcome.PASSED else 'FAIL'} pi 1.2.3: ")
    assert reason in said


def test_a_client_that_hangs_is_ended_with_its_children(home: Path, scripted: Scripted) -> None:
    hang = "child = subprocess.Popen(['sleep', '60']); "
    hang += "open(os.path.expanduser('~/pid'), 'w').write(str(child.pid)); time.sleep(60)"
    fake(home, "pi", ANSWERS + hang)
    started = time.monotonic()
    report = AGENTS["pi"].test(scripted.address, scripted.card, 1.5)
    assert report.outcome is Outcome.TIMED_OUT
    assert time.monotonic() - started < 10
    stat = Path(f"/proc/{(home / 'pid').read_text()}/stat")
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and stat.exists() and stat.read_text().split()[2] != "Z":
        time.sleep(0.05)
    assert not stat.exists() or stat.read_text().split()[2] == "Z"


def test_test_leaves_home_and_environment_alone(home: Path, scripted: Scripted) -> None:
    fake(home, "claude", ANSWERS.replace("pi", "claude") + "print(open(note).read())")
    before = sorted(home.rglob("*")), dict(os.environ)
    assert AGENTS["claude-code"].test(scripted.address, scripted.card, 30).passed
    assert (sorted(home.rglob("*")), dict(os.environ)) == before


def test_every_row_of_the_registry_is_whole() -> None:
    for name, agent in AGENTS.items():
        assert name == agent.NAME
        assert agent.TITLE
        assert "install" in agent.INSTALL
