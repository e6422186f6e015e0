"""A run that is interrupted anywhere goes on to the same result; more processes come to the same as one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from slipstream.errors import InvalidRequest
from slipstream.models.target import Target
from slipstream.train.batches import Batches, Position
from slipstream.train.corpus import About, Conversation, Corpus
from slipstream.train.design import TargetShape
from slipstream.train.loop import Control, Figure, Paused, Recipe, train
from slipstream.train.network import fresh
from slipstream.train.step import Precision, Trainee
from tiny_training import design

PRECISION = Precision(mx.float32, mx.float32)
RECIPE = Recipe(design=design(), texts=4, anchors=8, longest=64, steps=4, warmup=2, rate=3e-3)


def run(
    target: Target,
    shape: TargetShape,
    conversations: list[Conversation],
    folder: Path,
    recipe: Recipe = RECIPE,
    control: Control | None = None,
) -> tuple[dict[str, mx.array], list[Figure]]:
    d = recipe.design.descriptor(shape)
    said: list[Figure] = []
    start = fresh(d, len(d.taps) * target.hidden_size, 1)
    trainee = Trainee(d, target, PRECISION, part=64)
    outcome = train(trainee, start, conversations, recipe, folder, say=said.append, control=control, every=1)
    return outcome.parameters, said


def same(one: dict[str, mx.array], two: dict[str, mx.array]) -> bool:
    return one.keys() == two.keys() and all(mx.array_equal(one[name], two[name]).item() for name in one)


def test_a_pause_is_said_when_it_takes_effect_and_when_it_ends() -> None:
    said: list[Paused] = []
    control = Control(said.append)
    assert control.wait() < 1
    assert not said, "there was no pause"
    control.pause()
    assert not said, "the step is being made yet"
    threading.Timer(0.05, control.resume).start()
    assert control.wait() >= 0.04
    assert said == [Paused(stands=True), Paused(stands=False)]


class StopsAt(Control):
    """Stops a run after so many steps."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self._left = steps

    @property
    def is_stopped(self) -> bool:
        self._left -= 1
        return self._left < 0


@pytest.mark.parametrize("optimiser", ["adamw", pytest.param("muon", marks=pytest.mark.slow)])
def test_a_run_that_was_stopped_goes_on_to_the_same_result(
    optimiser: str, target: Target, shape: TargetShape, conversations: list[Conversation], tmp_path: Path
) -> None:
    recipe = replace(RECIPE, optimiser=optimiser)
    whole, figures = run(target, shape, conversations, tmp_path / "whole", recipe)
    assert figures[-1].loss < figures[0].loss
    run(target, shape, conversations, tmp_path / "parts", recipe, StopsAt(2))
    run(target, shape, conversations, tmp_path / "parts", recipe, StopsAt(1))
    parts, after = run(target, shape, conversations, tmp_path / "parts", recipe)
    assert [figure.step for figure in after] == [4]
    assert same(whole, parts)


def test_a_run_with_other_settings_is_refused(
    target: Target, shape: TargetShape, conversations: list[Conversation], tmp_path: Path
) -> None:
    run(target, shape, conversations, tmp_path, replace(RECIPE, steps=1))
    with pytest.raises(InvalidRequest, match="another rate, steps"):
        run(target, shape, conversations, tmp_path, replace(RECIPE, steps=2, rate=1e-4))


def test_batches_go_on_from_any_place(conversations: list[Conversation]) -> None:
    batches = Batches(conversations, texts=4, anchors=8, predictions=4, longest=64, seed=3)
    whole = batches.after(Position())
    seen = [next(whole) for _ in range(2 * len(batches) + 1)]
    for number in (0, len(batches) - 1, len(batches)):
        batch, _ = next(batches.after(seen[number][1]))
        assert (batch.tokens == seen[number + 1][0].tokens).all()
        assert (batch.anchors == seen[number + 1][0].anchors).all()


def test_labels_and_weights_are_where_the_answer_is(conversations: list[Conversation]) -> None:
    batches = Batches(conversations, texts=4, anchors=8, predictions=4, longest=64, seed=3)
    batch, _ = next(batches.after(Position()))
    starts = {one.ids[:6]: one for one in conversations}
    for text in range(4):
        one = starts[tuple(batch.tokens[text, :6].tolist())]
        for anchor, labels, weights in zip(batch.anchors[text], batch.labels[text], batch.weights[text], strict=True):
            if not weights.any():
                continue
            assert anchor >= one.start  # the first one is what the prefill's last row said
            ahead = one.ids[anchor + 1 : anchor + 5]
            assert tuple(labels[: len(ahead)].tolist()) == ahead
            assert [weight > 0 for weight in weights] == [k < len(ahead) for k in range(4)]


