"""settings.json: written by the app's Settings, honoured by the command line."""

from __future__ import annotations

import argparse
import json
import logging
from pathlib import Path

import pytest

from slipstream.commands.models_words import repository
from slipstream.commands.options import add_pair, add_prompt_cache, cache_limits
from slipstream.errors import InvalidRequest
from slipstream.server import commands
from slipstream.store import own_folders, preferences
from slipstream.store.paths import data_dir


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)


def write(**values: object) -> None:
    data_dir().mkdir(parents=True, exist_ok=True)
    named = {key.replace("__", "/"): value for key, value in values.items()}
    (data_dir() / preferences.FILE).write_text(json.dumps(named), "utf-8")


def serve(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    made = commands.add_parser(parser.add_subparsers(), add_pair)
    add_prompt_cache(made)
    return parser.parse_args(["serve", *words])


def test_without_a_file_the_defaults_hold() -> None:
    assert preferences.read() == preferences.Preferences()
    args = serve()
    assert (args.port, args.kv_bits) == (8765, 0)
    assert cache_limits(args).disk_bytes == 10 * 2**30


def test_what_was_chosen_in_the_app_holds_for_the_command_line() -> None:
    write(server__port=9000, performance__kv_bits="8", performance__cache_ram_gb=2, performance__cache_disk_gb=0)
    args = serve()
    assert (args.port, args.kv_bits) == (9000, 8)
    limits = cache_limits(args)
    assert (limits.ram_bytes, limits.disk_bytes) == (2 * 2**30, 0)


def test_a_model_named_without_a_publisher_comes_in_the_preferred_bits() -> None:
    assert repository("Qwen3-4B")[0] == "mlx-community/Qwen3-4B-8bit"
    write(models__bits="4-bit", models__limit_gb=60)
    assert repository("Qwen3-4B")[0] == "mlx-community/Qwen3-4B-4bit"
    assert repository("Qwen3-8B")[0] == "mlx-community/Qwen3-8B-8bit"  # there is no other
    assert preferences.read().models_limit == 60 * 10**9
    write(models__bits="5-bit", models__limit_gb="much")
    assert preferences.read() == preferences.Preferences()


def test_an_option_wins() -> None:
    write(server__port=9000, performance__kv_bits="8", performance__cache_ram_gb=2)
    args = serve("--port", "9001", "--kv-bits", "0", "--prompt-cache-ram", "1GiB")
    assert (args.port, args.kv_bits, cache_limits(args).ram_bytes) == (9001, 0, 2**30)


def test_models_are_looked_for_in_the_chosen_folder_too(tmp_path: Path) -> None:
    folder, added = tmp_path / "models", tmp_path / "added"
    for name in (folder / "one", added):
        name.mkdir(parents=True)
    own_folders.add(added)
    write(models__folder=str(folder))
    assert own_folders.listed() == [added, folder]
    own_folders.remove(added)
    assert own_folders.listed() == [folder]


@pytest.mark.parametrize(
    "values", [{"server__port": 70000}, {"server__port": "x"}, {"performance__kv_bits": 5}, {"server__port": None}]
)
def test_a_value_that_cannot_be_is_said_and_left_out(
    values: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    write(**values)
    with caplog.at_level(logging.WARNING):
        assert preferences.read() == preferences.Preferences()
    assert "the default holds" in caplog.text


@pytest.mark.parametrize("text", ["{", "[1]", "\xff"])
def test_a_damaged_file_counts_as_empty(text: str, caplog: pytest.LogCaptureFixture) -> None:
    data_dir().mkdir(parents=True)
    (data_dir() / preferences.FILE).write_bytes(text.encode("latin-1"))
    assert preferences.read() == preferences.Preferences()
    assert "defaults hold" in caplog.text


@pytest.mark.parametrize("text", ['{"server/port": Infinity}', '{"server/port": [1]}', "[" * 100_000, "{", "\udcff"])
def test_a_damaged_file_leaves_the_defaults(tmp_path: Path, text: str) -> None:
    file = tmp_path / "settings.json"
    file.write_text(text, encoding="utf-8", errors="surrogateescape")
    assert preferences.read(file) == preferences.Preferences()


def test_a_size_that_nothing_has_is_refused() -> None:
    parser = argparse.ArgumentParser()
    add_prompt_cache(parser)
    for size in ("9" * 400, "9" * 30 + "TiB"):
        with pytest.raises(InvalidRequest, match="--prompt-cache-ram"):
            cache_limits(parser.parse_args(["--prompt-cache-ram", size]))
