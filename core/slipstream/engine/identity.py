"""What a kept prompt depends on, in a few words: if any of it changes, the words change, and nothing is reused."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from pathlib import Path

import mlx.core as mx

import slipstream
from slipstream.drafters.protocol import Drafter
from slipstream.models.cache import KV_GROUPS
from slipstream.models.target import Target

SAMPLES = 16  # places of a weight file that are looked at
SAMPLE_BYTES = 4096


def target_identity(folder: Path, target: Target, quantisation: str, kv_bits: int) -> str:
    return " ".join(
        [
            f"slipstream={slipstream.__version__}",
            f"mlx={version('mlx')}",
            f"device={mx.default_device()}",
            f"dtype={target.dtype}",
            f"quantisation={quantisation}",
            f"kv_bits={kv_bits} in groups of {KV_GROUPS}",
            f"files={fingerprint(folder)}",
        ]
    )


def drafter_part(folder: Path, drafter: Drafter, target: Target, bits: int | None) -> str:
    """The name under which a drafter's state is kept beside the target's."""
    return f"{drafter.mode.value}-{target.dtype}-{bits}-{fingerprint(folder)}".replace("mlx.core.", "")


def fingerprint(folder: Path) -> str:
    """Of a model's configuration and weights: names, sizes, dates, and samples of what is in them."""
    summed = hashlib.sha256()
    names = ("config.json", "*.safetensors", "mtp/*.safetensors")
    files = [folder] if folder.is_file() else sorted(path for name in names for path in folder.glob(name))
    for path in files:
        status = path.stat()
        summed.update(f"{path.name} {status.st_size} {status.st_mtime_ns}\n".encode())
        with path.open("rb") as file:
            for index in range(SAMPLES):
                file.seek(status.st_size * index // SAMPLES)
                summed.update(file.read(SAMPLE_BYTES))
    return summed.hexdigest()[:24]
