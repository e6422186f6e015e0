"""`slipstream doctor` on made-up homes: what it finds, what it advises, and what a report leaves out."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slipstream.measure import doctor
from slipstream.measure.doctor import Finding, State, examine
from tiny_gguf import tiny_gguf

COMMIT = "c" * 40


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of a person with a name that shows."""
    home = tmp_path / "amelie.winterberg"
    home.mkdir()
    for name, value in environment(home).items():
        monkeypatch.setenv(name, value)
    # huggingface_hub reads its variables when it is imported.
    monkeypatch.setattr("slipstream.store.hub_cache.root", lambda: home / "hub")
    return home


def environment(home: Path) -> dict[str, str]:
    return {
        "HOME": str(home),
        "USER": "amelie",
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "HF_HOME": str(home),
        "HF_HUB_CACHE": str(home / "hub"),
    }


@pytest.fixture
def port(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Somebody listens where the server would, and says nothing."""
    monkeypatch.setattr(doctor, "PORT_TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        chosen = server.getsockname()[1]
        settings = home / "data" / "slipstream" / "settings.json"
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text(json.dumps({"server/port": chosen}))
        yield chosen


def found(name: str) -> list[Finding]:
    return list(doctor.CHECKS[name]())


def worst(name: str) -> Finding:
    order = list(State)
    return max(found(name), key=lambda finding: order.index(finding.state))


def test_mlx_computes_here() -> None:
    assert found("mlx")[0].state is State.GOOD


@pytest.mark.usefixtures("home")
def test_a_new_home_has_no_problem() -> None:
    states = {finding.check: finding.state for finding in examine()}
    assert State.PROBLEM not in states.values()
    assert {"system", "memory", "mlx", "disk", "port", "models", "hub_cache", "caches"} <= set(states)


def test_links_to_nothing_in_the_hub_cache_are_found(home: Path) -> None:
    snapshot = home / "hub" / "models--someone--secret-model" / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (snapshot / "model.safetensors").symlink_to("../../blobs/gone")
    finding = worst("hub_cache")
    assert finding.state is State.WARNING
    assert finding.private == ("someone/secret-model",)
    assert "slipstream models pull" in finding.remedy


def test_an_abandoned_download_is_found(home: Path) -> None:
    blobs = home / "hub" / "models--someone--half" / "blobs"
    blobs.mkdir(parents=True)
    (blobs / "abc.incomplete").write_bytes(bytes(3_000_000))
    said = [finding.said for finding in found("hub_cache") if finding.private == ("someone/half",)]
    assert said == ["3.0 MB of abandoned downloads lie in the Hugging Face cache"]


def test_a_conversion_of_a_file_that_is_gone_is_stale(home: Path) -> None:
    from slipstream.store import local, own_folders

    models = home / "my models"
    models.mkdir()
    file = tiny_gguf().write(models / "tiny.gguf")
    own_folders.add(models)
    made = local.resolve("tiny.gguf")
    assert found("caches")[0].state is State.GOOD
    file.unlink()
    finding = worst("caches")
    assert finding.state is State.NOTE
    assert finding.private == (str(made),)


def test_a_damaged_database_is_a_problem(home: Path) -> None:
    folder = home / "data" / "slipstream"
    folder.mkdir(parents=True)
    with sqlite3.connect(folder / "speeds.db") as database:
        database.execute("create table speeds (x)")
    database.close()
    (folder / "chats.db").write_bytes(b"not a database" * 100)
    states = {finding.said.split()[0]: finding.state for finding in found("databases")}
    assert states == {"chats.db": State.PROBLEM, "speeds.db": State.GOOD}


def test_a_port_that_another_program_has_comes_with_another_port(port: int) -> None:
    finding = worst("port")
    assert finding.state is State.WARNING
    assert finding.said == f"another program uses port {port}"
    assert f"--port {port + 1}" in finding.remedy


def test_a_full_disk_is_a_problem(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 5_000_000}))
    finding = worst("disk")
    assert finding.state is State.PROBLEM
    assert finding.said.startswith("5.0 MB free")
    assert finding.remedy


def test_a_check_that_breaks_is_a_finding_and_hides_no_other() -> None:
    def breaks() -> list[Finding]:
        raise RuntimeError("secret")

    findings = examine({"own": breaks, "last": lambda: [Finding("last", State.GOOD, "there")]})
    own = next(finding for finding in findings if finding.check == "own")
    assert own.state is State.WARNING
    assert "RuntimeError" in own.said
    assert "secret" not in own.said
    assert findings[-1].said == "there"


def test_every_finding_that_is_not_good_has_a_remedy(home: Path) -> None:
    test_links_to_nothing_in_the_hub_cache_are_found(home)
    test_an_abandoned_download_is_found(home)
    for finding in examine():
        assert finding.state is State.GOOD or finding.remedy, finding


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "slipstream", "doctor", *arguments],
        env=os.environ | environment(home),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_the_command_prints_json_and_writes_a_report_without_names(home: Path) -> None:
    test_links_to_nothing_in_the_hub_cache_are_found(home)
    journals = home / "data" / "slipstream" / "agents"
    journals.mkdir(parents=True)
    file = home / "report.json"
    done = run(home, "--json", "--report", str(file))
    assert done.returncode == 0, done.stderr
    told: list[dict[str, Any]] = json.loads(done.stdout)
    assert any("someone/secret-model" in finding["private"] for finding in told)
    report = file.read_text()
    assert json.loads(report)["libraries"]["mlx"]
    for name in ("amelie", "winterberg", "secret-model", "someone", str(home), socket.gethostname()):
        assert name not in report


def test_a_report_that_cannot_be_written_is_one_sentence(home: Path) -> None:
    done = run(home, "--report", str(home / "no" / "folder" / "report.json"))
    assert done.returncode == 2
    assert "give a file in a folder that exists" in done.stderr
    assert "Traceback" not in done.stderr
