"""A download that is interrupted fifty times, kill -9 among them, and what that costs in bytes fetched again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
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


@pytest.mark.slow
def test_fifty_interruptions_never_lose_the_way(tmp_path: Path) -> None:
    chance = random.Random(20261130)
    files = {f"model-{n + 1:05}-of-{SHARDS:05}.safetensors": chance.randbytes(SHARD_BYTES) for n in range(SHARDS)}
    files |= {"config.json": b'{"model_type": "llama"}', "tokenizer.json": b"{}"}
    total = sum(map(len, files.values()))
    kinds: Counter[str] = Counter()
    with StubHub() as hub:
        hub.add(REPO, files)
        # Slow enough that every interruption finds something under way.
        hub.bytes_per_s = total / 4 / 20
        env = dict(os.environ, HF_ENDPOINT=hub.endpoint, HF_HOME=str(tmp_path / "hf"), HF_HUB_OFFLINE="0")

        def run(program: str) -> subprocess.Popen[str]:
            return subprocess.Popen([sys.executable, "-c", program, REPO], env=env, text=True)

        def sent() -> int:
            return sum(hub.sent.values())

        for _ in range(INTERRUPTIONS):
            kind = chance.choice(["kill", "kill", "interrupt", "cut", "stall", "trouble", "flip"])
            kinds[kind] += 1
            process = run(PULL)
            before = sent()
            aim = before + chance.randint(1, total // INTERRUPTIONS)
            deadline = time.monotonic() + 60
            while sent() < aim and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            shard = chance.choice(list(files)[:SHARDS])
            match kind:
                case "kill":
                    process.kill()
                case "interrupt":
                    process.send_signal(signal.SIGINT)
                case "cut":
                    hub.fault(shard, *(Fault(cut_at=chance.randint(0, SHARD_BYTES)) for _ in range(3)))
                    process.send_signal(signal.SIGTERM)
                case "stall":
                    hub.fault(shard, Fault(stall_at=chance.randint(0, SHARD_BYTES)))
                    process.kill()
                case "trouble":
                    hub.fault(shard, *(Fault(status=503) for _ in range(3)))
                    process.terminate()
                case _:
                    hub.fault(shard, Fault(flip_at=chance.randint(0, SHARD_BYTES - 1)))
                    process.kill()
            process.wait(60)
            if process.returncode == 0:
                break
            subprocess.run([sys.executable, "-c", LIST, REPO], env=env, check=True, stdout=subprocess.DEVNULL)
        interruptions = sum(kinds.values())
        hub.bytes_per_s = None
        hub.faults.clear()
        assert run(PULL).wait(120) == 0
        at_end = sent()
        again = run(PULL)
        assert again.wait(120) == 0
        assert sent() == at_end
    snapshots = list((tmp_path / "hf").glob("hub/models--*/snapshots/*"))
    assert len(snapshots) == 1
    assert {path.name: path.read_bytes() for path in snapshots[0].iterdir()} == files
    assert not list((tmp_path / "hf").glob("hub/models--*/blobs/*.incomplete"))
    print(
        f"\n{interruptions} interruptions {dict(kinds)}: {at_end:,} bytes sent for {total:,}; "
        f"{at_end - total:,} again ({(at_end - total) / total:.1%})"
    )
    assert interruptions == INTERRUPTIONS
