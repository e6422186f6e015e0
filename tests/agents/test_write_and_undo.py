"""Every client's plan in a home of its own: written, written again, undone, and disturbed on the way."""

from __future__ import annotations

import json
import os
import random
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from slipstream.agents import journal, plan, write
from slipstream.agents.config import ConfigRefused, ModelCard, Place, ServerAddress
from slipstream.agents.document import open_document, plain
from slipstream.agents.plan import Plan
from slipstream.agents.registry import AGENTS

SERVER = ServerAddress("http://127.0.0.1:8765/v1/", "sk-local-0123456789abcdef")
MODEL = ModelCard("org/local-model", 131_072)
NOON = datetime(2026, 11, 30, 12, 0, 0)

CLAUDE = """{
    "theme": "dark",
    "env": {"MY_TOKEN": "mine-0123456789", "ANTHROPIC_MODEL": "opus"},
    "permissions": {"allow": ["Bash(ls *)"]}, "big": 1.50e3
}
"""
CODEX = """# my settings
model = 'gpt-9' # the best
approval_policy = "on-request"

[mcp_servers.docs] # c
command = "docs"

# about the terminal
[tui]
theme = "dark"
"""
OPENCODE = """{
  // what I like
  "theme": "system", /* so */
  "enabled_providers": ["anthropic"],
  "provider": {
    "anthropic": {"options": {"timeout": 1000}}, // slow line
  },
}
"""
PI_MODELS = '{"providers": {"mine": {"baseUrl": "http://127.0.0.1:1/v1"}} /* here */}'
PI_SETTINGS = '{\n  "defaultProvider": "anthropic",\n  "theme": "dark"\n}'
OPENCODE_FILE = ".config/opencode/opencode.jsonc"
FILES: dict[str, dict[str, str]] = {
    "claude-code": {".claude/settings.json": CLAUDE},
    "pi": {".pi/agent/models.json": PI_MODELS, ".pi/agent/settings.json": PI_SETTINGS},
    "codex": {".codex/config.toml": CODEX},
    "opencode": {OPENCODE_FILE: OPENCODE},
}
MAIN = {
    "claude-code": ".claude/settings.json",
    "pi": ".pi/agent/models.json",
    "codex": ".codex/config.toml",
    "opencode": OPENCODE_FILE,
}
every_agent = pytest.mark.parametrize("name", AGENTS)


def draw(name: str, place: Place, server: ServerAddress = SERVER, model: ModelCard = MODEL) -> Plan:
    return AGENTS[name].plan(server, model, place)


def fill(name: str, place: Place) -> dict[str, bytes]:
    for path, text in FILES[name].items():
        (place.home / path).parent.mkdir(parents=True, exist_ok=True)
        (place.home / path).write_text(text, "utf-8")
    return contents(place)


def contents(place: Place) -> dict[str, bytes]:
    """Every file of the home but backups and our own journal."""
    files = (path for path in sorted(place.home.rglob("*")) if path.is_file())
    return {
        str(path.relative_to(place.home)): path.read_bytes()
        for path in files
        if path.suffix != ".bak" and place.journals not in path.parents
    }


def value_of(path: Path) -> Any:
    return open_document(plain(path.read_text("utf-8")), "toml" if path.suffix == ".toml" else "jsonc").value


@every_agent
def test_write_then_undo_restores_every_byte(name: str, place: Place) -> None:
    before = fill(name, place)
    applied = write.apply(draw(name, place), lambda: NOON)
    assert contents(place) != before
    assert [path.name for path in applied.backups] == [
        f"{Path(path).name}.slipstream-20261130-120000.bak" for path in FILES[name]
    ]
    for backup, text in zip(applied.backups, FILES[name].values(), strict=True):
        assert backup.read_text("utf-8") == text
    write.apply(plan.undo(name, place))
    assert contents(place) == before
    assert plan.undo(name, place).records == ()


@every_agent
def test_in_an_empty_home_undo_leaves_nothing(name: str, place: Place) -> None:
    write.apply(draw(name, place))
    for path in contents(place):
        assert stat.S_IMODE((place.home / path).stat().st_mode) == 0o600
    write.apply(plan.undo(name, place))
    assert {path.parts[len(place.home.parts)] for path in place.home.rglob("*")} <= {".local", "Library"}


@every_agent
def test_second_write_changes_nothing(name: str, place: Place) -> None:
    fill(name, place)
    write.apply(draw(name, place))
    after = contents(place)
    again = draw(name, place)
    assert again.is_empty
    assert again.diff == ""
    assert write.apply(again) == write.Applied((), ())
    assert contents(place) == after


