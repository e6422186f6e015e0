"""The built-in pair in the forms a comparison needs: the target in one precision, the drafters with plain weights.

    python tests/bench/make_models.py build/bench --precision 8-bit

writes build/bench/8-bit/{target,dspark,dflash} and prints that folder. What is there already is kept.
The weights are the ones Slipstream runs: other programs cannot read its packed drafters, so these are unpacked.
"""

from __future__ import annotations

from slipstream.models.backend import prepare

prepare()

import argparse  # noqa: E402 - MLX must find its BLAS first
import json  # noqa: E402
import shutil  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import mlx.core as mx  # noqa: E402
import mlx.nn as nn  # noqa: E402
from mlx.utils import tree_flatten  # noqa: E402
from mlx_lm.utils import dequantize_model, load_model, quantize_model  # noqa: E402

from slipstream.drafters import formats  # noqa: E402
from slipstream.store import demo  # noqa: E402
from slipstream.store.atomic import atomic_folder  # noqa: E402

# What is computed in: packed weights give hidden states of their scales' type.
DTYPES = {"float32": mx.float32, "bfloat16": mx.bfloat16, "8-bit": mx.bfloat16, "4-bit": mx.float16}
PRECISIONS = tuple(DTYPES)
MARKOV_OUT = "markov_head.markov_w2.weight"
TOKENISER_FILES = ("tokenizer.json", "tokenizer_config.json", "generation_config.json")


def make(folder: Path, precision: str) -> None:
    if not (folder / "target").is_dir():
        make_target(demo.target(), folder / "target", precision)
    for mode, source in demo.drafters().items():
        if not (folder / mode.value).is_dir():
            make_drafter(source, folder / mode.value, DTYPES[precision])


def make_target(source: Path, folder: Path, precision: str) -> None:
    """`4-bit` is as shipped: 4-bit weights and 8-bit embedding, groups of 32. `8-bit` is all 8-bit, groups of 64."""
    with atomic_folder(folder) as made:
        if precision == "4-bit":
            shutil.copytree(source, made, dirs_exist_ok=True)
            return
        loaded: tuple[nn.Module, dict[str, Any]] = load_model(source, lazy=True)
        model, config = loaded
        model.set_dtype(mx.float32)
        model = dequantize_model(model)
        model.set_dtype(DTYPES[precision])
        config = {key: value for key, value in config.items() if not key.startswith("quantization")}
        if precision == "8-bit":
            model, config = quantize_model(model, config, group_size=64, bits=8)
        mx.save_safetensors(
            str(made / "model.safetensors"), dict(tree_flatten(model.parameters())), metadata={"format": "mlx"}
        )
        (made / "config.json").write_text(json.dumps(config, indent=2))
        for name in TOKENISER_FILES:
            shutil.copy(source / name, made / name)


def make_drafter(source: Path, folder: Path, dtype: mx.Dtype) -> None:
    """Unpacked and over the whole vocabulary, for programs that know neither packing nor a vocabulary cut short."""
    config: dict[str, Any] = json.loads((source / "config.json").read_text())
    for key in ("quantization", "quantization_config"):
        config.pop(key, None)
    config.pop("draft_vocab_size", None)
    checkpoint = formats.read(source)
    plain = dict(checkpoint.weights)
    if (offsets := plain.pop("d2t", None)) is not None and MARKOV_OUT in plain:
        ids = mx.arange(len(offsets)) + offsets
        cut = plain[MARKOV_OUT]  # [draft vocabulary, rank]; tokens left out get no bias
        plain[MARKOV_OUT] = mx.zeros((checkpoint.descriptor.vocabulary, cut.shape[1]), dtype=cut.dtype).at[ids].add(cut)
    plain = {name: array.astype(dtype) for name, array in plain.items()}
    with atomic_folder(folder) as made:
        mx.save_safetensors(str(made / "model.safetensors"), plain, metadata={"format": "mlx"})
        (made / "config.json").write_text(json.dumps(config, indent=2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--precision", choices=PRECISIONS, required=True)
    args = parser.parse_args()
    folder: Path = args.folder / args.precision
    make(folder, args.precision)
    print(folder)


if __name__ == "__main__":
    main()
