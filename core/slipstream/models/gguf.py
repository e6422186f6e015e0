"""A GGUF file, turned into a normal mlx-lm folder without changing a weight.

Nothing in the file is executed; its chat template is copied as text.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping
from pathlib import Path

import mlx.core as mx

from slipstream.errors import ModelIncomplete, UnsupportedModel, reason
from slipstream.models.gguf_architecture import Decoder, module_names
from slipstream.models.gguf_header import READABLE, Header, read_header
from slipstream.models.gguf_tokeniser import write_tokenizer

VERSION = 1  # raise it when `convert` writes something else: folders made by another version are made anew
GROUP_SIZE = 32  # of every packed GGUF type that is read


def convert(gguf: Path, into: Path) -> None:
    """Write the model in `gguf` to the folder `into`: config, weights, tokenizer and generation defaults.

    The 4-bit and 8-bit blocks become MLX's affine packing with the same numbers in it. Runs MLX on the calling thread.
    Raises ModelNotFound, ModelIncomplete (unreadable, cut short, damaged, or no room to write) or UnsupportedModel.
    """
    header = read_header(gguf)
    decoder = Decoder.read(header)
    names = module_names(header, decoder)
    weights = _load_weights(header, decoder, names)
    end = header.whole("tokenizer.ggml.eos_token_id")
    ends = sorted({end, header.whole("tokenizer.ggml.eot_token_id", end)})
    try:
        into.mkdir(parents=True, exist_ok=True)
        write_tokenizer(header, decoder, into)
        _write_weights(into / "model.safetensors", weights)
        _write_json(into / "config.json", _config(header, decoder, names, weights))
        bos = {} if decoder.bos_id is None else {"bos_token_id": decoder.bos_id}
        _write_json(into / "generation_config.json", {**bos, "eos_token_id": ends})
    except OSError as error:
        raise ModelIncomplete(
            f"the converted model cannot be written to {into.parent} ({error.strerror}); make room, or make it writable"
        ) from error


def _load_weights(header: Header, decoder: Decoder, names: Mapping[str, str]) -> dict[str, mx.array]:
    try:
        loaded = mx.load(str(header.path), format="gguf")
        assert isinstance(loaded, dict)
    except RuntimeError as error:
        raise UnsupportedModel(f"{header.path} cannot be read by MLX ({reason(error)}); choose another file") from error
    weights: dict[str, mx.array] = {}
    for name, array in loaded.items():
        module, part = name.rsplit(".", 1)  # part: weight, bias, scales or biases
        if not decoder.architecture.permuted:
            pass
        elif module.endswith(".attn_q"):
            array = _rows_unpermuted(array, decoder.heads)  # noqa: PLW2901
        elif module.endswith(".attn_k"):
            array = _rows_unpermuted(array, decoder.kv_heads)  # noqa: PLW2901
        weights[f"{names[module]}.{part}"] = array
    return _halved_if_exact(weights)


def _rows_unpermuted(array: mx.array, heads: int) -> mx.array:
    """Undo the interleaving of each head's two rotary halves.

    llama.cpp's converter (`LlamaModel.permute`) rotates neighbouring rows, mlx-lm the halves of a head. Whole rows
    move, so it is the same for packed weights and for their scales and biases.
    """
    rows, *rest = array.shape
    return array.reshape(heads, rows // heads // 2, 2, *rest).swapaxes(1, 2).reshape(rows, *rest)


def _halved_if_exact(weights: dict[str, mx.array]) -> dict[str, mx.array]:
    """Float32 tensors as float16, when not one value changes.

    Norms are stored as float32 in every GGUF, mostly without needing it, and would make the whole model compute in
    float32 where its packed weights say float16.
    """
    halves = {name: array.astype(mx.float16) for name, array in weights.items() if array.dtype == mx.float32}
    exact = (mx.array_equal(half.astype(mx.float32), weights[name]).item() for name, half in halves.items())
    return weights | halves if all(exact) else weights


def _config(
    header: Header, decoder: Decoder, names: Mapping[str, str], weights: Mapping[str, mx.array]
) -> dict[str, object]:
    packing = {
        module: {"group_size": GROUP_SIZE, "bits": bits, "mode": "affine"}
        for name, module in names.items()
        if (bits := READABLE[header.tensors[f"{name}.weight"].kind][2])
    }
    config: dict[str, object] = {
        "architectures": [decoder.architecture.label],
        "model_type": decoder.kind,
        "hidden_size": decoder.hidden,
        "intermediate_size": decoder.intermediate,
        "num_hidden_layers": decoder.layers,
        "num_attention_heads": decoder.heads,
        "num_key_value_heads": decoder.kv_heads,
        "head_dim": decoder.head_dim,
        "max_position_embeddings": decoder.context,
        "rms_norm_eps": decoder.eps,
        "rope_theta": decoder.rope_theta,
        "vocab_size": decoder.vocabulary,
        "tie_word_embeddings": "output" not in names,
        "eos_token_id": header.whole("tokenizer.ggml.eos_token_id"),
        "torch_dtype": str(weights["model.norm.weight"].dtype).removeprefix("mlx.core."),
    }
    if decoder.bos_id is not None:
        config["bos_token_id"] = decoder.bos_id
    if packing:
        # The first line is what a module without an entry would have; each has one.
        config["quantization"] = {"group_size": GROUP_SIZE, "bits": 4, "mode": "affine"} | packing
    return config


def _write_weights(path: Path, weights: dict[str, mx.array]) -> None:
    mx.eval(weights)  # so that what fails below is the writing
    try:
        mx.save_safetensors(str(path), weights, metadata={"format": "mlx"})
    except RuntimeError as error:
        raise OSError(errno.EIO, str(error)) from error


def _write_json(path: Path, value: Mapping[str, object]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