@every_agent
def test_another_model_and_port_leave_no_trace_of_the_first(name: str, place: Place) -> None:
    before = fill(name, place)
    write.apply(
        draw(name, place, ServerAddress("http://127.0.0.1:9999", "sk-first-0123456789"), ModelCard("first", 9000))
    )
    write.apply(draw(name, place))
    for path, text in contents(place).items():
        assert b"first" not in text, path
        assert b"9999" not in text, path
    write.apply(plan.undo(name, place))
    assert contents(place) == before


@every_agent
def test_undo_keeps_what_the_user_changed_since(name: str, place: Place) -> None:
    before = fill(name, place)
    write.apply(draw(name, place))
    path = place.home / MAIN[name]
    text = path.read_text("utf-8")
    if path.suffix == ".toml":
        path.write_text('added = "theirs" # why\n' + text + "# their table\n[theirs]\nx = 1\n", "utf-8")
    else:
        path.write_text(text.replace("{", '{\n  "added": "theirs",', 1), "utf-8")
    applied = write.apply(plan.undo(name, place))
    assert any(backup.name.startswith(path.name) for backup in applied.backups)
    value = value_of(path)
    assert value.pop("added") == "theirs"
    if path.suffix == ".toml":
        assert value.pop("theirs") == {"x": 1}
        assert "# why\n" in path.read_text("utf-8")
        assert "# their table\n[theirs]" in path.read_text("utf-8")
    path.write_bytes(before[MAIN[name]])
    assert value == value_of(path)
    assert contents(place) == before


def test_undo_leaves_a_key_of_ours_that_the_user_has_set_anew(place: Place) -> None:
    fill("claude-code", place)
    write.apply(draw("claude-code", place))
    path = place.home / MAIN["claude-code"]
    path.write_text(path.read_text("utf-8").replace('"API_TIMEOUT_MS": "3600000"', '"API_TIMEOUT_MS": "5"'), "utf-8")
    back = plan.undo("claude-code", place)
    assert [note.code for note in back.notes] == ["kept"]
    assert "env.API_TIMEOUT_MS" in back.notes[0].text
    write.apply(back)
    env = value_of(path)["env"]
    assert env == {"MY_TOKEN": "mine-0123456789", "ANTHROPIC_MODEL": "opus", "API_TIMEOUT_MS": "5"}


def test_undo_after_user_edits_between_two_writes_keeps_them(place: Place) -> None:
    fill("codex", place)
    write.apply(draw("codex", place, ServerAddress("http://127.0.0.1:9999")))
    path = place.home / MAIN["codex"]
    path.write_text(path.read_text("utf-8") + "\n[theirs]\nx = 1\n", "utf-8")
    write.apply(draw("codex", place))
    write.apply(plan.undo("codex", place))
    assert path.read_text("utf-8").split() == (CODEX + "[theirs]\nx = 1\n").split()


@every_agent
@pytest.mark.parametrize("seed", range(25))
def test_every_other_key_survives_write_and_undo(name: str, seed: int, place: Place) -> None:
    rng = random.Random(seed)
    path = place.home / MAIN[name]
    path.parent.mkdir(parents=True)
    theirs: dict[str, Any] = {f"k{i}": rng.choice([1, True, "x", "ü\\\n", [1, 2]]) for i in range(rng.randrange(5))}
    groups = ("env", "permissions", "providers", "provider", "model_providers", "agents", "features", "mine")
    for group in rng.sample(groups, 4):
        theirs[group] = {f"g{i}": rng.choice([1, "y"]) for i in range(rng.randrange(3))}
    if path.suffix == ".toml":
        flat = [f"{k} = {json.dumps(v)} # {k}" for k, v in theirs.items() if not isinstance(v, dict)]
        tables = [
            "\n".join([f"[{k}] # {k}", *(f"{a} = {json.dumps(b)} # {a}" for a, b in v.items())])
            for k, v in theirs.items()
            if isinstance(v, dict)
        ]
        text = "\n".join([*flat, *tables]) + rng.choice(["", "\n"])
        assert tomllib.loads(text) == theirs
    else:
        text = json.dumps(theirs, indent=rng.choice([None, 2, 4, "\t"]), ensure_ascii=False)
    path.write_text(text, "utf-8", newline="")
    write.apply(draw(name, place))
    value = value_of(path)
    for key, item in theirs.items():
        assert value[key] == item if not isinstance(item, dict) else item.items() <= value[key].items()
    if path.suffix == ".toml":
        assert path.read_text("utf-8").count("#") == text.count("#")
    if seed % 2:
        write.apply(plan.undo(name, place))
        assert path.read_bytes() == text.encode()
        return
    path.write_text(path.read_text("utf-8") + "\n", "utf-8", newline="")  # so that undo goes key by key
    write.apply(plan.undo(name, place))
    assert value_of(path) == theirs
    if path.suffix == ".toml":
        assert path.read_text("utf-8").count("#") == text.count("#")


