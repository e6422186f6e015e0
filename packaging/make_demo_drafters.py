"""Packs the reference drafters for the app: MLX's affine quantisation, both together under 24 MiB.

    python packaging/make_demo_drafters.py SOURCE resources/demo                    make them with the chosen scheme
    python packaging/make_demo_drafters.py SOURCE resources/demo --scheme 4-bit-g32 ... with another one
    python packaging/make_demo_drafters.py SOURCE --compare                         size and error of every scheme
    ... --counts counts.npy --draft-vocabulary 16384        cut to the tokens that the target says most often

SOURCE holds the two folders in bf16, as `slipstream train` writes them; counts.npy is beside its working files. The 2-D
projections and the Markov tables are packed; norms and the confidence head stay as they are. config.json keeps the
published fields and gains mlx's `quantization` entry: a default, and an override for each module that differs. Can be
run again: the result is the same, byte for byte.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np

from slipstream.drafters import formats
from slipstream.train.export import reduced

NAMES = ("SmolLM2-135M-DSpark", "SmolLM2-135M-DFlash")
LIMIT_BYTES = 24 * 1024 * 1024
KEPT = ("confidence_head.",)  # tiny, and one row: nothing to gain


@dataclass(frozen=True, slots=True)
class Packing:
    bits: int
    group_size: int

    def entry(self) -> dict[str, Any]:
        return {"group_size": self.group_size, "bits": self.bits, "mode": "affine"}


@dataclass(frozen=True, slots=True)
class Scheme:
    """A packing for every module, and others for modules whose name begins so."""

    default: Packing
    others: tuple[tuple[str, Packing], ...] = ()
    scales: mx.Dtype = mx.float16

    def packing(self, module: str) -> Packing:
        return next((packing for prefix, packing in self.others if module.startswith(prefix)), self.default)


MARKOV = "markov_head."
SCHEMES = {
    "4-bit-g32": Scheme(Packing(4, 32)),
    "5-bit-g64": Scheme(Packing(5, 64)),
    "5-bit-g32": Scheme(Packing(5, 32)),
    "6-bit-g64": Scheme(Packing(6, 64)),
    "6-bit-g64-bf16-scales": Scheme(Packing(6, 64), scales=mx.bfloat16),
    "6-bit-g32-markov-4-bit-g64": Scheme(Packing(6, 32), ((MARKOV, Packing(4, 64)),)),
    "6-bit-g64-markov-5-bit-g64-fc-8-bit": Scheme(Packing(6, 64), ((MARKOV, Packing(5, 64)), ("fc", Packing(8, 64)))),
    "6-bit-g32": Scheme(Packing(6, 32)),
    "8-bit-g64": Scheme(Packing(8, 64)),
}
# The most accurate that fits: the mixed ones pay for their better half with Markov tables two or four times worse.
CHOSEN = "6-bit-g64"


@dataclass(frozen=True, slots=True)
class Packed:
    weights: dict[str, mx.array]
    quantization: dict[str, Any]
    errors: dict[str, tuple[float, float]]  # module -> squared error, squared weight


def pack(weights: Mapping[str, mx.array], scheme: Scheme) -> Packed:
    out = Packed({}, scheme.default.entry(), {})
    for name, weight in sorted(weights.items()):
        module = name.removesuffix(".weight")
        if weight.ndim != 2 or name.startswith(KEPT):
            out.weights[name] = weight
            continue
        how = scheme.packing(module)
        # From the type of the scales: bf16 weights are exact in float16 but for the smallest, which round to less
        # than any step here.
        packed, scales, biases = mx.quantize(weight.astype(scheme.scales), group_size=how.group_size, bits=how.bits)
        out.weights.update({name: packed, f"{module}.scales": scales, f"{module}.biases": biases})
        if how != scheme.default:
            out.quantization[module] = how.entry()
        exact = weight.astype(mx.float32)
        unpacked = mx.dequantize(
            packed, scales.astype(mx.float32), biases.astype(mx.float32), group_size=how.group_size, bits=how.bits
        )
        out.errors[module] = (_sum_of_squares(unpacked - exact), _sum_of_squares(exact))
    return out


def _sum_of_squares(array: mx.array) -> float:
    total = mx.square(array).sum().item()
    assert isinstance(total, float)
    return total


def relative_error(packed: Packed, prefix: str = "", *, without: str | None = None) -> float | None:
    """Root of squared error over squared weights, of the modules whose name begins so."""
    chosen = [
        pair
        for module, pair in packed.errors.items()
        if module.startswith(prefix) and not (without and module.startswith(without))
    ]
    return math.sqrt(sum(e for e, _ in chosen) / sum(w for _, w in chosen)) if chosen else None


@dataclass(frozen=True, slots=True)
class Cut:
    """Only so many tokens may be proposed: those that were said most often."""

    counts: Path
    size: int


def read(folder: Path, cut: Cut | None = None) -> dict[str, mx.array]:
    if cut is not None:
        checkpoint = formats.read(folder)
        counts = np.load(cut.counts)
        return reduced(checkpoint.descriptor, checkpoint.weights, counts, cut.size)[1]
    weights = mx.load(str(folder / "model.safetensors"))
    assert isinstance(weights, dict)
    return weights


def compare(source: Path) -> None:
    print(f"{'scheme':36} {'bytes':>11} {'fits':>5}  relative error: DSpark backbone, Markov tables; DFlash backbone")
    for label, scheme in SCHEMES.items():
        dspark, dflash = (pack(read(source / name), scheme) for name in NAMES)
        size = sum(array.nbytes for packed in (dspark, dflash) for array in packed.weights.values())
        errors = [
            relative_error(dspark, without=MARKOV),
            relative_error(dspark, MARKOV),
            relative_error(dflash),
        ]
        fits = "yes" if size < LIMIT_BYTES else "no"
        print(f"{label:36} {size:11,} {fits:>5}  {'  '.join(f'{error:.4f}' for error in errors)}")


def make(source: Path, destination: Path, scheme: Scheme, cut: Cut | None = None) -> int:
    """Write both folders; the number of bytes in them."""
    total = 0
    for name in NAMES:
        folder = destination / name
        folder.mkdir(parents=True, exist_ok=True)
        packed = pack(read(source / name, cut), scheme)
        config: dict[str, Any] = json.loads((source / name / "config.json").read_text(encoding="utf-8"))
        config["quantization"] = packed.quantization
        if cut is not None:
            config["draft_vocab_size"] = cut.size
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        mx.save_safetensors(str(folder / "model.safetensors"), packed.weights, metadata={"format": "mlx"})
        size = sum(path.stat().st_size for path in folder.iterdir())
        print(f"{folder}: {size:,} bytes, relative error {relative_error(packed):.4f}")
        total += size
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("destination", type=Path, nargs="?")
    parser.add_argument("--scheme", choices=SCHEMES, default=CHOSEN)
    parser.add_argument("--counts", type=Path, help="how often each token was said")
    parser.add_argument("--draft-vocabulary", type=int, help="tokens that may be proposed")
    parser.add_argument("--compare", action="store_true", help="write nothing")
    args = parser.parse_args()
    if missing := [name for name in NAMES if not (args.source / name).is_dir()]:
        parser.error(f"{args.source} has no folder {missing[0]}")
    if args.compare:
        compare(args.source)
        return 0
    if args.destination is None:
        parser.error("say where to write them, for example resources/demo")
    if (args.counts is None) != (args.draft_vocabulary is None):
        parser.error("--counts and --draft-vocabulary belong together")
    cut = None if args.counts is None else Cut(args.counts, args.draft_vocabulary)
    total = make(args.source, args.destination, SCHEMES[args.scheme], cut)
    print(f"together {total:,} of at most {LIMIT_BYTES:,} bytes")
    return 0 if total < LIMIT_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
