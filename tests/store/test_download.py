"""Downloads from a hub on this machine, through the real client."""

from __future__ import annotations

import hashlib
import logging
import random
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants, scan_cache_dir, snapshot_download
from huggingface_hub.utils import close_session

from slipstream.errors import (
    DamagedDownload,
    DiskFull,
    DownloadFailed,
    FormatRefused,
    LicenceNeeded,
    NotOnHub,
    RateLimited,
    TokenNeeded,
    Unreachable,
)
from slipstream.store import hub
from slipstream.store.download import Download
from slipstream.store.download_state import (
    Failed,
    Fetching,
    Finished,
    Patience,
    Paused,
    Retrying,
    State,
)
from slipstream.store.downloads import Downloads
from slipstream.store.hub_cache import Repository
from stub_hub import Fault, StubHub

HASTE = Patience(stall_s=0.5, attempts=4, first_wait_s=0.02, longest_pause_s=30.0)
REPO = "maker/Tiny-4bit"


def some_bytes(count: int, seed: int) -> bytes:
    return random.Random(seed).randbytes(count)


def files(size: int = 300_000, shards: int = 4) -> dict[str, bytes]:
    return {
        "config.json": b'{"model_type": "llama", "architectures": ["LlamaForCausalLM"]}',
        "tokenizer.json": b'{"version": "1.0"}',
        "README.md": b"# Tiny",
        **{f"model-{n + 1:05}-of-{shards:05}.safetensors": some_bytes(size, n) for n in range(shards)},
    }


def pull(repo: str = REPO, **more: Any) -> tuple[Finished | Paused | Failed, list[State]]:
    states: list[State] = []
    return Download(repo, states.append, patience=HASTE, **more).run(), states


def error_of(repo: str = REPO, **more: Any) -> DownloadFailed:
    state, _ = pull(repo, **more)
    assert isinstance(state, Failed)
    return state.error


def folder_of(state: State) -> Path:
    assert isinstance(state, Finished), state
    return state.folder


def assert_same(folder: Path, wanted: Mapping[str, bytes]) -> None:
    assert {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()} == wanted


def test_a_model_comes_whole_into_the_cache_that_other_tools_read(stub: StubHub, home: Path) -> None:
    stub.add(REPO, files())
    state, states = pull()
    assert_same(folder_of(state), files())
    assert snapshot_download(REPO, local_files_only=True) == str(folder_of(state))
    cache = scan_cache_dir(home)
    assert not cache.warnings
    assert not cache.incomplete_files
    assert [repo.repo_id for repo in cache.repos] == [REPO]
    assert any(isinstance(state, Fetching) for state in states)
    assert isinstance(state, Finished)
    assert state.fetched == sum(map(len, files().values()))
    assert Repository.of(REPO).unfinished() is None


def test_a_second_pull_fetches_nothing_and_a_new_commit_only_what_changed(stub: StubHub, home: Path) -> None:
    stub.add(REPO, files())
    old = folder_of(pull()[0])
    state, _ = pull()
    assert isinstance(state, Finished)
    assert state.fetched == 0
    stub.add(REPO, files() | {"README.md": b"# Tiny, again"})
    state, _ = pull()
    assert isinstance(state, Finished)
    assert state.fetched == len(b"# Tiny, again")
    assert state.folder != old
    assert snapshot_download(REPO, local_files_only=True) == str(state.folder)
    assert_same(old, files())


def test_files_of_the_same_content_wait_for_each_other_and_for_no_other_program(stub: StubHub, home: Path) -> None:
    wanted = files(shards=1) | {"vocab.json": b"# Tiny", "b.safetensors": some_bytes(300_000, 0)}
    stub.add(REPO, wanted)
    for name in ("model-00001-of-00001.safetensors", "b.safetensors"):
        stub.fault(name, *[Fault(stall_at=100_000)] * 3)
    state, states = pull()
    assert_same(folder_of(state), wanted)
    assert sum(stub.sent[name] for name in wanted if name.endswith(".safetensors")) == 300_000, "fetched once"
    assert not [each for each in states if isinstance(each, Retrying) and "another program" in each.reason]