@every_agent
def test_unreadable_configuration_is_refused_and_left_alone(name: str, place: Place) -> None:
    fill(name, place)
    path = place.home / MAIN[name]
    path.write_text(path.read_text("utf-8") + "= {", "utf-8")
    before = contents(place)
    with pytest.raises(ConfigRefused, match=r"is not valid (JSON|TOML): .*line \d+.*nothing was changed"):
        draw(name, place)
    path.write_bytes(b"\xff\xfe{}")
    with pytest.raises(ConfigRefused, match="not UTF-8"):
        draw(name, place)
    path.unlink()
    path.mkdir()
    with pytest.raises(ConfigRefused, match="cannot be read"):
        draw(name, place)
    path.rmdir()
    assert contents(place) == {key: text for key, text in before.items() if key != MAIN[name]}


def test_comments_are_refused_where_the_client_ignores_such_a_file(place: Place) -> None:
    path = place.home / MAIN["claude-code"]
    path.parent.mkdir()
    path.write_text('{"theme": "dark" // mine\n}', "utf-8")
    with pytest.raises(ConfigRefused, match=r"comment.*line 1"):
        draw("claude-code", place)


@every_agent
@pytest.mark.parametrize("of", ["file", "folder"])
def test_read_only_is_refused(name: str, of: str, place: Place) -> None:
    before = fill(name, place)
    change = draw(name, place)
    path = place.home / MAIN[name]
    locked = path if of == "file" else path.parent
    locked.chmod(0o444 if of == "file" else 0o555)
    with pytest.raises(ConfigRefused, match=r"read-only|cannot be written"):
        write.apply(change)
    locked.chmod(0o644 if of == "file" else 0o755)
    assert contents(place) == before
    assert not list(place.home.rglob("*.bak")) + list(place.home.rglob("*.tmp"))
    assert journal.load(name, place) == ()


@every_agent
def test_change_between_show_and_write_is_refused(name: str, place: Place) -> None:
    fill(name, place)
    change = draw(name, place)
    path = place.home / MAIN[name]
    path.write_text(path.read_text("utf-8") + "\n", "utf-8")
    before = contents(place)
    with pytest.raises(ConfigRefused, match="changed by another program"):
        write.apply(change)
    assert contents(place) == before
    write.apply(draw(name, place))


@every_agent
def test_a_plan_that_another_write_has_overtaken_is_refused(name: str, place: Place) -> None:
    change = draw(name, place)
    write.apply(draw(name, place))
    with pytest.raises(ConfigRefused, match="just now"):
        write.apply(change)


def test_linked_configuration_stays_a_link(place: Place) -> None:
    dotfiles = place.home / "dotfiles"
    dotfiles.mkdir()
    (dotfiles / "settings.json").write_text(CLAUDE, "utf-8")
    (dotfiles / "settings.json").chmod(0o640)
    link = place.home / ".claude" / "settings.json"
    link.parent.mkdir()
    link.symlink_to(Path("..") / "dotfiles" / "settings.json")
    applied = write.apply(draw("claude-code", place))
    assert link.is_symlink()
    assert value_of(dotfiles / "settings.json")["env"]["ANTHROPIC_MODEL"] == MODEL.name
    assert stat.S_IMODE((dotfiles / "settings.json").stat().st_mode) == 0o640
    assert [path.parent for path in applied.backups] == [dotfiles]
    assert stat.S_IMODE(applied.backups[0].stat().st_mode) == 0o640
    write.apply(plan.undo("claude-code", place))
    assert link.is_symlink()
    assert (dotfiles / "settings.json").read_text("utf-8") == CLAUDE


def test_link_to_a_file_that_is_not_there_yet(place: Place) -> None:
    link = place.home / ".claude" / "settings.json"
    link.parent.mkdir()
    link.symlink_to(place.home / "dotfiles" / "claude.json")
    write.apply(draw("claude-code", place))
    assert link.is_symlink()
    assert (place.home / "dotfiles" / "claude.json").exists()
    write.apply(plan.undo("claude-code", place))
    assert not (place.home / "dotfiles" / "claude.json").exists()


def test_links_in_a_circle_are_refused(place: Place) -> None:
    (place.home / ".claude").mkdir()
    (place.home / ".claude" / "settings.json").symlink_to("settings.json")
    with pytest.raises(ConfigRefused, match="cannot be read"):
        draw("claude-code", place)