def test_a_shard_is_whole_or_not_there(tmp_path: Path, conversations: list[Conversation]) -> None:
    corpus = Corpus(tmp_path)
    corpus.open(About("a", {"answer": 8}))
    corpus.write(1, conversations)
    corpus.write(0, conversations[:3])
    assert not any(path.name.startswith(".") for path in tmp_path.iterdir())
    read = list(corpus.read())
    assert len(read) == len(conversations)  # those of shard 0 are in shard 1 again
    assert set(read) == set(conversations)
    with pytest.raises(InvalidRequest, match="another model"):
        corpus.open(About("b", {"answer": 8}))
    with pytest.raises(InvalidRequest, match="other settings"):
        corpus.open(About("a", {"answer": 9}))


SCRIPT = """
import os, sys
from pathlib import Path
import mlx.core as mx
import tiny
from slipstream.train.corpus import Corpus
from slipstream.train.design import TargetShape
from slipstream.train.loop import Recipe, train
from slipstream.train.network import fresh
from slipstream.train.step import Precision, Trainee
from tiny_training import design

folder, data, steps, save = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
group = mx.distributed.init(backend="ring") if len(sys.argv) > 5 else None
target = tiny.target()
shape = TargetShape.of(tiny.target_config(), layers=target.layer_count, hidden=target.hidden_size,
                       vocabulary=target.vocabulary, context=target.context)
seconds = float(os.environ.get("TRAIN_SECONDS", 0)) or None
recipe = Recipe(design=design(), texts=4, anchors=8, longest=64, steps=None if seconds else steps, seconds=seconds,
                warmup=2, rate=3e-3)
d = recipe.design.descriptor(shape)
trainee = Trainee(d, target, Precision(mx.float32, mx.float32), part=64)
outcome = train(trainee, fresh(d, len(d.taps) * target.hidden_size, 1), list(Corpus(data).read()), recipe, folder,
                say=lambda figure: print(figure.step, figure.loss, flush=True), every=1, save_every_s=save, group=group)
if group is None or group.rank() == 0:
    mx.save_safetensors(str(folder / "result.safetensors"), outcome.parameters)
"""


def script(*arguments: object, **environment: str) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path} | environment,
    )


def ended(process: subprocess.Popen[str]) -> int:
    with process:  # closes its pipe
        process.communicate(timeout=300)
    return process.returncode


def written(folder: Path, conversations: list[Conversation]) -> Path:
    corpus = Corpus(folder)
    corpus.open(About("tiny", {}))
    corpus.write(0, conversations)
    return folder


@pytest.mark.slow
def test_killed_runs_come_to_the_same_result(conversations: list[Conversation], tmp_path: Path) -> None:
    data = written(tmp_path / "data", conversations)
    (tmp_path / "whole").mkdir()
    assert ended(script(tmp_path / "whole", data, 30, 1e9)) == 0
    killed = 0
    while True:
        process = script(tmp_path / "killed", data, 30, 0.0)
        assert process.stdout is not None
        for lines, _ in enumerate(process.stdout):
            if lines == 6 and killed < 3:  # in the middle of something, checkpoint or step
                time.sleep(0.003 * killed)
                process.send_signal(signal.SIGKILL)
        if ended(process) == 0:
            break
        killed += 1
    assert killed == 3
    results = [mx.load(str(tmp_path / name / "result.safetensors")) for name in ("whole", "killed")]
    assert isinstance(results[0], dict)
    assert isinstance(results[1], dict)
    assert same(results[0], results[1])


def side_by_side(tmp_path: Path, data: Path, **environment: str) -> list[subprocess.Popen[str]]:
    """Processes that share every step."""
    hosts = tmp_path / "hosts.json"
    hosts.write_text(json.dumps([["127.0.0.1:32323"], ["127.0.0.1:32324"]]))
    of_both = environment | {"MLX_HOSTFILE": str(hosts)}
    return [script(tmp_path / "two", data, 4, 1e9, "ring", MLX_RANK=str(rank), **of_both) for rank in (0, 1)]


@pytest.mark.slow
def test_two_processes_that_go_by_time_stop_at_the_same_step(conversations: list[Conversation], tmp_path: Path) -> None:
    """By the first one's clock: were the other to stop at its own, one would wait for ever."""
    both = side_by_side(tmp_path, written(tmp_path / "data", conversations), TRAIN_SECONDS="5")
    said = [process.communicate(timeout=200)[0].split("\n") for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert said[0] == said[1]
    assert len(said[0]) > 2


@pytest.mark.slow
def test_two_processes_come_to_the_same_as_one(conversations: list[Conversation], tmp_path: Path) -> None:
    """Gradients are added in another order, so the same means to rounding."""
    data = written(tmp_path / "data", conversations)
    (tmp_path / "one").mkdir()
    assert ended(script(tmp_path / "one", data, 4, 1e9)) == 0
    both = side_by_side(tmp_path, data)
    assert [ended(process) for process in both] == [0, 0]
    one, two = (mx.load(str(tmp_path / name / "result.safetensors")) for name in ("one", "two"))
    assert isinstance(one, dict)
    assert isinstance(two, dict)
    for name in one:
        np.testing.assert_allclose(np.array(one[name]), np.array(two[name]), atol=2e-5, err_msg=name)