def test_p18_a_bad_shard_costs_one_shard(stub: StubHub, home: Path) -> None:
    """P18: file 3 arrives with one wrong byte, then right; file 4 stops at 60 %."""
    stub.add(REPO, files())
    third, fourth = "model-00003-of-00004.safetensors", "model-00004-of-00004.safetensors"
    stub.fault(third, Fault(flip_at=1000))
    stub.fault(fourth, Fault(stall_at=180_000))
    state, states = pull()
    assert_same(folder_of(state), files())
    sizes = {name: len(data) for name, data in files().items()}
    assert stub.sent == sizes | {third: 600_000}
    assert ("model-00004-of-00004.safetensors", "bytes=180000-299999") in stub.ranges
    before: dict[str, int] = {}
    for each in states:
        if isinstance(each, Fetching | Retrying) and each.progress is not None:
            for file in each.progress.files:
                assert file.done >= before.get(file.name, 0) or file.name == third
                before[file.name] = file.done


def test_p18_a_hub_that_keeps_failing_ends_as_failed_with_the_reason(stub: StubHub, home: Path) -> None:
    stub.add(REPO, files())
    stub.fault("model-00002-of-00004.safetensors", *(Fault(cut_at=100_000) for _ in range(9)))
    error = error_of()
    assert isinstance(error, Unreachable)
    assert "connection broke" in error.message
    assert Repository.of(REPO).current() is None
    stub.faults.clear()
    state, _ = pull()
    assert_same(folder_of(state), files())
    assert stub.sent["model-00002-of-00004.safetensors"] == 300_000


def test_a_file_that_is_damaged_twice_fails(stub: StubHub, home: Path) -> None:
    stub.add(REPO, files())
    stub.fault("model-00001-of-00004.safetensors", Fault(flip_at=5), Fault(flip_at=5))
    assert isinstance(error_of(), DamagedDownload)


def test_a_hub_that_ignores_ranges_costs_the_file_again_and_not_its_truth(stub: StubHub, home: Path) -> None:
    stub.add(REPO, files())
    stub.fault("model-00001-of-00004.safetensors", Fault(cut_at=200_000), Fault(whole=True))
    assert_same(folder_of(pull()[0]), files())
    assert stub.sent["model-00001-of-00004.safetensors"] == 500_000


@pytest.mark.parametrize("change", [b"", b"too long" * 100_000, b"wrong"])
def test_whatever_was_left_behind_the_bytes_come_right(stub: StubHub, home: Path, change: bytes) -> None:
    stub.add(REPO, files())
    remote = hub.look(REPO)
    file = next(file for file in remote.files if file.size == 300_000)
    repository = Repository.of(REPO)
    repository.partial(file).parent.mkdir(parents=True)
    repository.partial(file).write_bytes(change)
    assert_same(folder_of(pull()[0]), files())


def test_p19_pausing_works_during_a_stall_and_it_goes_on_in_another_run(stub: StubHub, home: Path) -> None:
    """P19, the first half."""
    stub.add(REPO, files())
    stub.fault("model-00001-of-00004.safetensors", Fault(stall_at=100_000))
    states: list[State] = []

    def notify(state: State) -> None:
        states.append(state)
        if isinstance(state, Fetching) and state.progress.done >= 1_000_000:
            download.pause()

    download = Download(REPO, notify, patience=Patience(stall_s=60.0))
    state = download.run()
    assert isinstance(state, Paused)
    assert state.progress is not None
    assert 1_000_000 <= state.progress.done < state.progress.total
    assert Repository.of(REPO).current() is None
    assert Repository.of(REPO).unfinished() is not None
    state, _ = pull()
    assert_same(folder_of(state), files())
    assert stub.sent["model-00001-of-00004.safetensors"] == 300_000


def test_it_goes_on_with_the_commit_it_began_with(stub: StubHub, home: Path) -> None:
    stub.add(REPO, files())
    stub.fault("model-00001-of-00004.safetensors", *(Fault(cut_at=1000) for _ in range(9)))
    assert isinstance(error_of(), Unreachable)
    begun = Repository.of(REPO).unfinished()
    assert begun is not None
    stub.faults.clear()
    stub.api_faults.append(Fault(status=500))  # it is not asked again
    state, _ = pull()
    assert folder_of(state).name == begun.commit
    assert stub.api_faults


