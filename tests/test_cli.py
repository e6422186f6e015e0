"""The command line on tiny model folders: exit codes, sentences, and the objects it prints."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import mlx.core as mx  # before the command line can load another BLAS into this process
import pytest

from slipstream import cli
from slipstream.commands.options import add_batch, add_pair, add_sampling, open_pair, options
from slipstream.commands.output import check_file, console, write_file
from slipstream.commands.race import chosen_words
from slipstream.errors import InvalidRequest
from slipstream.store.reuse import CacheDesk
from slipstream.types import CacheLimits, Mode
from tiny_runs import chain_of, write_byte_drafter, write_target

ABC = "abcdefghij"
COMMAND = (sys.executable, "-m", "slipstream")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("cli")
    write_target(root / "alphabet", links=chain_of(*ABC.encode(), ord("a")), max_position_embeddings=4000)
    write_target(root / "random")
    write_byte_drafter(root / "dspark", Mode.DSPARK)
    write_byte_drafter(root / "dflash", Mode.DFLASH)
    assert mx.default_device() is not None
    return root


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], root: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """In this process: exit code, stdout, stderr. Model and drafter names are folders under `root`."""
    monkeypatch.chdir(root)

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        others = threading.active_count()
        try:
            code = cli.main(list(arguments))
        except SystemExit as error:
            code = int(error.code or 0)
        out, err = capsys.readouterr()
        assert threading.active_count() <= others, "the engine's thread is left over"
        return code, out, err

    return run


def generate(run: Run, *arguments: str) -> dict[str, Any]:
    code, out, _ = run("generate", "--json", *arguments)
    assert code == 0
    return json.loads(out)


ALPHABET = ("--model", "./alphabet", "--raw-prompt", "--prompt", ABC)


def test_generate_streams_the_text_and_closes_with_a_line(run: Run) -> None:
    code, out, err = run("generate", *ALPHABET, "--max-tokens", "25")
    assert (code, out) == (0, (ABC * 3)[:25])
    for part in ("25 tokens", "tok/s", "prefill", "tokens per round", "lookup"):
        assert part in err


def test_the_json_object_has_every_key(run: Run) -> None:
    arguments = (
        "--drafter",
        "./dspark",
        "--mode",
        "dspark",
        "--max-tokens",
        "12",
        "--temperature",
        "0.5",
        "--seed",
        "7",
    )
    result = generate(run, *ALPHABET, *arguments)
    assert list(result) == [
        *(
            "text",
            "prompt_ids",
            "token_ids",
            "finish_reason",
            "rounds",
            "tokens_per_round",
            "decode_tps",
            "prefill_tps",
        ),
        *("ttft_s", "mode", "model", "drafter", "options", "seed", "versions"),
    ]
    assert list(result["rounds"][0]) == ["position", "source", "drafted", "accepted", "confidence"]
    assert len(result["token_ids"]) == 12
    assert result["prompt_ids"] == list(ABC.encode())
    assert (result["mode"], result["drafter"], result["seed"]) == ("dspark", "dspark", 7)
    assert result["finish_reason"] == "length"
    assert result["model"]["name"] == "alphabet"
    assert {round_["source"] for round_ in result["rounds"]} <= {"dspark", "plain"}


def test_modes_say_the_same(run: Run) -> None:
    arguments = ("--model", "./random", "--drafter", "./dspark", "--drafter", "./dflash", "--prompt", "hello")
    options = ("--max-tokens", "16", "--temperature", "0.9", "--seed", "5", "--ignore-eos")
    said = {
        mode: generate(run, *arguments, *options, "--mode", mode)["token_ids"]
        for mode in ("baseline", "dspark", "dflash", "lookup", "auto")
    }
    assert all(ids == said["baseline"] for ids in said.values())


@pytest.fixture(scope="module")
def result(root: Path) -> Path:
    """A result of `generate --json`, on disk."""
    path = root / "result.json"
    if not path.exists():
        model = ("--model", str(root / "alphabet"), *ALPHABET[2:])
        with path.open("w") as file, redirect_stdout(file):
            code = cli.main(["generate", *model, "--json", "--max-tokens", "15", "--temperature", "0.4", "--seed", "3"])
        assert code == 0
    return path


def changed(result: Path, change: Callable[[dict[str, Any]], object]) -> str:
    values = json.loads(result.read_text())
    change(values)
    path = result.with_name("changed.json")
    path.write_text(json.dumps(values))
    return str(path)


def test_verify_says_identical(run: Run, result: Path) -> None:
    code, out, _ = run("verify", str(result), "--model", "./alphabet")
    assert code == 0
    assert out.startswith("Identical: all 15 tokens")


def test_verify_finds_a_changed_id(run: Run, result: Path) -> None:
    path = changed(result, lambda values: values["token_ids"].__setitem__(6, 98))
    code, out, _ = run("verify", path, "--model", "./alphabet")
    assert code == 1
    assert out.startswith("Different at token 6")


def test_verify_finds_a_token_too_many(run: Run, result: Path) -> None:
    def end_early(values: dict[str, Any]) -> None:
        values["options"]["stop_ids"] = [ord("e")]

    code, out, _ = run("verify", changed(result, end_early), "--model", "./alphabet")
    assert code == 1
    assert "one answer ends there" in out


def test_verify_finds_tokens_that_are_missing_unless_the_answer_was_stopped(run: Run, result: Path) -> None:
    def cut(values: dict[str, Any]) -> None:
        del values["token_ids"][-4:]

    code, out, _ = run("verify", changed(result, cut), "--model", "./alphabet")
    assert code == 1 and out.startswith("Different at token 11") and "one answer ends there" in out
    stopped = changed(result, lambda values: (cut(values), values.update(finish_reason="cancelled")))
    code, out, _ = run("verify", stopped, "--model", "./alphabet")
    assert code == 0 and out.startswith("Identical: all 11 tokens")


BAD_RESULTS: dict[str, Callable[[dict[str, Any]], object]] = {
    "no ids": lambda values: values.pop("token_ids"),
    "ids that are words": lambda values: values.update(token_ids=["a", "b"]),
    "a prompt of words": lambda values: values.update(prompt_ids=["a"]),
    "a prompt that is a number": lambda values: values.update(prompt_ids=5),
    "a prompt outside the vocabulary": lambda values: values.update(prompt_ids=[10**12]),
    "a model that is a word": lambda values: values.update(model="alphabet"),
    "options that are a list": lambda values: values.update(options=[]),
    "an unknown option": lambda values: values["options"].update(speed=11),
    "an option that is no number": lambda values: values["options"].update(temperature="hot"),
    "an option that is NaN": lambda values: values["options"].update(top_p=float("nan")),
    "stop strings that are numbers": lambda values: values["options"].update(stop=[1]),
    "another model's": lambda values: values["model"].update(name="other"),
}


@pytest.mark.parametrize("change", BAD_RESULTS.values(), ids=BAD_RESULTS)
def test_verify_refuses_what_is_no_result(change: Callable[[dict[str, Any]], object], run: Run, result: Path) -> None:
    refused(*run("verify", changed(result, change), "--model", "./alphabet"))


@pytest.mark.parametrize("text", ["", "[]", "{", '"x"', "\xff", "[" * 100_000], ids=range(6))
def test_verify_refuses_other_files(text: str, run: Run, root: Path) -> None:
    (root / "other.json").write_bytes(text.encode("latin-1"))
    refused(*run("verify", "other.json", "--model", "./alphabet"))
    refused(*run("verify", "not there.json", "--model", "./alphabet"))


def refused(code: int, out: str, err: str, words: str = "") -> None:
    """Exit code 2 and one sentence, never a traceback."""
    assert code == 2, err
    assert out == ""
    assert "Traceback" not in err
    assert err.startswith("slipstream: ")
    assert err.count("\n") == 1, err
    assert words in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--model", "./nowhere"), "no model at ./nowhere"),
        (("--model", "nobody/nothing"), "not on this machine"),
        (("--drafter", "./nowhere"), "no model at ./nowhere"),
        (("--mode", "dspark"), "no dspark drafter is loaded"),
        (("--model", ""), "the name of a model or drafter is empty"),
        (("--model", "~nobody-at-all/model"), "no model at ~nobody-at-all/model"),
        (("--model", "x" * 5000), "cannot be looked at"),
        (("--model", "./dspark"), "is a drafter; give it with --drafter"),
        (("--drafter", "./dspark", "--drafter", "./dspark"), "two of the drafters are of one kind (dspark"),
        (("--prompt", "\udcff"), "the prompt is no valid text; send it as UTF-8"),
        (("--prompt", "  "), "the prompt is empty"),
        (("--prompt", "x" * 4001), "prompt is too long: 4001 tokens > 4000 maximum"),
        (("--temperature", "nan"), "--temperature must be a number from 0 to 100"),
        (("--temperature", "-1"), "--temperature must be"),
        (("--top-p", "1.5"), "--top-p must be"),
        (("--min-p", "nan"), "--min-p must be"),
        (("--repetition-penalty", "0"), "--repetition-penalty must be"),
        (("--presence-penalty", "inf"), "--presence-penalty must be"),
        (("--top-k", "-1"), "--top-k must be"),
        (("--max-tokens", "0"), "--max-tokens must be from 1 to 2**31"),
        (("--max-tokens", "9" * 30), "--max-tokens must be from 1 to 2**31"),
        (("--max-draft", "-1"), "--max-draft must be auto or a whole number from 0 to 64"),
        (("--max-draft", "many"), "--max-draft must be auto"),
        (("--seed", "-1"), "--seed must be"),
        (("--logprobs", "21"), "--logprobs must be"),
        (("--logit-bias", "a=b"), "--logit-bias must be ID=BIAS"),
        (("--logit-bias", "5=nan"), "finite"),
        (("--logit-bias", "5=1", "--logit-bias", "5=2"), "--logit-bias names token 5 twice"),
        (("--logit-bias=-5=1",), "--logit-bias must be"),
        (("--logit-bias", "100000=1"), "logit_bias names token 100000"),
        (("--stop", ""), "--stop must be made of non-empty strings"),
        (("--stop-id", "-4"), "--stop-id must be made of token ids"),
    ],
)
def test_bad_input_is_one_sentence(arguments: tuple[str, ...], words: str, run: Run) -> None:
    refused(*run("generate", *ALPHABET, *arguments), words)


def test_bad_choices_are_told_by_the_parser(run: Run) -> None:
    for option, value in (("--mode", "magic"), ("--kv-bits", "3"), ("--max-tokens", "ten"), ("--dtype", "int8")):
        code, out, err = run("generate", *ALPHABET, option, value)
        assert (code, out) == (2, "")
        assert f"{option} must be " in err
    assert run("generate")[0] == 2


def test_a_broken_model_folder_is_one_sentence(run: Run, root: Path) -> None:
    broken = write_target(root / "broken")
    data = (broken / "model.safetensors").read_bytes()
    (broken / "model.safetensors").write_bytes(data[:-1])
    refused(*run("generate", "--model", "./broken", "--prompt", "x"), "is cut short")
    (broken / "config.json").write_text("[]")
    refused(*run("generate", "--model", "./broken", "--prompt", "x"), "config.json")
    (broken / "config.json").write_text("[" * 100_000)
    refused(*run("generate", "--model", "./broken", "--prompt", "x"), "is damaged (maximum recursion")


def test_a_pair_that_is_refused_leaves_no_engine_open(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    parser, desk = argparse.ArgumentParser(), CacheDesk()
    add_pair(parser)
    add_batch(parser)
    args = parser.parse_args(["--model", "./random", "--drafter", "./dspark", "--drafter", "./dspark"])
    limits = CacheLimits(2**20, 2**20, str(tmp_path))

    def work() -> None:
        with pytest.raises(InvalidRequest, match="two of the drafters are of one kind"):
            open_pair(args, (Mode.DSPARK,), limits, desk)

    with ThreadPoolExecutor(1) as thread:  # an engine ends its thread's streams
        thread.submit(work).result()
    assert desk.status is None


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "no tokenizer": (lambda folder: [file.unlink() for file in folder.glob("token*")], "tokenizer files are missing"),
    "weights that are a folder": (lambda folder: as_folder(folder / "model.safetensors"), "cannot be read (Is a"),
    "heads that are words": (lambda folder: configured(folder, num_attention_heads="many"), "config.json"),
    "an unknown architecture": (
        lambda folder: configured(folder, model_type="warp9"),
        "Model type warp9 not supported;",
    ),
    "a context of words": (lambda folder: configured(folder, max_position_embeddings="many"), "'many', which no model"),
    "no context": (lambda folder: configured(folder, max_position_embeddings=-5), "-5, which no model"),
}


def as_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def configured(folder: Path, **settings: object) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))


@pytest.mark.parametrize(("damage", "words"), BROKEN.values(), ids=BROKEN)
def test_what_a_library_says_of_a_broken_model_is_part_of_one_sentence(
    damage: Callable[[Path], object], words: str, run: Run, root: Path
) -> None:
    shutil.rmtree(root / "broken", ignore_errors=True)
    damage(shutil.copytree(root / "alphabet", root / "broken"))
    refused(*run("generate", "--model", "./broken", "--raw-prompt", "--prompt", "x"), words)


def test_a_prompt_file(run: Run, root: Path) -> None:
    (root / "prompt.txt").write_text(ABC)
    arguments = ("generate", "--model", "./alphabet", "--raw-prompt", "--max-tokens", "3", "--prompt-file")
    assert run(*arguments, "prompt.txt")[:2] == (0, "abc")
    (root / "binary").write_bytes(b"\xff\xfe\x00")
    for name, sentence in (("binary", "no text in UTF-8"), ("nothing.txt", "cannot be read"), (".", "cannot be read")):
        refused(*run(*arguments, name), sentence)


@pytest.mark.parametrize("suffix", ["json", "md"])
def test_race_on_a_tiny_model(suffix: str, run: Run, root: Path) -> None:
    arguments = ("race", *ALPHABET, "--arms", "lookup,dflash", "--drafter", "./dflash", "--trials", "2")
    code, out, _ = run(*arguments, "--max-tokens", "12", "--report", f"report.{suffix}")
    assert code == 0
    assert "Identical: every arm said the same" in " ".join(out.split())
    report = (root / f"report.{suffix}").read_text()
    if suffix == "json":
        values = json.loads(report)
        assert values["verdict"] == "identical"
        assert [arm["mode"] for arm in values["arms"]] == ["baseline", "lookup", "dflash"]
        assert values["arms"][1]["speedup"]["median"] > 0
    else:
        assert "| plain |" in report
        assert "Identical" in report


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--arms", "warp"), "--arms must be of"),
        (("--trials", "0"), "--trials must be at least 1"),
        (("--report", "report.docx"), "--report must end in"),
        (("--report", "no such folder/report.json"), "a folder that exists"),
        (("--acceptance", "rejection"), "use match"),
        (("--report", "alphabet"), "--report must end in"),
        (("--prompt", " "), "the prompt is empty"),
        (("--arms", "dspark"), "no dspark drafter is loaded (loaded: none); give one with --drafter, or other --arms"),
    ],
)
def test_race_refuses_before_anything_runs(arguments: tuple[str, ...], words: str, run: Run) -> None:
    code, out, err = run("race", *ALPHABET, *arguments)
    assert code == 2
    assert "trial 1" not in out
    assert words in err
    assert err.count("\n") == 1


def test_version_and_help(run: Run) -> None:
    code, out, _ = run("--version")
    assert code == 0
    assert "slipstream " in out
    assert "mlx-lm " in out
    code, out, _ = run()
    assert code == 0
    assert "generate" in out


@pytest.mark.parametrize(
    "command",
    ["generate", "race", "serve", "models", "train", "calibrate", "benchmark", "roofline", "verify", "claude"],
)
def test_help_says_what_a_command_does_within_80_columns(
    command: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run(command, "--help")
    usage, said, *_ = out.split("\n\n")
    assert code == 0 and usage.startswith(f"usage: slipstream {command}")
    assert said[0].isupper() and said.endswith(".")
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(("sampling", "said"), [((), "greedy, 64 tokens"), (("--temperature", "0.7"), "seed ")])
def test_a_race_names_the_seed_that_it_ran_with(sampling: tuple[str, ...], said: str) -> None:
    parser = argparse.ArgumentParser()
    add_sampling(parser, max_tokens=64)
    chosen = options(parser.parse_args(sampling))
    words = chosen_words(chosen, 3)
    assert said in words and words.endswith("64 tokens, 3 trials") and "None" not in words
    assert not sampling or f"temperature 0.7, seed {chosen.seed}, " in words


def test_what_goes_to_a_program_is_not_folded(capsys: pytest.CaptureFixture[str]) -> None:
    console().print("a word " * 30)
    console(stderr=True).print("a word " * 30)
    out, err = capsys.readouterr()
    assert out.count("\n") == err.count("\n") == 1


def process(root: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )


def test_a_real_process_refuses_in_one_sentence(root: Path) -> None:
    running = process(root, "generate", "--model", "./alphabet", "--drafter", "./alphabet", "--prompt", "x")
    out, err = running.communicate(timeout=120)
    refused(running.returncode, out, err, "alphabet has no MTP heads")


def test_ctrl_c_prints_what_was_made_and_exits_130(root: Path) -> None:
    running = process(root, "generate", *ALPHABET, "--mode", "baseline", "--max-tokens", "3900")
    assert running.stdout is not None
    begin = running.stdout.read(30)
    assert begin == (ABC * 3)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert (begin + out).startswith(ABC * 3)
    assert len(begin + out) < 3900
    assert "Traceback" not in err
    assert "tokens per round" in err


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is always a display to ask")
@pytest.mark.parametrize("display", [None, ":77"])
def test_a_window_that_cannot_open_says_so_and_what_works_instead(display: str | None, tmp_path: Path) -> None:
    """Without a display, and with one that nobody answers at."""
    gone = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    env = {key: value for key, value in os.environ.items() if key not in gone} | {"HOME": str(tmp_path)}
    env |= {} if display is None else {"DISPLAY": display}
    command = (sys.executable, "-m", "slipstream_app")
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr.strip().endswith("uv run slipstream race")
    assert display is not None or "There is no display to open a window on." in done.stderr


@pytest.mark.parametrize("entry", ["slipstream", "slipstream_app.command"])
def test_ctrl_c_while_starting_ends_without_a_traceback(entry: str) -> None:
    """Stopped at moments spread over the start-up; Python's own, before any code of ours, is left out."""
    program = (
        f"from {'slipstream.__main__' if entry == 'slipstream' else entry} import main\n"
        "import sys, os, signal, threading, time\n"
        "delay = float(sys.argv.pop())\n"
        "def stop():\n"
        "    time.sleep(delay)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "threading.Thread(target=stop, daemon=True).start()\n"
        "sys.argv[1:] = ['agents', 'pi', 'show', '--url', 'http://127.0.0.1:9']\n"
        "sys.exit(main())\n"
    )
    for delay in ("0.05", "0.2", "0.6"):
        done = subprocess.run(
            [sys.executable, "-c", program, delay], capture_output=True, text=True, timeout=60, check=False
        )
        assert "Traceback" not in done.stderr, (delay, done.stderr)
        assert done.returncode in (-signal.SIGINT, 130, 0, 1), delay


