"""What models take on the disk, what could go, and a limit that is kept before the first byte comes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from slipstream.errors import DiskFull
from slipstream.store import preferences, room
from slipstream.store.download import Download
from slipstream.store.download_state import Failed, Finished
from slipstream.store.hub_cache import Manifest, Repository
from slipstream.store.paths import cache_dir, data_dir
from stub_hub import StubHub

FILES = {"config.json": b'{"model_type": "llama"}', "tokenizer.json": b"{}", "model.safetensors": b"x" * 5000}
BYTES = sum(map(len, FILES.values()))


def set_limit(gigabytes: int) -> None:
    data_dir().mkdir(parents=True, exist_ok=True)
    (data_dir() / preferences.FILE).write_text(json.dumps({"models/limit_gb": gigabytes}), "utf-8")


def pull(repo: str) -> Finished | Failed:
    state = Download(repo, lambda _: None).run()
    assert isinstance(state, Finished | Failed)
    return state


def age(repo: str, seconds: int) -> None:
    for blob in (Repository.of(repo).folder).rglob("*"):
        os.utime(blob, (seconds, seconds), follow_symlinks=False)


@pytest.fixture
def conversion(home: Path) -> Path:
    folder = cache_dir() / "gguf" / "tiny-Q8-0123456789ab"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"y" * 700)
    (folder.parent / ".lock").touch()
    os.utime(folder / "model.safetensors", (2_000, 2_000))
    return folder


def test_both_caches_are_counted_and_the_oldest_stands_first(stub: StubHub, conversion: Path) -> None:
    for repo, since_s in (("maker/New", 3_000), ("maker/Old", 1_000)):
        stub.add(repo, FILES)
        assert isinstance(pull(repo), Finished)
        age(repo, since_s)
    taken = room.taken()
    assert (taken.shared, taken.converted, taken.bytes) == (2 * BYTES, 700, 2 * BYTES + 700)
    found = room.could_go()
    assert [one.name for one in found] == ["maker/Old", "tiny-Q8", "maker/New"]
    assert all(path.exists() for one in found for path, _ in one.files), "nothing went by being listed"
    assert [one.name for one in room.enough(found, 1)] == ["maker/Old"]
    assert [one.name for one in room.enough(found, found[0].bytes + 1)] == ["maker/Old", "tiny-Q8"]
    assert room.enough(found, 0) == []
    for one in found[:2]:
        one.remove()
    assert [one.name for one in room.could_go()] == ["maker/New"]
    assert not conversion.exists()
    assert room.taken().bytes == BYTES


def test_a_download_that_would_pass_the_limit_is_refused_before_the_first_byte(
    stub: StubHub, conversion: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub.add("maker/Tiny", FILES)
    set_limit(1)
    monkeypatch.setattr(room, "taken", lambda: room.Taken(10**9 - BYTES + 1, 0))
    state = pull("maker/Tiny")
    assert isinstance(state, Failed)
    assert isinstance(state.error, DiskFull)
    assert "limit" in state.error.message
    assert state.error.facts["free"] == BYTES - 1
    assert not stub.sent
    monkeypatch.setattr(room, "taken", lambda: room.Taken(10**9 - BYTES, 0))
    assert isinstance(pull("maker/Tiny"), Finished)
    monkeypatch.setattr(room, "taken", lambda: room.Taken(10**12, 0))
    stub.add("maker/Other", FILES)
    assert isinstance(pull("maker/Other"), Failed)
    assert isinstance(pull("maker/Tiny"), Finished), "all of it is here, so nothing is added"
    set_limit(0)
    assert isinstance(pull("maker/Other"), Finished)


def test_two_downloads_do_not_count_on_the_same_room(
    stub: StubHub, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second asks when the first has room and has fetched nothing."""
    stub.add("maker/Tiny", FILES)
    stub.add("maker/Other", FILES)
    set_limit(1)
    monkeypatch.setattr(room, "taken", lambda: room.Taken(10**9 - 2 * BYTES + 1, 0))
    others: list[object] = []
    note = Repository.note

    def meanwhile(repository: Repository, manifest: Manifest) -> None:
        if manifest.repo == "maker/Tiny":
            others.append(pull("maker/Other"))
        note(repository, manifest)

    monkeypatch.setattr(Repository, "note", meanwhile)
    assert isinstance(pull("maker/Tiny"), Finished)
    assert isinstance(others[0], Failed)
    assert isinstance(others[0].error, DiskFull)
    assert others[0].error.facts["free"] == BYTES - 1
    assert isinstance(pull("maker/Other"), Finished), "nothing is promised any longer"


def test_a_file_that_goes_while_it_is_counted_counts_nothing(
    stub: StubHub, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another download finishes: its files get their final names."""
    stub.add("maker/Tiny", FILES)
    assert isinstance(pull("maker/Tiny"), Finished)
    walk = os.walk

    def late(top: Path) -> Iterator[tuple[str, list[str], list[str]]]:
        for place, folders, names in walk(top):
            yield place, folders, [*names, "gone.incomplete"]

    monkeypatch.setattr(os, "walk", late)
    assert room.taken().shared == BYTES
