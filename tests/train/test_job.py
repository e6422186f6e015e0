"""`slipstream train` from beginning to end, for a tiny model in a folder as a download leaves it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from slipstream.cli import main
from slipstream.drafters import formats
from slipstream.models.host import ints
from slipstream.train.evaluate import calibration
from slipstream.types import Mode
from tiny_runs import write_byte_drafter, write_target

PROMPTS = [{"source": kind, "prompt": f"What is {n} and\u2028{kind}?"} for n in range(6) for kind in ("chat", "maths")]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_target(tmp_path_factory.mktemp("model") / "tiny", tie_word_embeddings=True)


def arguments(model: Path, folder: Path, *more: object) -> list[str]:
    prompts = folder / "prompts.jsonl"
    folder.mkdir(exist_ok=True)
    # Not escaped: JSON may hold U+2028 as it is.
    prompts.write_text("\n".join(json.dumps(prompt, ensure_ascii=False) for prompt in PROMPTS))
    given = ["train", "--model", model, "--work", folder / "work", "--prompts", prompts, "--judge-by", prompts]
    given += [
        "--conversations",
        24,
        "--shard",
        12,
        "--answer",
        24,
        "--judge-most",
        1,
        "--width",
        16,
        "--texts",
        4,
        "--anchors",
        8,
    ]
    given += ["--taps", "0,1,2", "--rank", 16, "--every", 1, "--longest", 256]
    return [str(part) for part in (*given, *more)]


@pytest.mark.slow
def test_a_drafter_is_made_and_goes_on(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = tmp_path / "first"
    log = tmp_path / "log.jsonl"
    assert (
        main(
            arguments(
                model,
                tmp_path,
                *("--layers", 1, "--anyway", "--steps", 3, "--output", first, "--log", log),
                *("--draft-vocabulary", 128, "--proposals", 7),
            )
        )
        == 0
    )
    d = formats.read(first).descriptor
    assert (d.mode, d.layers, d.taps, d.rank) == (Mode.DSPARK, 1, (0, 1, 2), 16)
    assert len(d.confidence_temperatures) == d.proposals
    about = json.loads((first / "config.json").read_text())["slipstream"]
    assert about["steps"] == 3
    assert about["target"] == "tiny"
    said = [json.loads(line)["what"] for line in log.read_text().splitlines()]
    assert said.count("Written") == 2
    assert said.count("Figure") == 3
    assert "prompts never trained on" in said

    # The conversations are there: only training is left. It goes on from the drafter, whatever shape is asked for.
    second = tmp_path / "second"
    work = tmp_path / "work"
    (work / "run-dspark").rename(work / "first run")
    more = ("--anyway", "--steps", 2, "--layers", 2, "--from", first, "--optimiser", "muon", "--output", second)
    assert main(arguments(model, tmp_path, *more, "--proposals", 9)) == 0
    gone_on = formats.read(second)
    assert (gone_on.descriptor.layers, gone_on.descriptor.proposals, gone_on.descriptor.draft_vocabulary) == (1, 9, 128)
    assert ints(gone_on.weights["d2t"]) == ints(formats.read(first).weights["d2t"])
    picture = tmp_path / "work" / "run-dspark" / "progress.svg"
    assert "<svg" in picture.read_text()
    assert "tokens per round on held-out conversations" in capsys.readouterr().out


@pytest.mark.slow
def test_a_drafter_is_refreshed_only_if_it_gets_better(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = tmp_path / "answers"
    answers.mkdir()
    for n in range(60):
        # Lines that go on in the same way: there is something to learn.
        said = {"prompt_ids": [60 + n, 61, 62], "token_ids": [65, 66, 67, 68] * 5, "options": {"temperature": 0.0}}
        (answers / f"{n}.json").write_text(json.dumps(said))
    first, second = tmp_path / "first", tmp_path / "second"
    made = ("--layers", 1, "--anyway", "--steps", 1, "--output", first, "--conversations", 8, "--shard", 8)
    assert main(arguments(model, tmp_path, *made)) == 0

    refresh = ("--refresh", first, "--answers", answers, "--output", second, "--warmup", 1)
    assert main(arguments(model, tmp_path, *refresh, "--steps", 1, "--rate", 0.0)) == 0
    assert "stays as it was" in capsys.readouterr().out
    assert not second.exists()
    # Other answers are another run: what was learned from fewer is not taken for it.
    (answers / "60.json").write_text((answers / "0.json").read_text().replace("60,", "59,"))
    assert main(arguments(model, tmp_path, *refresh, "--steps", 25, "--rate", 0.01)) == 0
    assert second.exists()
    assert len(list((tmp_path / "work").glob("refresh-*"))) == 2

    (answers / "0.json").write_text(json.dumps({"prompt_ids": [5000], "token_ids": [1], "options": {}}))
    assert main(arguments(model, tmp_path, *refresh, "--steps", 1)) == 2
    assert "another model's" in capsys.readouterr().err
    assert main(arguments(model, tmp_path, "--refresh", first)) == 2
    assert "belong together" in capsys.readouterr().err


def test_the_shortest_run_makes_a_drafter(model: Path, tmp_path: Path) -> None:
    made = arguments(model, tmp_path, "--layers", 1, "--anyway", "--steps", 1, "--output", tmp_path / "made")
    made = [*made, "--conversations", "8", "--shard", "8", "--answer", "8", "--invented", "0", "--judge-most", "0"]
    assert main(made) == 0
    assert formats.read(tmp_path / "made").descriptor.layers == 1


def test_a_drafter_is_evaluated_in_the_engines_own_rounds(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By kind, greedy and drawn, beside lookup and plain decoding, which makes one token a round."""
    drafter = write_byte_drafter(tmp_path / "drafter", Mode.DSPARK)
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text("\n".join(json.dumps({"source": kind, "prompt": f"Say {kind}."}) for kind in ("chat", "maths")))
    asked = ["train", "--model", model, "--evaluate", drafter, "--judge-by", prompts, "--answer", 12]
    assert main([str(part) for part in asked]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head == "2 questions, answers of at most 12 tokens"
    table, sure = lines[:18], lines[18:]  # all, chat and maths; two temperatures; three modes
    assert {line.split()[3] for line in table} == {"baseline", "dspark", "lookup"}
    assert all(line.split()[4] == "1.00" for line in table if "baseline" in line)
    assert all(line.endswith("1.00 times plain") for line in table if "baseline" in line)
    assert [line.split(",")[0] for line in sure if "confidences" in line] == [
        "confidences at temperature 0",
        "confidences at temperature 1",
    ]
    assert sum("a hint only" in line for line in sure) == 2
    assert sum("expected calibration error" in line for line in sure) == len(sure) - 4 > 2


def test_confidences_that_come_true_have_no_error() -> None:
    """Half of the rounds keep one draft of two, as was said; of the second it was said to be sure."""
    first, second = calibration([((0.5, 1.0), 0), ((0.5, 1.0), 1)] * 10 + [((0.5,), 1), ((0.5,), 0)])
    assert (first.rounds, second.rounds) == (22, 20)
    assert (first.promised, first.kept, first.error) == (0.5, 0.5, 0.0)
    assert (second.promised, second.kept, second.error) == (0.5, 0.0, 0.5)


def test_a_plan_is_said_and_nothing_made(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(model, tmp_path, "--plan")) == 0
    said = capsys.readouterr().out
    assert "tokens per round" in said
    assert "times plain decoding" in said
    assert not (tmp_path / "work").exists()


def test_bad_input_is_one_sentence(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(model, tmp_path, "--steps", 1)) == 2
    assert "with --anyway" in capsys.readouterr().err  # so small a model gains nothing
    assert main(arguments(model, tmp_path, "--anyway", "--steps", 1, "--taps", "0,9")) == 2
    assert "--taps must be layers from -1 to 2" in capsys.readouterr().err
    assert main(arguments(model, tmp_path, "--anyway", "--steps", 1, "--taps", "a")) == 2
    assert "--taps" in capsys.readouterr().err
