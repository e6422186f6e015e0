"""A download that is interrupted fifty times, kill -9 among them, and what that costs in bytes fetched again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from stub_hub import Fault, StubHub

REPO = "maker/Big-4bit"
SHARDS = 5
SHARD_BYTES = 12_000_000
INTERRUPTIONS = 50

# One process that has imported everything and forks the others: 150 starts of Python would take most of the time.
NURSERY = """
import os, signal, sys
from huggingface_hub import snapshot_download
from slipstream.errors import ModelIncomplete
from slipstream.store import local
from slipstream.store.download import Download
from slipstream.store.download_state import Finished, Patience

def pull(repo):
    patience = Patience(stall_s=1.0, attempts=3, first_wait_s=0.05)
    return 0 if isinstance(Download(repo, lambda state: None, patience=patience).run(), Finished) else 1

def is_hidden(repo):
    mine = [model for model in local.scan() if model.name == repo]
    assert all(not model.is_complete for model in mine), mine
    assert repo not in [model.name for model in local.models()]
    for load, refusal in ((local.resolve, ModelIncomplete), (only_local, FileNotFoundError)):
        try:
            load(repo)
        except refusal:
            continue
        raise AssertionError(load)
    return 0

def only_local(repo):
    return snapshot_download(repo, local_files_only=True)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs are started without it
for line in sys.stdin:
    command, what = line.split()
    if command == "wait":
        _, status = os.waitpid(int(what), 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
        continue
    child = os.fork()
    if child == 0:
        status = 3
        try:
            status = globals()[command](what)
        finally:
            os._exit(status)
    print(child, flush=True)
"""


class Nursery:
    """Starts the processes of a trial, and waits for them."""

    def __init__(self, env: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", NURSERY], env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def start(self, command: str) -> int:
        """`pull` or `is_hidden`. Returns the process's number."""
        return self._ask(f"{command} {REPO}")

    def wait(self, pid: int) -> int:
        """Its exit code, or the signal that ended it, negative."""
        return self._ask(f"wait {pid}")

    def _ask(self, line: str) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@dataclass
class Trial:
    """A hub that is slow enough for every interruption to find something under way, and a cache."""

    hub: StubHub
    nursery: Nursery
    chance: random.Random
    files: dict[str, bytes]

    def sent(self) -> int:
        return sum(self.hub.sent.values())

    def interrupt(self, kind: str) -> int:
        """Begin or continue the download, let some bytes come, and end it in one of many ways. Returns its end."""
        pid = self.nursery.start("pull")
        aim = self.sent() + self.chance.randint(1, sum(map(len, self.files.values())) // INTERRUPTIONS)
        deadline = time.monotonic() + 60
        while self.sent() < aim and time.monotonic() < deadline:
            time.sleep(0.01)
        shard = self.chance.choice([name for name in self.files if name.endswith(".safetensors")])
        # What the next run meets.
        self.hub.fault(shard, *FAULTS[kind](self.chance.randrange(SHARD_BYTES)))
        os.kill(pid, signal.SIGINT if kind == "interrupt" else signal.SIGKILL)
        return self.nursery.wait(pid)


FAULTS: dict[str, Callable[[int], list[Fault]]] = {
    "kill": lambda at: [],
    "interrupt": lambda at: [],
    "cut": lambda at: [Fault(cut_at=at), Fault(cut_at=at)],
    "stall": lambda at: [Fault(stall_at=at)],
    "trouble": lambda at: [Fault(status=503)],
    "flip": lambda at: [Fault(flip_at=at)],
}


@pytest.mark.slow
def test_fifty_interruptions_never_lose_the_way(tmp_path: Path) -> None:
    chance = random.Random(20261130)
    files = {f"model-{n + 1:05}-of-{SHARDS:05}.safetensors": chance.randbytes(SHARD_BYTES) for n in range(SHARDS)}
    files |= {"config.json": b'{"model_type": "llama"}', "tokenizer.json": b"{}"}
    total = sum(map(len, files.values()))
    kinds = [chance.choice(["kill", *FAULTS]) for _ in range(INTERRUPTIONS)]
    with StubHub() as hub:
        hub.add(REPO, files)
        hub.bytes_per_s = total / 200
        env = dict(os.environ, HF_ENDPOINT=hub.endpoint, HF_HOME=str(tmp_path / "hf"), HF_HUB_OFFLINE="0")
        with Nursery(env) as nursery:
            trial = Trial(hub, nursery, chance, files)
            for number, kind in enumerate(kinds, 1):
                assert trial.interrupt(kind) != 0, "it was faster than its interruption"
                assert nursery.wait(nursery.start("is_hidden")) == 0
                print(f"{number} {kind}: {trial.sent():,} bytes sent", flush=True)
            hub.bytes_per_s = None
            hub.faults.clear()
            assert nursery.wait(nursery.start("pull")) == 0
            at_end = trial.sent()
            assert nursery.wait(nursery.start("pull")) == 0
            assert trial.sent() == at_end
    (snapshot,) = (tmp_path / "hf").glob("hub/models--*/snapshots/*")
    assert {path.name: path.read_bytes() for path in snapshot.iterdir()} == files
    assert not list((tmp_path / "hf").glob("hub/models--*/blobs/*.incomplete"))
    again = at_end - total
    print(
        f"\n{dict(Counter(kinds))}: {at_end:,} bytes sent for {total:,}, {again:,} of them again ({again / total:.1%})"
    )
