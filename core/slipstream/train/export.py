"""A trained network as a drafter's folder, in the layout its kind is published in."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mlx.core as mx

from slipstream.drafters.descriptor import Descriptor
from slipstream.errors import InvalidRequest
from slipstream.train.design import config_of


def export(folder: Path, d: Descriptor, parameters: Mapping[str, mx.array], metadata: Mapping[str, Any]) -> None:
    """Write config.json and model.safetensors, in bfloat16. Raises InvalidRequest when the folder holds other files."""
    partial = folder.with_name(f".{folder.name}-{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    weights = {name: tensor.astype(mx.bfloat16) for name, tensor in parameters.items()}
    mx.eval(weights)
    mx.save_safetensors(str(partial / "model.safetensors"), weights, metadata={"format": "mlx"})
    (partial / "config.json").write_text(json.dumps(config_of(d, metadata), indent=2) + "\n")
    if folder.exists():
        if extra := sorted(
            path.name for path in folder.iterdir() if path.name not in ("config.json", "model.safetensors")
        ):
            shutil.rmtree(partial)
            raise InvalidRequest(
                f"{folder} holds other files ({extra[0]}); choose another --output", folder=str(folder)
            )
        shutil.rmtree(folder)
    partial.replace(folder)