@pytest.mark.parametrize(
    "encoding", ["ascii", *(pytest.param(name, marks=pytest.mark.slow) for name in ("latin-1", "utf-8"))]
)
def test_a_terminal_of_few_characters_gets_escapes_and_whole_json(root: Path, encoding: str) -> None:
    env = os.environ | {"PYTHONIOENCODING": encoding}
    for arguments in (("--help",), ("generate", "--help"), ("--version",)):
        done = subprocess.run([*COMMAND, *arguments], capture_output=True, env=env, timeout=120, check=False)
        assert done.returncode == 0 and b"Traceback" not in done.stderr, done.stderr
    missing = subprocess.run(
        [*COMMAND, "generate", "--model", "./gibt-es-nicht-ä€🦙", "--prompt", "x"],
        capture_output=True, env=env, cwd=root, timeout=120, check=False,
    )  # fmt: skip
    assert missing.returncode == 2 and b"Traceback" not in missing.stderr
    prompt = ("generate", "--json", "--raw-prompt", "--prompt", "ä€🦙", "--model", "./random")
    asked = subprocess.run(
        [*COMMAND, *prompt, "--max-tokens", "20", "--temperature", "2", "--seed", "3"],
        capture_output=True, env=env, cwd=root, timeout=120, check=False,
    )  # fmt: skip
    assert asked.returncode == 0, asked.stderr
    assert any(ord(character) > 127 for character in json.loads(asked.stdout.decode(encoding))["text"])


