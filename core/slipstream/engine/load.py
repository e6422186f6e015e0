"""Folders to a target and its drafters: what is on disk, in which precision, and what is wrong with it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.utils import _get_classes, dequantize_model, load_model

from slipstream.drafters import formats, mtp_weights
from slipstream.drafters.descriptor import Descriptor
from slipstream.drafters.dflash import DFlash
from slipstream.drafters.dspark import DSpark
from slipstream.drafters.mtp import Mtp
from slipstream.drafters.protocol import Drafter
from slipstream.engine import head_reading, self_test
from slipstream.engine.pieces import Progress, stored_bytes
from slipstream.errors import ModelIncomplete, PairMismatch, UnsupportedModel, reason
from slipstream.models import streams
from slipstream.models.target import Target
from slipstream.store import files, heads
from slipstream.store.files import check as check_files
from slipstream.types import Mode

logger = logging.getLogger(__name__)

DType = Literal["float32", "bfloat16", "float16"]
DTYPES: dict[str, mx.Dtype] = {"float32": mx.float32, "bfloat16": mx.bfloat16, "float16": mx.float16}
DRAFTERS = {Mode.DSPARK: DSpark, Mode.DFLASH: DFlash}
METAL_DRAFTER_BITS = 4


@dataclass(frozen=True, slots=True)
class Precision:
    """What to compute in. None means: as the model is on a GPU; plain float32 on a CPU, where nothing else is fast."""

    dtype: DType | None = None
    unpack: bool | None = None  # turn packed weights into plain ones
    drafter_bits: int | None = None  # 0: plain


def on_gpu() -> bool:
    return mx.default_device() == mx.gpu


def load_target(
    folder: Path, precision: Precision, *, trust_code: bool = False, progress: Progress | None = None
) -> Target:
    """A target from a model folder. `trust_code`: run the Python that the folder brings, if its config asks for it.

    `progress`: told of each piece that was read.

    Raises ModelNotFound, ModelIncomplete, or UnsupportedModel (architecture, custom code, or failed probe).
    """
    streams.renew()
    check_files(folder)
    if files.is_drafter(files.read_config(folder)):
        raise UnsupportedModel(f"{folder} is a drafter; give it with --drafter, and the model it was made for as model")
    if not trust_code:
        _refuse_code(folder)
    try:
        model, config = load_model(
            folder, lazy=True, trust_remote_code=trust_code, get_model_classes=_classes_without_heads(folder)
        )
    except FileNotFoundError as error:
        raise ModelIncomplete(f"{folder} has no weights; finish the download") from error
    except ValueError as error:
        raise _refusal(folder, error) from error
    except (KeyError, TypeError, AttributeError, ArithmeticError) as error:
        # mlx-lm takes a config at its word, and trips over what is not there or of another kind.
        raise UnsupportedModel(
            f"{folder / 'config.json'} lacks or misstates something ({reason(error)}); choose another model"
        ) from error
    except RuntimeError as error:
        raise ModelIncomplete(
            f"{folder}: the weights cannot be read ({reason(error)}); download the model again"
        ) from error
    sizes = stored_bytes(model)
    unpack = not on_gpu() if precision.unpack is None else precision.unpack
    dtype = precision.dtype or (None if on_gpu() else "float32")
    if dtype is not None:
        # Scales first: unpacking in their half precision would round every weight once more.
        model.set_dtype(mx.float32 if unpack else DTYPES[dtype])
    if unpack:
        model = dequantize_model(model)
        if dtype is not None:
            model.set_dtype(DTYPES[dtype])
    try:
        (progress or Progress(_nobody)).read(model, sizes)
    except RuntimeError as error:
        raise ModelIncomplete(
            f"{folder}: the weights cannot be read ({reason(error)}); download the model again"
        ) from error
    model.eval()
    return Target(model, config)


def _nobody(done: int, total: int) -> None:
    """Nobody watches."""


Classes = tuple[type[nn.Module], type[Any]]


def _classes_without_heads(folder: Path) -> Callable[[dict[str, Any]], Classes]:
    """mlx-lm's model classes, to which a folder's MTP heads are not shown: not every one expects them in its shards."""
    parts = {part.name for part in heads.find(folder).values()}

    def classes(config: dict[str, Any]) -> Classes:
        model, arguments = _get_classes(config)
        if not parts:
            return model, arguments

        def sanitize(self: Any, weights: dict[str, mx.array]) -> dict[str, mx.array]:
            own = {name: array for name, array in weights.items() if name not in parts}
            return base.sanitize(self, own) if hasattr(base, "sanitize") else own

        base: Any = model
        return type(model.__name__, (model,), {"sanitize": sanitize, "__module__": model.__module__}), arguments

    return classes


def load_drafter(
    path: Path, target: Target, precision: Precision, *, sample: Sequence[int] = (), beside: Path | None = None
) -> Drafter:
    """A drafter, from a folder or a GGUF file, for a target. Raises what `formats.read` raises, and PairMismatch.

    `sample`: ids of the self-test's text. With it a pair that is loaded for the first time is measured, and a drafter
    that hardly understands its target is warned of; `beside` is the target's folder then.
    """
    is_heads = path.is_dir() and (path == beside or heads.has(path))
    checkpoint = None if is_heads else formats.read(path)
    if not target.has_taps:
        raise PairMismatch(
            f"{path.name} reads the hidden states inside its target, and those of {target.model_type!r} are not "
            "known; use --mode lookup, or a target of another architecture"
        )
    bits = precision.drafter_bits
    if bits is None:
        # Not on CUDA, where packing was found to be risky and memory is plenty (docs/decisions.md).
        bits = METAL_DRAFTER_BITS if mx.metal.is_available() else 0

    if checkpoint is None:
        return _load_heads(path, target, bits, sample, beside)

    def make(descriptor: Descriptor) -> Drafter:
        read = replace(checkpoint, descriptor=descriptor)
        return DRAFTERS[descriptor.mode](read, target, dtype=target.dtype, bits=bits)

    drafter = make(checkpoint.descriptor)
    if sample and beside is not None and not self_test.has_passed(beside, path):
        found = self_test.check(
            target,
            drafter,
            sample,
            path.name,
            lambda found: self_test.better_reading(target, checkpoint.descriptor, make, sample, found),
        )
        if not found.is_suspicious:
            self_test.remember(beside, path)
    return drafter


def _load_heads(path: Path, target: Target, bits: int, sample: Sequence[int], beside: Path | None) -> Mtp:
    found = {name: (part.file, part.name) for name, part in heads.find(path).items()}
    if not found:
        raise UnsupportedModel(
            f"{path} has no MTP heads (conversions often leave them out); give --drafter a repository that has them, "
            "or use --mode auto",
            path=str(path),
        )
    drafter = Mtp(mtp_weights.read(path, found), target, dtype=target.dtype, bits=bits)
    if beside is not None and (reading := head_reading.remembered(beside, path)) is not None:
        drafter.read_as(reading)
    elif sample:
        head_reading.choose(target, drafter, sample)
        if not self_test.check(target, drafter, sample, f"MTP of {path.name}").is_suspicious and beside is not None:
            head_reading.remember(beside, path, drafter.reading)
    return drafter


def quantisation_of(model: nn.Module) -> str:
    """In words, for people: "4-bit group 32", or "none"."""
    kinds = {
        f"{module.bits}-bit group {module.group_size}"
        for _, module in model.named_modules()
        if hasattr(module, "bits") and hasattr(module, "group_size")
    }
    return ", ".join(sorted(kinds)) or "none"


def precision_of(model: nn.Module, folder: Path, dtype: str) -> str:
    """As `quantisation_of`, and what the weights were packed to where they are computed unpacked, as on a CPU."""
    loaded = quantisation_of(model)
    stored = files.quantisation(files.read_config(folder)) or ""
    return f"{stored}, computed in {dtype}" if loaded == "none" and "-bit" in stored else loaded


def _refuse_code(folder: Path) -> None:
    """A config may name a Python file of its own to build the model from. mlx-lm would run it."""
    named: object = json.loads((folder / "config.json").read_text()).get("model_file")
    if named is None:
        return
    file = folder / str(named)
    size = f"{file.stat().st_size} bytes" if file.is_file() else "missing here"
    raise UnsupportedModel(
        f"{folder.name} wants to run a Python program of its own, {file} ({size}), with all your rights; read it and "
        "allow it with --trust-remote-code, or choose another model",
        file=str(file),
    )


def _refusal(folder: Path, error: ValueError) -> ModelIncomplete | UnsupportedModel:
    """mlx-lm reports several things as ValueError; what a person can do about them differs."""
    text = " ".join(str(error).split()).rstrip(".")
    if "parameters not in model" in text or "Missing" in text or "shape" in text:
        return ModelIncomplete(f"{folder}: weights and config do not belong together ({text[:200]}); download it again")
    return UnsupportedModel(f"{folder}: {text}; choose a model of another architecture")
