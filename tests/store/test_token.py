"""The hub's token: kept where the system keeps such things, and never in a message or on a command line."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants, get_token

from slipstream.errors import InvalidRequest
from slipstream.store import token

TOKEN = "hf_abcDEF123456"


def test_elsewhere_it_is_kept_where_the_hubs_own_tools_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    file = tmp_path / "hf" / "token"
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(file))
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    token.save(f" {TOKEN}\n")
    assert get_token() == TOKEN
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert token.saved() is None  # the hub's client finds it by itself


@pytest.mark.parametrize("text", ["", "hunter2", "hf_a b", "hf_ü", "hf_x\nadd-generic-password"])
def test_what_is_no_token_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        token.save(text)
    assert not text or text not in refused.value.message


def test_on_a_mac_the_keychain_gets_it_by_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[list[str], str]] = []

    def run(command: list[str], **given: Any) -> subprocess.CompletedProcess[str]:  # Any: keywords of subprocess.run
        asked.append((command, str(given.get("input", ""))))
        return subprocess.CompletedProcess(command, 0, stdout=f"{TOKEN}\n", stderr="")

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(subprocess, "run", run)
    token.save(TOKEN)
    assert token.saved() == TOKEN
    (command, written), (read, _) = asked
    assert TOKEN not in " ".join(command)
    assert written.endswith(f"-w {TOKEN}\n")
    assert read[1] == "find-generic-password"


def test_a_keychain_that_refuses_is_said_without_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, stdout="", stderr=f"error near {TOKEN}")

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(InvalidRequest) as refused:
        token.save(TOKEN)
    assert TOKEN not in refused.value.message
    assert token.saved() is None
