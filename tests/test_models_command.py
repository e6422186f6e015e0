"""`slipstream models` as a person types it, against a hub on this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from slipstream.cli import main
from slipstream.store import converted
from stub_hub import StubHub
from tiny_gguf import tiny_gguf

REPO = "maker/Tiny-4bit"


@pytest.fixture
def stub(tmp_path: Path) -> Iterator[StubHub]:
    """A hub with one model that really runs, in a repository with a pickle beside it."""
    folder = converted.converted(tiny_gguf().write(tmp_path / "tiny.gguf"), tmp_path / "made")
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "slipstream.json"}
    with StubHub() as hub:
        hub.add(REPO, files | {"pytorch_model.bin": b"x" * 2000})
        yield hub


@pytest.fixture
def environment(stub: StubHub, tmp_path: Path) -> dict[str, str]:
    home = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    return {**os.environ, **home, "HF_ENDPOINT": stub.endpoint, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "0"}


def start(environment: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "slipstream", *arguments],
        env=environment,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def run(environment: dict[str, str], *arguments: str, status: int = 0) -> tuple[str, str]:
    process = start(environment, *arguments)
    out, err = process.communicate(timeout=300)
    assert process.returncode == status, err
    return out, err


def test_a_search_without_a_hub_shows_the_catalogue_and_one_sentence(environment: dict[str, str]) -> None:
    out, err = run(environment | {"HF_ENDPOINT": "http://127.0.0.1:9"}, "models", "search", "qwen3-8b")
    assert out.startswith("Qwen3-8B  (Qwen/Qwen3-8B)\n")
    assert err == ("slipstream: there is no connection to the hub, 127.0.0.1:9; check the network and try again\n")


def test_a_model_from_search_to_removal(environment: dict[str, str], stub: StubHub, tmp_path: Path) -> None:
    out, _ = run(environment, "models", "search", "tiny")
    assert REPO in out
    out, _ = run(environment, "models", "info", REPO)
    assert "on the hub, not here" in out
    assert "pytorch_model.bin" in out
    out, _ = run(environment, "models", "fit", REPO, "--context", "128", "--json")
    before = json.loads(out)
    assert (before["verdict"], before["context"]) == ("fits", 128)

    # Ctrl-C in the middle, then on to the end.
    stub.bytes_per_s = sum(map(len, stub.repos[REPO].files.values())) / 20
    process = start(environment, "models", "pull", REPO)
    while sum(stub.sent.values()) < 3000 and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, "are kept; go on with: slipstream models pull" in err) == (130, True), err
    out, _ = run(environment, "models", "list", "--json")
    (mine,) = [model for model in json.loads(out) if model["name"] == REPO]
    assert mine["state"] == "partial"
    assert 0 < mine["done"] < mine["total"]
    _, err = run(environment, "generate", "--model", REPO, "--prompt", "a", status=2)
    assert "only partly downloaded" in err
    stub.bytes_per_s = None
    out, _ = run(environment, "models", "pull", REPO, "--json")
    end = json.loads(out.splitlines()[-1])
    assert (end["state"], end["fetched"]) == ("finished", mine["total"] - mine["done"])  # nothing twice
    assert "pytorch_model.bin" not in stub.sent

    out, _ = run(environment, "models", "list")
    assert any(line.split()[:2] == [REPO, "model"] for line in out.splitlines())
    out, _ = run(environment, "models", "fit", REPO, "--context", "128", "--json")
    assert json.loads(out)["kv"] == before["kv"]
    out, _ = run(
        environment, "generate", "--model", REPO, "--prompt", "ab", "--raw-prompt", "--max-tokens", "4", "--json"
    )
    assert json.loads(out)

    out, _ = run(environment, "models", "rm", REPO, status=1)
    assert "nothing was removed" in out
    out, _ = run(environment, "models", "rm", REPO, "--yes")
    assert "is deleted" in out
    assert not list((tmp_path / "hf" / "hub").glob("models--*"))


def test_refusals_are_one_sentence(environment: dict[str, str], stub: StubHub) -> None:
    stub.repos[REPO].gated = True
    for arguments, words in (
        (("models", "pull", REPO), "accept them at"),
        (("models", "pull", "maker/Absent"), "check the name"),
        (("models", "pull", "Unheard-of"), "the catalogue has no Unheard-of"),
        (("models", "rm", "maker/Absent"), "is not on this machine"),
        (("models", "fit", REPO, "--context", "0"), "--context"),
    ):
        _, err = run(environment, *arguments, status=2)
        assert words in err
        assert len([line for line in err.splitlines() if line.startswith("slipstream: ")]) == 1
        assert "Traceback" not in err


def test_fit_of_the_built_in_pair_has_numbers_and_converts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert main(["models", "fit", "--json"]) == 0
    pair = json.loads(capsys.readouterr().out)
    assert main(["models", "fit", pair["name"], "--drafter", "none", "--json"]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert pair["target"] == alone["target"] > 130e6 * 4  # in float32 on a CPU
    assert pair["drafter"] > alone["drafter"] == 0
    assert pair["total"] > alone["total"]
    assert not (tmp_path / "cache").exists()
