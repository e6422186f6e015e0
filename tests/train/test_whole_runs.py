"""`slipstream train` as a user runs it, on a target that can be learned: what it comes to, and kill -9 at any moment.

pytest -m slow tests/train/test_whole_runs.py     about six minutes
"""

from __future__ import annotations

import json
import os
import random
import signal
import string
import subprocess
import sys
import time
from pathlib import Path

import pytest

from slipstream.cli import main
from tiny_runs import write_target

MINUTES = 3.5  # of learning; writing, judging and comparing take the fifth
SEED = time.time_ns() % 100_000  # of the moments to kill at


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cycle through 255 bytes, which the context makes it leave now and then: no answer says anything twice."""
    cycle = list(range(1, 256))
    random.Random(1).shuffle(cycle)
    folder = tmp_path_factory.mktemp("model") / "chain"
    write_target(folder, links=zip(cycle, [*cycle[1:], cycle[0]], strict=True), stray=0.1)
    # Answers go on from the question's last letter, so that they differ.
    (folder / "chat_template.jinja").write_text("{% for m in messages %}<user>{{ m.content }}{% endfor %}")
    return folder


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """To learn from, and to judge by."""
    rng = random.Random(2)
    texts = ["".join(rng.choices(string.ascii_letters + string.digits, k=8)) for _ in range(310)]
    folder = tmp_path_factory.mktemp("questions")
    for name, some in (("learn", texts[10:]), ("judge", texts[:10])):
        (folder / f"{name}.jsonl").write_text("\n".join(json.dumps({"prompt": text}) for text in some))
    return folder / "learn.jsonl", folder / "judge.jsonl"


def arguments(model: Path, questions: tuple[Path, Path], work: Path, *more: object) -> list[str]:
    given: list[object] = ["--model", model, "--anyway", "--prompts", questions[0], "--work", work]
    given += ["--conversations", 256, "--shard", 256, "--width", 256, "--invented", 0, "--answer", 48]
    given += ["--layers", 1, "--taps", "0,1,2", "--rank", 32, "--proposals", 5, "--mask-id", 259]
    given += ["--texts", 8, "--anchors", 12, "--longest", 64, "--rate", 0.01, "--warmup", 10, "--ema", 0.95]
    return [str(part) for part in (*given, *more)]


@pytest.mark.slow
def test_five_minutes_on_a_cpu_beat_lookup(
    model: Path, questions: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.jsonl"
    # In a process of its own: MLX must find a fast BLAS before it is imported.
    command = [sys.executable, "-m", "slipstream.commands.train"]
    made = arguments(model, questions, tmp_path / "work", "--minutes", MINUTES, "--every", 10, "--log", log)
    subprocess.run([*command, *made, "--output", tmp_path / "made"], check=True, timeout=600)
    figures = [entry for line in log.read_text().splitlines() if (entry := json.loads(line))["what"] == "Figure"]
    first, last = figures[0], figures[-1]
    assert last["loss"] < first["loss"] / 2
    assert last["same"] > first["same"] + 0.5
    assert last["agrees"][1] > first["agrees"][1] + 0.2
    assert "<polyline" in (tmp_path / "work" / "run-dspark" / "progress.svg").read_text()

    asked = ["--evaluate", tmp_path / "made", "--judge-by", questions[1], "--answer", 48]
    assert main([str(part) for part in ("train", "--model", model, *asked)]) == 0
    said = capsys.readouterr().out
    print(said)
    lines = [line.split() for line in said.splitlines() if line.startswith("all ")]
    worth = {(line[3], line[2]): float(line[4]) for line in lines}
    for temperature in ("0", "1"):
        assert worth["dspark", temperature] > worth["lookup", temperature] + 0.5
    assert "expected calibration error" in said


@pytest.mark.slow
def test_killed_at_any_moment_it_makes_the_same_drafter(
    model: Path, questions: tuple[Path, Path], tmp_path: Path
) -> None:
    """kill -9 at moments drawn anew each time: while writing, learning, saving or exporting."""
    rng = random.Random(SEED)
    command = [sys.executable, "-m", "slipstream.commands.train"]

    def run(name: str, limit: float | None) -> bool:
        """Whether it came to its end; killed after `limit` seconds."""
        work = tmp_path / name
        given = arguments(model, questions, work, "--steps", 40, "--every", 5, "--save-seconds", 0, "--shard", 32)
        with subprocess.Popen(
            [*command, *given, "--output", work / "made"], stdout=subprocess.DEVNULL, env=os.environ.copy()
        ) as process:
            try:
                return process.wait(limit if limit is not None else 280) == 0
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                return False

    began = time.monotonic()
    assert run("whole", None)
    took = time.monotonic() - began
    killed = 0
    while not run("killed", took * rng.uniform(0.2, 0.7) if killed < 3 else None):
        killed += 1
    assert killed == 3, SEED
    results = [(tmp_path / name / "made" / "model.safetensors").read_bytes() for name in ("whole", "killed")]
    assert results[0] == results[1], f"seed {SEED}"