@pytest.mark.slow
def test_ctrl_c_with_json_prints_the_object(root: Path) -> None:
    running = process(root, "generate", *ALPHABET, "--json", "--mode", "baseline", "--max-tokens", "3900")
    assert running.stdout is not None
    with pytest.raises(subprocess.TimeoutExpired):
        running.wait(timeout=7)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    if out:  # interrupted while loading there is nothing to print
        assert json.loads(out)["finish_reason"] == "cancelled"


def test_calibrate_measures_once_and_shows_it_again(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("slipstream.engine.calibrate.REPEATS", 1)
    monkeypatch.setattr("slipstream.store.machine.disturbance", lambda: "busy (load 9.0)")
    model = ("--model", "./random", "--drafter", "./dspark")
    code, _, error = run("calibrate", *model)
    assert code == 2
    assert "busy (load 9.0)" in error
    assert "--force" in error
    nothing = "nothing was measured on this machine; run: slipstream calibrate\n"
    assert run("calibrate", *model, "--show", "--json") == (1, "", nothing)
    code, out, _ = run("calibrate", *model, "--force", "--json")
    assert code == 0
    measured = json.loads(out)
    assert measured.pop("measured_in_s") > 0
    assert measured.pop("disturbed_by") == "busy (load 9.0)"
    assert measured["target"]["128"]["1"] > 0
    assert measured["drafters"]["dspark"]["128"]["7"] > 0
    code, out, _ = run("calibrate", *model, "--show", "--json")
    assert code == 0
    shown = json.loads(out)
    assert {**shown, "at_s": 0} == {**measured, "at_s": 0}
    out = run("calibrate", *model, "--show")[1]
    assert "DSpark drafts" in out and "Unsure" not in out
    said = run("calibrate", *model, "--force")[1]
    assert "Unsure: this machine was busy (load 9.0), so these figures replace none" in said


def test_what_cannot_be_written_is_one_sentence(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    code, _, error = run("models", "folders", "--add", str(tmp_path))
    assert code == 2
    assert error.startswith(f"slipstream: {tmp_path}/file/slipstream: ")
    assert error.endswith("make room, or make it writable\n")


def test_a_report_is_refused_before_the_work_for_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for given in (tmp_path, tmp_path / "none" / "report.md", tmp_path / "file" / "report.md"):
        with pytest.raises(InvalidRequest, match=r"--report cannot be written to .*; give a file in a folder"):
            check_file("--report", given)
    check_file("--report", tmp_path / "new.md")
    check_file("--report", tmp_path / "file")
    check_file("--report", Path(os.devnull))


def test_a_report_that_cannot_be_written_leaves_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report, link = tmp_path / "report.md", tmp_path / "link.md"
    link.symlink_to(report)
    write_file(link, "nothing yet")
    report.chmod(0o600)
    write_file(link, "one")
    assert (report.read_text(), link.is_symlink()) == ("one", True)
    assert report.stat().st_mode & 0o777 == 0o600

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InvalidRequest, match=r"cannot be written \(No space left on device\); give another file"):
        write_file(report, "two")
    assert report.read_text() == "one"
    assert sorted(tmp_path.iterdir()) == [link, report]
    write_file(Path(os.devnull), "a device stays one")
    assert not Path(os.devnull).is_file()


def test_a_reader_that_has_gone_ends_the_command_as_a_pipe_does(root: Path) -> None:
    running = process(root, "generate", *ALPHABET, "--mode", "baseline", "--max-tokens", "3900")
    assert running.stdout is not None and running.stderr is not None
    assert running.stdout.read(5) == ABC[:5]
    running.stdout.close()
    assert running.wait(timeout=60) == 128 + signal.SIGPIPE, "1 would say that two runs differ"
    assert running.stderr.read() == ""
    running.stderr.close()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--rate", "inf"), "--rate must be 0 or more, not inf"),
        (("--minutes", "nan"), "--minutes must be more than 0"),
        (("--seed", "-1"), "--seed must be from 0 to 4294967295"),
        (("--output", "alphabet/model.safetensors/new"), "cannot be made in"),
        (("--prompts", "nowhere"), "nowhere cannot be read (No such file or directory)"),
    ],
)
def test_train_refuses(arguments: tuple[str, ...], words: str, run: Run, tmp_path: Path) -> None:
    basics = ("--model", "./alphabet", "--anyway", "--steps", "1", "--conversations", "1", "--work", str(tmp_path))
    code, _, err = run("train", *basics, *arguments)
    assert code == 2
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_full_disk_behind_the_output_is_one_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "slipstream", "models", "folders", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.returncode == 2
    assert ended.stderr == "slipstream: the output: No space left on device; make room, or make it writable\n"


def test_roofline_of_a_busy_machine_is_marked(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("slipstream.engine.calibrate.REPEATS", 1)
    monkeypatch.setattr("slipstream.store.machine.disturbance", lambda: "busy (load 9.0)")
    model = ("--model", "./random", "--max-tokens", "2")
    code, _, error = run("roofline", *model)
    assert code == 2 and "with --force" in error
    code, out, _ = run("roofline", *model, "--force")
    assert code == 0 and "GB a second" in out
    assert out.endswith(
        "Unsure: this machine was busy (load 9.0) while it was measured, so all of these may be too low.\n"
    )
