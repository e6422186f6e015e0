"""Folders that cannot be loaded, and what is said about them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

from slipstream.engine.load import Precision, load_drafter, load_target, precision_of, quantisation_of
from slipstream.errors import ModelIncomplete, ModelNotFound, SlipstreamError, UnsupportedModel
from slipstream.models.host import ints
from slipstream.models.tokeniser import Tokeniser
from slipstream.types import Mode
from tiny_runs import write_byte_drafter, write_target

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
    assert precision_of(target.model, folder, "float32") == "none"
    config = json.loads((folder / "config.json").read_text()) | {"quantization": {"bits": 4, "group_size": 32}}
    (folder / "config.json").write_text(json.dumps(config))  # as of a model that was unpacked for a CPU
    assert precision_of(target.model, folder, "float32") == "4-bit group 32, computed in float32"


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


def split(folder: Path, *, index: bool, shards: int = 3) -> None:
    """As Hugging Face shards a checkpoint, with or without the list of what is where."""
    whole = mx.load(str(folder / "model.safetensors"))
    assert isinstance(whole, dict)
    names = sorted(whole)
    where: dict[str, str] = {}
    for number in range(shards):
        file = f"model-{number + 1:05}-of-{shards:05}.safetensors"
        part = {name: whole[name] for name in names[number::shards]}
        mx.save_safetensors(str(folder / file), part)
        where |= dict.fromkeys(part, file)
    (folder / "model.safetensors").unlink()
    if index:
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))


@pytest.mark.parametrize("index", [True, False])
def test_shards_are_one_model_and_one_drafter(index: bool, folder: Path, tmp_path: Path) -> None:
    tokens = mx.array([5, 9, 33, 71])
    logits: list[mx.array] = []
    drafts: list[list[int]] = []
    made = write_byte_drafter(tmp_path / "drafter", Mode.DSPARK, own_tables=True)
    for is_split in (False, True):
        if is_split:
            split(folder, index=index)
            split(made, index=index)
        onto = load_target(folder, Precision())
        forward = onto.forward(tokens, onto.make_cache(), (0, 1, 2), rows=4)
        assert forward.logits is not None
        logits.append(forward.logits)
        drafter = load_drafter(made, onto, Precision(drafter_bits=0))
        state = drafter.begin()
        drafter.observe(state, ints(tokens), forward.taps)
        drafts.append(ints(drafter.propose(state, 7, 7, lambda rows, _: mx.argmax(rows, axis=-1)).tokens))
    assert mx.array_equal(logits[0], logits[1])
    assert drafts[0] == drafts[1]
    # One that is missing is named where the index knows of it, and otherwise by what it held.
    (folder / "model-00002-of-00003.safetensors").unlink()
    with pytest.raises(ModelIncomplete, match="lacks 1 of 3 weight files" if index else "do not belong together"):
        load_target(folder, Precision())
    (made / "model-00002-of-00003.safetensors").unlink()
    with pytest.raises(ModelIncomplete, match="lacks"):
        load_drafter(made, onto, Precision())