def test_p20_each_kind_of_no_has_its_sentence(stub: StubHub, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """P20, in what the program says; a pause that the hub asks for is kept, a full disk is found before the start."""
    stub.add(REPO, files())
    stub.add("maker/Gated", files(), gated=True)
    sentences: list[str] = []

    def no(kind: type[DownloadFailed], repo: str = REPO, **more: Any) -> DownloadFailed:
        error = error_of(repo, **more)
        assert type(error) is kind
        sentences.append(error.message)
        return error

    no(TokenNeeded, "maker/Gated")
    no(TokenNeeded, "maker/Gated", token="hf_wrong")
    assert no(LicenceNeeded, "maker/Gated", token="hf_stranger").facts["url"] == f"{stub.endpoint}/maker/Gated"
    no(TokenNeeded, "maker/Absent")
    no(NotOnHub, "maker/Absent", token="hf_good")
    no(NotOnHub, revision="v9")
    no(NotOnHub, "no name/at all/here")
    stub.api_faults.extend([Fault(status=429, headers={"Retry-After": "2000"})])
    no(RateLimited)
    stub.api_faults.extend([Fault(status=503)] * 9)
    no(Unreachable)
    stub.api_faults.clear()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 10**6))  # pyright: ignore
    assert no(DiskFull).facts["needed"] == int(sum(map(len, files().values())) * 1.1)
    assert not stub.sent
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    no(Unreachable)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    close_session()
    no(Unreachable)
    _, states = pull()
    assert not [state for state in states if isinstance(state, Retrying)], "waiting switches no download on"
    assert len(set(sentences)) == len(sentences)
    assert all("\n" not in sentence and ("; " in sentence or ": " in sentence) for sentence in sentences)


def test_a_pause_the_hub_asks_for_is_kept_and_shown(stub: StubHub, home: Path) -> None:
    stub.add(REPO, files())
    stub.api_faults.append(Fault(status=429, headers={"Retry-After": "1"}))
    stub.fault("model-00003-of-00004.safetensors", Fault(status=429, headers={"Retry-After": "1"}))
    state, states = pull()
    assert_same(folder_of(state), files())
    assert [state.wait_s for state in states if isinstance(state, Retrying) and state.progress is None] == [1.0]


