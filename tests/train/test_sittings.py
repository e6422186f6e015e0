"""`slipstream train` over several sittings: how it is stopped, and that the same command goes on."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from slipstream.cli import main
from slipstream.commands import train_options
from slipstream.drafters import formats
from slipstream.train import measuring, planning
from slipstream.train.checkpoint import LOCK, claimed
from slipstream.train.corpus import Conversation, Corpus
from slipstream.train.planned import PLANNED
from slipstream.train.planning import SHARD, shard_rows
from tiny_runs import write_target

Start = Callable[..., int]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_target(tmp_path_factory.mktemp("model") / "tiny", tie_word_embeddings=True)


@pytest.fixture
def start(model: Path, tmp_path: Path) -> Start:
    """The command with few of everything, whose shape and time it chooses itself."""
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text("\n".join(json.dumps({"prompt": f"What is {n}?"}) for n in range(16)))
    usual = ["--model", model, "--work", tmp_path / "work", "--output", tmp_path / "made", "--prompts", prompts]
    usual += ["--conversations", 8, "--shard", 4, "--answer", 8, "--invented", 0, "--width", 8, "--texts", 2]
    usual += ["--anchors", 4, "--taps", "0,1,2", "--rank", 8, "--longest", 64, "--draft-vocabulary", 128]
    return lambda *more: main(["train", *(str(part) for part in (*usual, *more))])


def costs(monkeypatch: pytest.MonkeyPatch, verify_s: float) -> None:
    monkeypatch.setattr(measuring, "forward_seconds", lambda *_: [(0.02, verify_s)] * 3)


def signalled(monkeypatch: pytest.MonkeyPatch, *numbers: signal.Signals) -> None:
    """This process gets these signals after its first file of conversations."""
    write = Corpus.write

    def then_signalled(corpus: Corpus, shard: int, made: Sequence[Conversation]) -> None:
        write(corpus, shard, made)
        for number in numbers:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(Corpus, "write", then_signalled)


def test_ctrl_c_while_writing_stops_after_the_file(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    signalled(monkeypatch, signal.SIGINT)
    assert start("--anyway") == 130
    assert capsys.readouterr().out.endswith("stopped; the same command goes on from here\n")
    assert len(Corpus(tmp_path / "work" / "conversations").shards()) == 1
    signalled(monkeypatch, signal.SIGINT, signal.SIGINT)
    assert start("--anyway") == 130
    assert "stopped" not in capsys.readouterr().out  # a second one ends it where it is


def test_the_same_command_goes_on_though_costs_are_measured_otherwise(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "work" / "run-dspark"
    monkeypatch.setattr(planning, "USUAL", 12.0)  # else so few conversations promise nothing, whatever is measured
    costs(monkeypatch, 0.021)
    with monkeypatch.context() as patch:
        signalled(patch, signal.SIGTERM, signal.SIGTERM, signal.SIGTERM)
        assert start("--anyway") == 0
    assert capsys.readouterr().out.endswith("stopped; the same command goes on from here\n")
    assert {each.name for each in run.iterdir()} == {LOCK, PLANNED}  # nothing was learned or chosen from a part
    chosen = json.loads((run / PLANNED).read_text())["chosen"]

    # By this measurement shorter drafts would be chosen, and refused: --anyway is not given.
    costs(monkeypatch, 0.5)
    assert start() == 0
    d = formats.read(tmp_path / "made").descriptor
    assert (d.layers, d.proposals) == (chosen["layers"], chosen["proposals"])
    assert d.proposals == 10
    # There is a checkpoint now. What follows from the number of conversations stays too.
    assert start("--conversations", 9) == 0
    # What is asked for otherwise by name is refused by name.
    assert start("--proposals", 5) == 2
    assert "another decay, design" in capsys.readouterr().err


def test_too_small_a_gain_is_refused_before_anything_is_kept(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    costs(monkeypatch, 0.5)
    assert start() == 2
    assert "with --anyway" in capsys.readouterr().err
    assert not (tmp_path / "work").exists()


HOLD = """
import sys
from pathlib import Path
from slipstream.train.checkpoint import claimed
with claimed(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_training_in_a_folder_is_refused_until_the_first_has_gone(
    start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "work" / "run-dspark"
    first = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(run)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert first.stdout is not None and first.stdout.readline() == "held\n"
        assert start("--anyway") == 2
        error = capsys.readouterr().err
        assert f"another training is at work in {run}; wait for its end, stop it, or give another --run" in error
        assert not (run / PLANNED).exists() and not (tmp_path / "work" / "conversations").exists()
        assert start("--plan") == 0
    finally:
        first.kill()
        first.communicate()
    with claimed(run):  # nothing is left of one that was killed
        pass


def test_a_plan_says_how_far_its_measurements_differ(
    start: Start, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(measuring, "forward_seconds", lambda *_: [(0.02, 0.04), (0.03, 0.021), (0.02, 0.021)])
    assert start("--plan") == 0
    (said,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("expected"))
    found = re.search(r"([\d.]+) times plain decoding \(([\d.]+) to ([\d.]+) in 3 measurements\)", said)
    assert found is not None
    figure, low, high = (float(each) for each in found.groups())
    assert low < figure <= high and high > 1.4 * low


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--conversations", 0), "--conversations must be 1 or more, not 0"),
        (("--shard", 0), "--shard must be 1 or more, not 0"),
        (("--texts", -1), "--texts must be 1 or more, not -1"),
        (("--minutes", 0), "--minutes must be more than 0, not 0.0"),
        (("--minutes", "nan"), "--minutes must be more than 0, not nan"),
        (("--invented", 2), "--invented must be from 0 to 1, not 2.0"),
        (("--evaluate", "some", "--judge-most", 0), "--judge-most must be 1 or more"),
    ],
)
def test_numbers_that_make_nothing_are_refused(
    start: Start, options: tuple[object, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start(*options) == 2
    assert words in capsys.readouterr().err


def test_a_refresh_without_answers_is_refused(start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "answers").mkdir()
    assert start("--refresh", "some", "--answers", tmp_path / "answers") == 2
    assert "--answers holds no answers" in capsys.readouterr().err


@pytest.mark.parametrize(("more", "warmup"), [((), 6), (("--warmup", "50"), 50)])
def test_a_warmup_that_was_asked_for_is_kept(more: tuple[str, ...], warmup: int) -> None:
    import argparse

    from slipstream.commands.train import _recipe
    from slipstream.train.design import Design
    from slipstream.train.planning import Estimate

    parser = argparse.ArgumentParser()
    train_options.add_arguments(parser)
    args = parser.parse_args(["--steps", "60", *more])
    expected = Estimate(1, 8, 3, 7, 1.0, 1.0, 1.0, 2.0, 1.0, "")
    assert _recipe(args, Design(), expected).warmup == warmup


def test_files_of_slow_models_hold_a_minute() -> None:
    assert [shard_rows(each) for each in (0.01, 1.0, 100.0)] == [SHARD, 32, 16]
