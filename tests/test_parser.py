"""What the command line refuses: one sentence that names the word and the one that was meant."""

from __future__ import annotations

import pytest

from slipstream import cli


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("serv", "slipstream: there is no 'serv' here (did you mean serve?)"),
        ("models serch x", "slipstream models: there is no 'serch' here (did you mean search?)"),
        ("models", "slipstream models: ACTION is missing: one of list, search, pull"),
        ("agents claude-cod show", "slipstream agents: there is no 'claude-cod' here (did you mean claude-code?)"),
        ("generate --promt Hi", "slipstream generate: there is no option --promt (did you mean --prompt?)"),
        ("race --trails=3", "slipstream race: there is no option --trails (did you mean --trials?)"),
        ("generate --prompt Hi --max-tokens x", "slipstream generate: --max-tokens must be a whole number, not 'x'"),
        ("generate --prompt Hi --mode dspak", "baseline, not 'dspak' (did you mean dspark?)"),
        ("generate --prompt Hi there", "what is there for?"),
        ("generate --prompt", "slipstream generate: --prompt needs a value"),
        ("generate", "one of --prompt --prompt-file is required"),
        ("serve --keep-alive x", "slipstream serve: --keep-alive must be a time such as 300, 5m or 1h, or forever"),
    ],
)
def test_what_is_misspelt_is_named(line: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(line.split())
    out, err = capsys.readouterr()
    assert ended.value.code == 2 and not out
    assert sentence in err and err.count("\n") == 1 and err.endswith(" --help\n")


@pytest.mark.parametrize("line", ["help", "help race"])
def test_help_is_a_command_too(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(line.split())
    assert ended.value.code == 0 and capsys.readouterr().out.startswith("usage: slipstream")


def test_a_beginning_of_an_option_and_values_with_dashes_are_none_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["generate", "--prompt", "--a list of --dashes", "--max-tok", "3", "--model", "./nowhere"]) == 2
    assert "no model at ./nowhere" in capsys.readouterr().err
