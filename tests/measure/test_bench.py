"""The benchmark on a real tiny pair, and the roofline's sums."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from slipstream import cli
from slipstream.curves import Curves
from slipstream.engine.guard import Guard
from slipstream.errors import InvalidRequest, WontFit
from slipstream.measure import bench
from slipstream.measure.prompts import DEFAULT, notes
from slipstream.measure.roofline import Standing, sentences
from slipstream.types import Chat, Mode, Prompt, Text
from tiny_runs import write_byte_drafter, write_target


def encode(prompt: Prompt) -> list[int]:
    """A byte is a token."""
    match prompt:
        case Text(text):
            return list(text.encode())
        case Chat(messages):
            return list(messages[0]["content"].encode())
        case _:
            raise AssertionError(prompt)


@pytest.mark.parametrize("context", [0, 500, 4096])
def test_a_context_is_as_long_as_was_asked_for(context: int) -> None:
    question = DEFAULT[0]
    ids = bench.filled(encode, question, context)
    bare = len(encode(Text(question.text)))
    assert bare + context - 100 <= len(ids) <= bare + context + 100
    assert bytes(ids).decode().endswith(question.text)


def test_notes_do_not_repeat_themselves() -> None:
    told = [note.partition(": ")[2] for note, _ in zip(notes(), range(500), strict=False)]
    assert len(set(told)) > 490


def test_lengths_as_people_write_them() -> None:
    assert bench.lengths("0,4k, 16K,100") == (0, 4096, 16384, 100)
    for wrong in ("", "4m", "-1", "1.5k", "4k,,8k"):
        with pytest.raises(InvalidRequest, match="such as 0,4k,16k"):
            bench.lengths(wrong)


def test_a_benchmark_of_a_tiny_pair(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_target(tmp_path / "target", max_position_embeddings=2000)
    write_byte_drafter(tmp_path / "dspark", Mode.DSPARK)
    model = ("--model", str(tmp_path / "target"), "--drafter", str(tmp_path / "dspark"))
    table, full = tmp_path / "table.md", tmp_path / "all.json"
    code = cli.main(
        [
            *("benchmark", *model, "--modes", "dspark", "--contexts", "0,400", "--trials", "2", "--max-tokens", "6"),
            *(
                "--streams",
                "1,2",
                "--prompt",
                "Why?",
                "--prompt",
                "And how?",
                "--markdown",
                str(table),
                "--json",
                str(full),
            ),
        ]
    )
    assert code == 0
    out = capsys.readouterr().out
    assert "DSpark" in out
    assert " 1/44 " in out and "44/44 " in out  # each said once: none is missing from the number of all
    said = json.loads(full.read_text())
    cells = [(cell["streams"], cell["context"], cell["verdict"]) for cell in said["cells"]]
    assert cells == [(streams, context, "identical") for context in (0, 400) for streams in (1, 2)]
    assert {"chip", "power", "mlx", "quantisation", "trials", "marks"} <= said.keys()
    for cell in said["cells"]:
        plain, other = cell["arms"]
        assert (plain["mode"], other["mode"]) == ("baseline", "dspark")
        assert cell["prefill_tps"] > 0 or cell["streams"] > 1  # then it was read before
    assert said["cells"][2]["prompt_tokens"][0] > 350
    assert all(len(cell["runs"]) == 8 for cell in said["cells"])  # two questions, two modes, two trials
    assert table.read_text().count("| DSpark |") == 4
    assert table.read_text().count("2 of 2 say what they say alone") == 2


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (
            ("--contexts", "0,4k"),
            "a context of 4,096 tokens, a question and an answer of 6 do not fit target, which has room for 2,000",
        ),
        (
            ("--contexts", "1990"),
            "a context of 1,990 tokens, a question and an answer of 6 do not fit",
        ),  # but the context alone
        (("--prompt", "why? " * 400), "choose a shorter question or fewer --max-tokens"),
    ],
)
def test_what_does_not_fit_the_model_is_refused_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, str], sentence: str
) -> None:
    write_target(tmp_path / "target", max_position_embeddings=2000)
    code = cli.main(["benchmark", "--model", str(tmp_path / "target"), "--max-tokens", "6", *more])
    out, error = capsys.readouterr()
    assert (code, out) == (2, "")
    assert sentence in error


def test_what_was_measured_before_an_error_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def admit(guard: Guard, prompt: int, *_: object) -> None:
        if prompt > 300:
            raise WontFit("no room for so long a prompt", needed_bytes=2, available_bytes=1)

    monkeypatch.setattr(Guard, "admit", admit)
    write_target(tmp_path / "target", max_position_embeddings=2000)
    table, full = tmp_path / "table.md", tmp_path / "all.json"
    files = ("--markdown", str(table), "--json", str(full))
    run = ("--contexts", "0,400,500", "--trials", "1", "--max-tokens", "4", "--prompt", "Why?")
    code = cli.main(["benchmark", "--model", str(tmp_path / "target"), *run, *files])
    out, error = capsys.readouterr()
    assert code == 2 and "no room for so long a prompt" in error
    mark = "it ended early: not measured are 1 × 400, 1 × 500"
    assert "lookup" in out and mark in " ".join(out.split())
    said = json.loads(full.read_text())
    assert [cell["context"] for cell in said["cells"]] == [0]
    assert mark in said["marks"] and mark in table.read_text()


def test_a_roofline_refuses_answers_that_do_not_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slipstream.store.machine.disturbance", lambda: None)
    write_target(tmp_path / "target", max_position_embeddings=2000)
    for most, told in (("1990", "1,990"), ("100000", "100,000")):
        assert cli.main(["roofline", "--model", str(tmp_path / "target"), "--max-tokens", most]) == 2
        out, error = capsys.readouterr()
        assert out == "" and f"tokens and an answer of {told} do not fit target" in error
        assert "a question of 0 tokens" not in error


Refusal = tuple[list[str], str]
REFUSALS: dict[str, Callable[[], Refusal]] = {
    "streams": lambda: (["--streams", "1,x"], "--streams must be numbers"),
    "too many": lambda: (["--streams", "9"], "there are 8 questions"),
    "trials": lambda: (["--trials", "0"], "--trials must be at least 1"),
    "contexts": lambda: (["--contexts", "4x"], "--contexts must be tokens"),
    "modes": lambda: (["--modes", "fast"], "--modes must be of"),
    "file": lambda: (["--json", "/no/such/folder/x.json"], "cannot be written"),
}


@pytest.mark.parametrize("refusal", REFUSALS)
def test_what_cannot_be_measured_is_refused_before_a_load(refusal: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, sentence = REFUSALS[refusal]()
    assert cli.main(["benchmark", *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_a_ceiling_is_bandwidth_over_what_a_token_reads() -> None:
    curves = Curves({0: {1: 20.0}, 1000: {1: 40.0}}, {}, {}, bandwidth=100e9, weight_bytes=10**9, row_bytes=10**6)
    assert curves.ceiling_tps(0) == pytest.approx(100)
    assert curves.ceiling_tps(1000) == pytest.approx(50)
    assert Curves().ceiling_tps(0) == 0.0
    told = list(sentences(curves, [Standing("DSpark", 150.0, 100.0), Standing("plain", 50.0, 100.0)]))
    assert "100.0 GB a second" in told[0]
    assert told[2].endswith("one forward at a time makes 50.0 (50% of it).")
    assert told[3].endswith("makes 25.0 (50% of it).")
    assert told[4] == "DSpark made 150.0 tokens a second: 1.50× the ceiling of plain decoding."
    assert told[5] == "plain made 50.0 tokens a second: 50% of the ceiling of plain decoding."


def test_a_roofline_says_where_it_did_not_measure() -> None:
    curves = Curves({128: {1: 20.0}}, {}, {}, bandwidth=100e9, weight_bytes=10**9, row_bytes=10**6)
    told = list(sentences(curves, [], (128, 1024, 4096), 2000))
    assert told[-2:] == [
        "Behind 1,024 tokens nothing was measured: there was too little room or time.",
        "Behind 4,096 tokens nothing was measured: the model ends at 2,000.",
    ]