# Writes in a child that is killed after as many system calls as each line on stdin says; answers with its status.
CRASH = """
import os, pathlib, sys
from slipstream.agents import write
from slipstream.agents.config import ModelCard, Place, ServerAddress
from slipstream.agents.registry import AGENTS
name, home = sys.argv[1], pathlib.Path(sys.argv[2])

def child(steps):
    count = 0
    def counted(real):
        def call(*args, **kwargs):
            nonlocal count
            count += 1
            if count > steps:
                os._exit(9)
            return real(*args, **kwargs)
        return call
    for owner, attribute in ((os, "fsync"), (os, "fchmod"), (pathlib.Path, "replace"), (pathlib.Path, "mkdir")):
        setattr(owner, attribute, counted(getattr(owner, attribute)))
    write.apply(AGENTS[name].plan(ServerAddress(), ModelCard("m", 131072), Place.at(home)))
    os._exit(0)

for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        child(int(line))
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


@every_agent
def test_killed_at_any_step_each_file_is_whole_and_undo_works(name: str, place: Place) -> None:
    before = fill(name, place)
    write.apply(draw(name, place, ServerAddress(), ModelCard("m", 131_072)))
    after = contents(place)
    write.apply(plan.undo(name, place))
    command = [sys.executable, "-c", CRASH, name, str(place.home)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        status, steps = 9, 0
        while status == 9:
            print(steps, file=process.stdin, flush=True)
            status = int(process.stdout.readline())
            now = {path: text for path, text in contents(place).items() if not path.endswith(".tmp")}
            assert all(text in (before.get(path), after.get(path)) for path, text in now.items()), steps
            backups = {backup.read_bytes() for backup in place.home.rglob("*.bak")}
            assert all(text in backups for path, text in before.items() if now[path] != text)
            write.apply(plan.undo(name, place))
            assert {path: text for path, text in contents(place).items() if not path.endswith(".tmp")} == before
            steps += 1
        assert status == 0
        assert steps > 8
        process.stdin.close()


@every_agent
def test_a_write_after_one_that_was_killed_can_be_undone_to_the_byte(name: str, place: Place) -> None:
    before = fill(name, place)
    change = draw(name, place)
    place.journals.mkdir(parents=True)
    journal.journal_path(name, place).write_text(journal.dump(name, change.records), "utf-8")  # and no further
    write.apply(draw(name, place))
    write.apply(plan.undo(name, place))
    assert contents(place) == before


@every_agent
def test_failure_half_way_takes_everything_back(name: str, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    before = fill(name, place)
    write.apply(draw(name, place, ServerAddress("http://127.0.0.1:9999")))
    first, records = contents(place), journal.load(name, place)
    change = draw(name, place)
    real: Callable[[Path, Path], Path] = Path.replace
    for fails_at in range(1, 2 + len(change.changes)):
        calls = 0

        def replace(self: Path, target: Path, at: int = fails_at) -> Path:
            nonlocal calls
            calls += 1
            if calls == at:
                raise OSError(28, "No space left on device", str(target))
            return real(self, target)

        backups = sorted(place.home.rglob("*.bak"))
        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", replace)
            with pytest.raises(ConfigRefused, match=r"No space left.*nothing was changed"):
                write.apply(change)
        assert contents(place) == first
        assert journal.load(name, place) == records
        assert sorted(place.home.rglob("*.bak")) == backups
    write.apply(change)
    write.apply(plan.undo(name, place))
    assert contents(place) == before


@every_agent
def test_diff_is_exact_but_shows_no_key(name: str, place: Place) -> None:
    fill(name, place)
    change = draw(name, place)
    assert SERVER.key
    assert SERVER.key not in change.diff
    assert SERVER.key[:4] in change.diff
    assert "mine-0123456789" not in change.diff
    assert SERVER.key not in repr(SERVER)
    write.apply(change)
    assert any(SERVER.key.encode() in text for text in contents(place).values())
    for one in change.changes:
        assert one.after is not None
        added = [line[1:] for line in change.diff.split("\n") if line.startswith("+") and "…" not in line]
        assert {line for line in one.after.split("\n") if line in added} <= set(added)
        assert f"+++ {one.path}\n" in change.diff


def test_journal_is_for_the_owner_alone(place: Place) -> None:
    write.apply(draw("pi", place))
    assert stat.S_IMODE(place.journals.stat().st_mode) == 0o700
    assert stat.S_IMODE(journal.journal_path("pi", place).stat().st_mode) == 0o600


def test_damaged_journal_is_reported_not_guessed_at(place: Place) -> None:
    write.apply(draw("pi", place))
    journal.journal_path("pi", place).write_text("{", "utf-8")
    with pytest.raises(ConfigRefused, match="delete"):
        plan.undo("pi", place)
    with pytest.raises(ConfigRefused, match="delete"):
        draw("pi", place)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_owner_is_kept(place: Place) -> None:
    fill("codex", place)
    path = place.home / MAIN["codex"]
    os.chown(path, 12345, 12346)
    write.apply(draw("codex", place))
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 12346)