def test_gated_models_come_with_a_token_that_goes_nowhere_else(
    stub: StubHub, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stub.add(REPO, files(), gated=True)
    with caplog.at_level(logging.DEBUG):
        state, _ = pull(token="hf_good")
        error = error_of("maker/Absent", token="hf_good")
    assert_same(folder_of(state), files())
    to_storage = [token for path, token in stub.tokens if path.startswith("/storage/")]
    assert len(to_storage) == 4
    assert set(to_storage) == {None}
    assert "hf_good" not in caplog.text
    assert "hf_good" not in repr(error.facts) + error.message + str(error.__cause__)
    everything = [path.read_bytes() for path in home.rglob("*") if path.is_file()]
    assert not any(b"hf_good" in data for data in everything)


def test_only_what_is_needed_is_taken_and_the_rest_is_explained(stub: StubHub, home: Path) -> None:
    more = {
        "pytorch_model.bin": b"x" * 2000,
        "model-Q4_K_M.gguf": b"GGUF" * 500,
        "modeling_tiny.py": b"print('hello')",
        "original/consolidated.safetensors": b"x" * 5000,
        "images/cat.png": b"x",
    }
    taken = files() | {"mtp/weights.safetensors": b"x" * 700, "mtp.safetensors": b"x" * 600}
    stub.add(REPO, taken | more, card={"license": "apache-2.0", "base_model": "maker/Tiny"})
    remote = hub.look(REPO)
    assert {file.name for file in remote.files} == set(taken)
    assert {left.name for left in remote.left_out} == set(more)
    assert (remote.licence, remote.base_models) == ("apache-2.0", ("maker/Tiny",))
    assert "code" in next(left.reason for left in remote.left_out if left.name == "pytorch_model.bin")
    folder = folder_of(pull()[0])
    assert (folder / "mtp" / "weights.safetensors").read_bytes() == b"x" * 700
    assert (folder / "mtp.safetensors").stat().st_size == 600


def test_a_gguf_comes_when_it_is_named(stub: StubHub, home: Path) -> None:
    stub.add(REPO, {"a-Q4_0.gguf": b"GGUF" * 500, "a-Q8_0.gguf": b"GGUF" * 900, "README.md": b"#"})
    error = error_of()
    assert isinstance(error, FormatRefused)
    assert "--file, such as a-Q4_0.gguf" in error.message
    assert_same(folder_of(pull(include=["a-Q8_0.gguf"])[0]), {"a-Q8_0.gguf": b"GGUF" * 900, "README.md": b"#"})
    assert isinstance(error_of(include=["a-Q5_0.gguf"]), NotOnHub)


def test_pickles_are_refused_and_say_why(stub: StubHub, home: Path) -> None:
    stub.add(REPO, {"config.json": b"{}", "pytorch_model.bin": b"x" * 2000})
    assert "pickle" in error_of().message
    assert "safetensors" in error_of(include=["pytorch_model.bin"]).message


@pytest.mark.parametrize(
    "own",
    [
        {"config.json": b'{"model_type": "odd", "model_file": "odd.py"}', "odd.py": b"x"},
        {"tokenizer_config.json": b'{"auto_map": {"AutoTokenizer": ["odd.Tok", null]}}', "odd.py": b"x"},
    ],
)
def test_a_model_that_needs_its_own_code_is_refused_before_its_weights(
    stub: StubHub, home: Path, own: dict[str, bytes]
) -> None:
    everything = {name: data for name, data in files().items() if name != "tokenizer.json"} | own
    stub.add(REPO, everything)
    error = error_of()
    assert isinstance(error, FormatRefused)
    assert "--trust-remote-code" in error.message
    assert not any(name.endswith(".safetensors") for name in stub.sent)
    shutil.rmtree(home)
    assert_same(folder_of(pull(code=True)[0]), everything)


@pytest.mark.parametrize("name", ["../../outside.json", "/etc/outside.json", "a\\..\\outside.json"])
def test_a_name_that_would_leave_the_folder_is_refused(stub: StubHub, home: Path, name: str) -> None:
    stub.add(REPO, files() | {name: b"{}"})
    assert isinstance(error_of(), FormatRefused)


def test_the_queue_takes_turns_and_can_be_paused(stub: StubHub, home: Path) -> None:
    stub.add(REPO, files())
    stub.add("maker/Other", files())
    stub.fault("model-00001-of-00004.safetensors", Fault(stall_at=10))
    ends: dict[str, State] = {}
    again: list[bool] = []

    def notify(repo: str, state: State) -> None:
        if isinstance(state, Fetching) and repo == REPO and state.progress.done > 900_000 and not again:
            queue.pause("maker/Other")
            queue.pause(REPO)
        if isinstance(state, Finished | Paused | Failed):
            ends[repo] = state

    queue = Downloads(notify, patience=Patience(stall_s=60))
    queue.start(REPO)
    queue.start("maker/Other")
    queue.start("maker/Other")
    queue._thread.join(0.1)
    while len(ends) < 2:
        queue._thread.join(0.02)
    assert {repo: type(state) for repo, state in ends.items()} == {REPO: Paused, "maker/Other": Paused}
    stub.faults.clear()
    ends.clear()
    again.append(True)
    queue.start(REPO)
    queue.start("maker/Other")
    while len(ends) < 2:
        queue._thread.join(0.02)
    assert all(isinstance(state, Finished) for state in ends.values())
    assert queue.states == ends
    queue.close()
    assert not queue._thread.is_alive()


def test_search_finds_models(stub: StubHub, home: Path) -> None:
    stub.add(REPO, files(), tags=("safetensors", "mlx"))
    stub.add("maker/Other", files())
    assert [(hit.repo, hit.is_mlx) for hit in hub.search("tiny")] == [(REPO, True)]
    assert hub.search("nothing like it") == []


def test_names_of_blobs_are_those_of_git_and_sha256(stub: StubHub, home: Path) -> None:
    stub.add(REPO, files())
    remote = {file.name: file for file in hub.look(REPO).files}
    data = files()["model-00001-of-00004.safetensors"]
    assert remote["model-00001-of-00004.safetensors"].sha256 == hashlib.sha256(data).hexdigest()
    assert remote["README.md"].git_sha1 == hashlib.sha1(b"blob 6\0# Tiny").hexdigest()
