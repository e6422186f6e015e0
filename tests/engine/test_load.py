"""Folders that cannot be loaded, and what is said about them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

from slipstream.engine.load import Precision, load_target, quantisation_of
from slipstream.errors import ModelIncomplete, ModelNotFound, SlipstreamError, UnsupportedModel
from slipstream.models.tokeniser import Tokeniser
from tiny_runs import write_target

Damage = Callable[[Path], object]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_target(tmp_path_factory.mktemp("good"))


@pytest.fixture
def folder(good: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(good, tmp_path / "model"))


def config(**changes: Any) -> Damage:
    def damage(folder: Path) -> None:
        path = folder / "config.json"
        values = json.loads(path.read_text()) | changes
        path.write_text(json.dumps({key: value for key, value in values.items() if value is not None}))

    return damage


def write(name: str, text: str) -> Damage:
    return lambda folder: (folder / name).write_text(text)


def index(*names: str) -> Damage:
    return write("model.safetensors.index.json", json.dumps({"weight_map": {f"w{n}": x for n, x in enumerate(names)}}))


def cut(name: str, size: int) -> Damage:
    def damage(folder: Path) -> None:
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[:size] if size >= 0 else data[: len(data) + size])

    return damage


def remove(name: str) -> Damage:
    return lambda folder: (folder / name).unlink()


def test_a_whole_folder_loads(folder: Path) -> None:
    target = load_target(folder, Precision())
    assert (target.vocabulary, target.hidden_size, target.layer_count) == (260, 64, 4)
    assert quantisation_of(target.model) == "none"


def test_no_folder_at_all(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match=r"no model at .*nowhere; check the path"):
        load_target(tmp_path / "nowhere", Precision())


@pytest.mark.parametrize(
    ("damage", "error", "words"),
    [
        (remove("config.json"), ModelIncomplete, "has no config.json"),
        (write("config.json", "{half"), ModelIncomplete, "download the model again"),
        (write("config.json", "[]"), ModelIncomplete, "config.json"),
        (remove("model.safetensors"), ModelIncomplete, "finish the download"),
        (index("model.safetensors", "model-00002-of-00002.safetensors"), ModelIncomplete, "lacks 1 of 2 weight files"),
        (write("model.safetensors.index.json", "[]"), ModelIncomplete, "download the model again"),
        (write("model.safetensors.index.json", '{"weight_map": 3}'), ModelIncomplete, "download the model again"),
        (cut("model.safetensors", 0), ModelIncomplete, "is cut short"),
        (cut("model.safetensors", 5), ModelIncomplete, "is cut short"),
        (cut("model.safetensors", 300), ModelIncomplete, "is cut short"),
        (cut("model.safetensors", -1), ModelIncomplete, "is cut short"),
        (write("model.safetensors", "<html>404, but with a 200</html>"), ModelIncomplete, "cut short"),
        (config(model_type="brainwave"), UnsupportedModel, "brainwave"),
        (config(model_type=None), UnsupportedModel, "model_type"),
        (config(model_file="evil.py"), UnsupportedModel, "a Python program of its own"),
        (config(hidden_size=None), UnsupportedModel, "hidden_size"),
        (config(hidden_size="wide"), UnsupportedModel, "config.json"),
        (config(num_hidden_layers=5), ModelIncomplete, "do not belong together"),
        (config(num_hidden_layers=3), ModelIncomplete, "do not belong together"),
        (config(hidden_size=128), ModelIncomplete, "do not belong together"),
        (config(rope_scaling={"rope_type": "spiral", "factor": 2}), UnsupportedModel, "RoPE"),
    ],
)
def test_a_bad_folder_is_one_sentence(damage: Damage, error: type[SlipstreamError], words: str, folder: Path) -> None:
    damage(folder)
    with pytest.raises(error, match=words) as caught:
        load_target(folder, Precision())
    assert "\n" not in caught.value.message


def test_custom_code_is_never_run(folder: Path) -> None:
    (folder / "evil.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\n")
    config(model_file="evil.py", auto_map={"AutoModel": "evil.Model"})(folder)
    with pytest.raises(UnsupportedModel):
        load_target(folder, Precision())
    assert not (folder / "ran").exists()


def test_weights_that_are_no_numbers_are_refused(folder: Path) -> None:
    weights = mx.load(str(folder / "model.safetensors"))
    assert isinstance(weights, dict)
    weights["model.layers.0.self_attn.q_proj.weight"] *= mx.nan
    mx.eval(weights)
    mx.save_safetensors(str(folder / "model.safetensors"), weights)
    with pytest.raises(UnsupportedModel, match="the model gives no numbers"):
        load_target(folder, Precision())


@pytest.mark.parametrize("damage", [remove("tokenizer.json"), write("tokenizer.json", "{")])
def test_a_tokenizer_that_cannot_be_read(damage: Damage, folder: Path) -> None:
    damage(folder)
    (folder / "tokenizer_config.json").unlink(missing_ok=True)
    with pytest.raises(ModelIncomplete, match="tokenizer files are missing or damaged"):
        Tokeniser(folder)


@pytest.mark.parametrize("text", ["[1, 2]", '{"eos_token_id": "end"}', '{"eos_token_id": [1, null]}', "{"])
def test_an_unreadable_generation_config_is_one_sentence(text: str, folder: Path) -> None:
    (folder / "generation_config.json").write_text(text)
    with pytest.raises(ModelIncomplete, match=r"generation_config.json"):
        Tokeniser(folder)
