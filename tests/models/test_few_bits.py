"""Checkpoints of one to three bits: what is loaded is what is stored, and drafts change nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import mlx.core as mx
import mlx.nn as nn
import pytest
from mlx.utils import tree_flatten, tree_unflatten
from mlx_lm.models import llama, qwen3_5

import tiny
import tiny_families
from slipstream.drafters.protocol import Drafter
from slipstream.engine.load import Precision, load_target
from slipstream.models.target import Target
from slipstream.types import Options
from tiny_runs import Scripted, byte_config, decode, plain

PROMPT = (5, 9, 33, 71, 5, 9, 33, 70, 12)
PACKINGS: dict[str, dict[str, Any]] = {
    "ternary": {"bits": 2, "group_size": 64},
    "1-bit": {"bits": 1, "group_size": 64},
    "2-bit": {"bits": 2, "group_size": 32},
    "3-bit": {"bits": 3, "group_size": 32},
    "mixed": {"bits": 2, "group_size": 32, "lm_head": {"bits": 6, "group_size": 32}, "model.embed_tokens": False},
    "mxfp4": {"bits": 4, "group_size": 32, "mode": "mxfp4"},
}


def parameters(model: nn.Module) -> dict[str, mx.array]:
    return dict(cast(Any, tree_flatten(model.parameters())))


def ternary(weight: mx.array, group: int) -> mx.array:
    """Each group of a row as -s, 0 and s."""
    rows = weight.reshape(*weight.shape[:-1], -1, group)
    scale = mx.mean(mx.abs(rows), axis=-1, keepdims=True)
    return (mx.clip(mx.round(rows / scale), -1, 1) * scale).reshape(weight.shape)


def packed_ternary(weight: mx.array, group: int) -> tuple[mx.array, mx.array, mx.array]:
    """As published: codes 0, 1 and 2 of two bits, scale s, offset -s. Exact, which fitting a range to it is not."""
    rows = weight.reshape(*weight.shape[:-1], -1, group)
    scale = mx.max(mx.abs(rows), axis=-1)
    codes = mx.round(rows / mx.maximum(scale[..., None], 1e-9)).astype(mx.int32) + 1
    codes = codes.reshape(*weight.shape[:-1], -1, 16).astype(mx.uint32)
    shifts = mx.arange(16, dtype=mx.uint32) * 2
    return mx.sum(codes << shifts, axis=-1).astype(mx.uint32), scale, -scale


def write(folder: Path, kind: str) -> tuple[Path, nn.Module]:
    """A checkpoint, and the model that it stores."""
    folder.mkdir()
    config = byte_config(quantization=PACKINGS[kind])
    packing = PACKINGS[kind]
    model = llama.Model(llama.ModelArgs.from_dict(config))
    tiny.randomise(model, 1)
    if kind == "ternary":
        weights = {name: ternary(array, 64) if array.ndim == 2 else array for name, array in parameters(model).items()}
        model.update(tree_unflatten(list(weights.items())))
    plain_model = model
    model = llama.Model(llama.ModelArgs.from_dict(config))
    model.update(plain_model.parameters())
    nn.quantize(
        model,
        group_size=packing["group_size"],
        bits=packing["bits"],
        mode=packing.get("mode", "affine"),
        class_predicate=lambda path, layer: packing.get(path, hasattr(layer, "to_quantized")),
    )
    stored = parameters(model)
    if kind == "ternary":
        for name in [name.removesuffix(".scales") for name in stored if name.endswith(".scales")]:
            parts = packed_ternary(parameters(plain_model)[f"{name}.weight"], 64)
            stored |= {
                f"{name}.{part}": array for part, array in zip(("weight", "scales", "biases"), parts, strict=True)
            }
        model.update(tree_unflatten(list(stored.items())))
    (folder / "config.json").write_text(json.dumps(config))
    mx.save_safetensors(str(folder / "model.safetensors"), stored, metadata={"format": "mlx"})
    return folder, plain_model if kind == "ternary" else model


def check_drafts(onto: Target) -> None:
    asked = Options(temperature=0.8, max_tokens=14, seed=2)
    said = plain(onto, asked, PROMPT)
    by = Scripted(said.tokens, len(PROMPT), "mixed", onto.vocabulary)
    run = decode(onto, (cast(Drafter, by),), asked, PROMPT)
    assert run.tokens == said.tokens
    assert run.accepted > 0


@pytest.mark.parametrize(
    "kind", [kind if kind in ("ternary", "1-bit") else pytest.param(kind, marks=pytest.mark.slow) for kind in PACKINGS]
)
def test_what_is_stored_is_what_runs(kind: str, tmp_path: Path) -> None:
    folder, model = write(tmp_path / "model", kind)
    tokens = mx.array(PROMPT)
    expected = cast(Any, model)(tokens[None])[0]
    for unpack in (False, True):
        onto = load_target(folder, Precision(unpack=unpack))
        ours = onto.forward(tokens, onto.make_cache(), rows=len(PROMPT)).logits
        assert ours is not None
        assert mx.allclose(ours, expected, atol=1e-3, rtol=1e-3), f"unpack={unpack}"
        check_drafts(onto)
    if kind == "ternary":
        weight = cast(Any, onto.model).model.layers[0].mlp.up_proj.weight
        rows = mx.sort(mx.abs(weight.reshape(weight.shape[0], -1, 64)), axis=-1)
        assert bool(mx.all((rows == 0) | (rows == rows[..., -1:])).item())  # pyright: ignore[reportArgumentType]


# -- Bonsai's own packing: two bits of weights that a Hadamard matrix has turned

BLOCK, WIDTH, INNER = 512, 128, 512


def hadamard(count: int) -> mx.array:
    return mx.hadamard_transform(mx.eye(count), scale=count**-0.5)


def test_a_turned_ternary_model_runs_as_the_dense_one(tmp_path: Path) -> None:
    """In the layout of `prism_hadamard_qwen35`: only inputs of whole blocks are turned, here those of down_proj."""
    text = tiny_families.config("qwen3_5")["text_config"] | {
        "hidden_size": WIDTH,
        "intermediate_size": INNER,
        "head_dim": 32,
        "tie_word_embeddings": False,
        "linear_num_value_heads": 8,
    }
    config: dict[str, Any] = {"model_type": "qwen3_5", "text_config": text}
    dense = qwen3_5.Model(qwen3_5.ModelArgs.from_dict(config))
    tiny.randomise(dense, 2)
    stored, modules = parameters(dense), list[dict[str, Any]]()
    whole = dict(stored)
    signs = mx.where(mx.random.uniform(shape=(INNER,), key=mx.random.key(4)) < 0.5, -1.0, 1.0)
    for name in [name for name in stored if name.endswith("_proj.weight") and stored[name].shape[-1] % WIDTH == 0]:
        module = name.removesuffix(".weight")
        turned = ternary(stored.pop(name), 128)
        weight, scales, biases = packed_ternary(turned, 128)
        block = BLOCK if turned.shape[-1] == INNER else 0
        stored |= {f"{module}.weight": weight, f"{module}.scales": scales, f"{module}.biases": biases}
        if block:
            stored[f"{module}.signs"] = signs
            turned = (turned @ hadamard(BLOCK)) * signs
        whole[name] = turned
        path = module.removeprefix("language_model.")
        modules.append({"path": path, "embedding": False, "dtype": "float16", "block": block})
    assert {module["block"] for module in modules} == {0, BLOCK}
    dense.update(tree_unflatten(list(whole.items())))
    pack = {"schema_version": 1, "tensor_namespace": "mlx-lm-text", "modules": modules}
    quantization = {"bits": 2, "group_size": 128, "mode": "affine"}
    folder = tmp_path / "model"
    folder.mkdir()
    config |= pack | {"model_type": "prism_hadamard_qwen35", "quantization": quantization}
    (folder / "config.json").write_text(json.dumps(config))
    mx.save_safetensors(str(folder / "model.safetensors"), stored, metadata={"format": "mlx"})

    onto = load_target(folder, Precision())
    assert onto.has_taps  # so drafters made for it can be used
    ours = onto.forward(mx.array(PROMPT), onto.make_cache(), rows=len(PROMPT)).logits
    assert ours is not None
    assert mx.allclose(ours, dense(mx.array(PROMPT)[None])[0], atol=1e-2, rtol=1e-2)
    check_drafts(onto)
