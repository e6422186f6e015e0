"""Drafter folders that cannot be read or belong to another target, and what is said about them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

import tiny
from slipstream.drafters import formats
from slipstream.errors import ModelIncomplete, ModelNotFound, PairMismatch, SlipstreamError, UnsupportedModel
from slipstream.types import Mode

Damage = Callable[[Path], object]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("drafters")
    tiny.write_drafter(root / "dspark", Mode.DSPARK)
    tiny.write_drafter(root / "dflash", Mode.DFLASH)
    return root


@pytest.fixture(params=["dspark", "dflash"])
def folder(request: pytest.FixtureRequest, made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made / request.param, tmp_path / request.param))


def config(**changes: Any) -> Damage:
    """Change entries; None takes one away. Entries of dflash_config too, where it has one."""

    def damage(folder: Path) -> None:
        path = folder / "config.json"
        values: dict[str, Any] = json.loads(path.read_text())
        for part in (values, values.get("dflash_config", {})):
            for key, value in changes.items():
                if key in part or part is values:
                    part[key] = value
            for key in [key for key, value in part.items() if value is None]:
                del part[key]
        path.write_text(json.dumps(values))

    return damage


def tensors(change: Callable[[dict[str, mx.array]], object]) -> Damage:
    def damage(folder: Path) -> None:
        weights = mx.load(str(folder / "model.safetensors"))
        assert isinstance(weights, dict)
        mx.eval(weights)
        change(weights)
        mx.save_safetensors(str(folder / "model.safetensors"), weights)

    return damage


def write(name: str, text: str) -> Damage:
    return lambda folder: (folder / name).write_text(text)


def both(*damages: Damage) -> Damage:
    return lambda folder: [damage(folder) for damage in damages]


def packed(folder: Path) -> None:
    def pack(weights: dict[str, mx.array]) -> None:
        weight, scales, biases = mx.quantize(weights["fc.weight"], group_size=32, bits=4)
        weights |= {"fc.weight": weight, "fc.scales": scales, "fc.biases": biases}
        mx.eval(weights)

    tensors(pack)(folder)


def cut(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


@pytest.mark.parametrize(
    ("damage", "error", "words"),
    [
        (lambda folder: (folder / "config.json").unlink(), ModelIncomplete, "has no config.json"),
        (lambda folder: (folder / "model.safetensors").unlink(), ModelIncomplete, "has no .safetensors file"),
        (write("config.json", "{"), ModelIncomplete, "not valid JSON"),
        (write("config.json", "[]"), ModelIncomplete, "JSON"),
        (cut, ModelIncomplete, "half downloaded"),
        (write("model.safetensors", "x"), ModelIncomplete, "half downloaded"),
        (config(hidden_size=None), UnsupportedModel, r"misstates something \('hidden_size'\)"),
        (config(hidden_size="wide"), UnsupportedModel, "misstates"),
        (config(hidden_size=32), PairMismatch, r"is \[.*64.*\], but its config says \[.*32"),
        (config(mask_token_id=None), UnsupportedModel, "misstates"),
        (config(num_attention_heads=0, head_dim=None), UnsupportedModel, "misstates"),
        (config(num_hidden_layers=3), ModelIncomplete, "lacks 11 tensors .layers.2"),
        (config(num_hidden_layers=1), UnsupportedModel, "has tensors this format does not"),
        (config(rope_parameters=[1]), UnsupportedModel, "misstates"),
        (config(target_layer_ids=[]), UnsupportedModel, "target_layer_ids"),
        (config(target_layer_ids=["a"]), UnsupportedModel, "misstates"),
        (config(target_layer_ids=[0, 1, 2, 3, 3]), PairMismatch, "does not fit 5 taps"),
        (config(block_size=0), UnsupportedModel, "block_size"),
        (config(block_size=-3), UnsupportedModel, "block_size"),
        (config(layer_types=["full_attention"]), UnsupportedModel, "layer_types"),
        (config(model_type="gemma4"), UnsupportedModel, r"misstates something \('full_attention'"),
        (config(architectures=["DFlyDraftModel"]), UnsupportedModel, "DFlyDraftModel drafters are not supported"),
        (config(architectures=["LlamaForCausalLMEagle3"]), UnsupportedModel, "Eagle3 drafters are not supported"),
        (config(speculators_config={}), UnsupportedModel, "speculators drafters of kind 'None' are not"),
        (config(speculators_model_type="eagle3"), UnsupportedModel, "speculators drafters of kind 'eagle3' are not"),
        (config(architectures=["DFlash2DraftModel"]), UnsupportedModel, "DFlash2DraftModel but has no selector"),
        (config(rope_scaling={"rope_type": "xpos"}), UnsupportedModel, "rope_type 'xpos'"),
        (tensors(lambda weights: weights.pop("fc.weight")), UnsupportedModel, "has no fc.weight"),
        (tensors(lambda weights: weights.pop("norm.weight")), ModelIncomplete, "lacks 1 tensors .norm.weight"),
        (tensors(lambda weights: weights.update(extra=mx.zeros((2,)))), UnsupportedModel, "extra"),
        (tensors(lambda weights: weights.update({"fc.weight": mx.zeros((4,))})), PairMismatch, "fc.weight"),
        (both(config(quantization={"bits": 4}), packed), UnsupportedModel, "misstates"),
        (both(config(quantization=[4]), packed), UnsupportedModel, "misstates"),
        (both(config(quantization={"bits": 4, "group_size": 32, "mode": "mxfp4"}), packed), UnsupportedModel, "mxfp4"),
        (both(config(quantization={"bits": 4, "group_size": 7}), packed), UnsupportedModel, "misstates"),
        (tensors(lambda weights: weights.update({"norm.scales": mx.zeros((4,))})), UnsupportedModel, "packed"),
    ],
)
def test_a_bad_folder_is_one_sentence(damage: Damage, error: type[SlipstreamError], words: str, folder: Path) -> None:
    damage(folder)
    with pytest.raises(error, match=words) as caught:
        formats.read(folder)
    assert "\n" not in caught.value.message


def test_no_folder_at_all(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="no drafter at"):
        formats.read(tmp_path / "nowhere")


def pair(folder: Path, *, hidden: int = 64, layers: int = 4, vocabulary: int = 96) -> None:
    checkpoint = formats.read(folder)
    formats.check_pair(checkpoint, hidden=hidden, layers=layers, vocabulary=vocabulary, target="llama")


def test_a_drafter_of_its_target_is_taken(folder: Path) -> None:
    pair(folder)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ({"hidden": 128}, "hidden states of 64, the target's have 128"),
        ({"vocabulary": 97}, "96 tokens, the target 97"),
        ({"layers": 2}, r"taps layers \[0, 1, 2\], the target has 2"),
        ({"layers": 5}, "expects 4 layers, the target has 5"),
    ],
)
def test_a_drafter_of_another_target_is_refused_with_the_numbers(
    target: dict[str, int], words: str, folder: Path
) -> None:
    with pytest.raises(PairMismatch, match=words) as caught:
        pair(folder, **target)
    assert "choose its own" in caught.value.message


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"target_layer_ids": [0, 1, 4]}, r"taps layers \[0, 1, 4\], the target has 4"),
        ({"target_layer_ids": [-2, 0, 1]}, r"taps layers \[-2, 0, 1\]"),
        ({"mask_token_id": 96}, "mask token 96 is outside the target's 96"),
        ({"mask_token_id": -1}, "mask token -1 is outside"),
    ],
)
def test_a_config_that_reaches_outside_the_target_is_refused(changes: dict[str, Any], words: str, folder: Path) -> None:
    config(**changes)(folder)
    with pytest.raises(PairMismatch, match=words):
        pair(folder)


def test_what_a_folder_says_is_described(made: Path) -> None:
    dspark = formats.read(made / "dspark").descriptor
    assert (dspark.mode, dspark.markov, dspark.rank, dspark.confidence) == (Mode.DSPARK, "vanilla", 32, True)
    assert (dspark.first, dspark.block, dspark.proposals) == (0, 7, 7)
    assert (dspark.taps, dspark.mask_id, dspark.own_embed, dspark.own_head) == ((0, 1, 2), 3, False, False)
    dflash = formats.read(made / "dflash").descriptor
    assert (dflash.mode, dflash.markov, dflash.confidence) == (Mode.DFLASH, None, False)
    assert (dflash.first, dflash.block, dflash.proposals) == (1, 7, 6)


@pytest.mark.parametrize("markov", ["vanilla", "gated", "rnn"])
def test_the_tensors_say_which_markov_head_it_is(markov: str, tmp_path: Path) -> None:
    folder = tiny.write_drafter(tmp_path / "d", Mode.DSPARK, markov=markov)
    config(markov_head_type=None)(folder)
    assert formats.read(folder).descriptor.markov == markov
