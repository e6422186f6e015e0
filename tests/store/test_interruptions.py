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

PULL = """
import sys
from slipstream.store.download import Download, Patience, Finished, Paused
patience = Patience(stall_s=1.0, attempts=3, first_wait_s=0.05)
state = Download(sys.argv[1], lambda state: None, patience=patience).run()
sys.exit(0 if isinstance(state, Finished) else 1)
"""
LIST = """
import sys
from slipstream.store import local
from slipstream.errors import ModelIncomplete
from huggingface_hub import snapshot_download
mine = [m for m in local.scan() if m.name == sys.argv[1]]
assert all(not m.is_complete for m in mine), mine
assert sys.argv[1] not in [m.name for m in local.models()]
if mine:
    try:
        local.resolve(sys.argv[1])
    except ModelIncomplete:
        pass
    else:
        raise AssertionError("it can be loaded")
try:
    snapshot_download(sys.argv[1], local_files_only=True)
except FileNotFoundError:
    pass
else:
    raise AssertionError("other tools see it")
print("not listed")
"""


@dataclass
class Trial:
    """A hub that is slow enough for every interruption to find something under way, and a cache."""

    hub: StubHub
    env: dict[str, str]
    chance: random.Random
    files: dict[str, bytes]

    def start(self, program: str) -> subprocess.Popen[str]:
        return subprocess.Popen([sys.executable, "-c", program, REPO], env=self.env, text=True, stderr=subprocess.PIPE)

    def sent(self) -> int:
        return sum(self.hub.sent.values())

    def interrupt(self, kind: str) -> None:
        """Begin or continue the download, let some bytes come, and end it in one of many ways."""
        process = self.start(PULL)
        aim = self.sent() + self.chance.randint(1, sum(map(len, self.files.values())) // INTERRUPTIONS)
        deadline = time.monotonic() + 60
        while self.sent() < aim and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert process.poll() is None, "it was faster than its interruption"
        shard = self.chance.choice([name for name in self.files if name.endswith(".safetensors")])
        at = self.chance.randrange(SHARD_BYTES)
        # What the next run meets.
        self.hub.fault(shard, *FAULTS[kind](at))
        process.send_signal(signal.SIGINT if kind == "interrupt" else signal.SIGKILL)
        process.communicate(timeout=60)


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
        trial = Trial(hub, env, chance, files)
        for kind in kinds:
            trial.interrupt(kind)
            look = trial.start(LIST)
            assert look.wait(120) == 0, look.communicate()[1]
        hub.bytes_per_s = None
        hub.faults.clear()
        assert trial.start(PULL).wait(120) == 0
        at_end = trial.sent()
        assert trial.start(PULL).wait(120) == 0
        assert trial.sent() == at_end
    (snapshot,) = (tmp_path / "hf").glob("hub/models--*/snapshots/*")
    assert {path.name: path.read_bytes() for path in snapshot.iterdir()} == files
    assert not list((tmp_path / "hf").glob("hub/models--*/blobs/*.incomplete"))
    again = at_end - total
    print(
        f"\n{dict(Counter(kinds))}: {at_end:,} bytes sent for {total:,}, {again:,} of them again ({again / total:.1%})"
    )
