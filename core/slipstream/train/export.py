"""A trained network as a drafter's folder, in the layout its kind is published in."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np

from slipstream.drafters.descriptor import Descriptor
from slipstream.errors import InvalidRequest
from slipstream.store.atomic import atomic_folder
from slipstream.train.design import STEP, config_of
from slipstream.train.network import W2
from slipstream.train.saving import save
from slipstream.train.step import D2T, offsets

SHARE = 0.995  # of all said tokens that a smaller draft vocabulary holds


def reduced(
    d: Descriptor, weights: Mapping[str, mx.array], counts: Any, size: int | None = None
) -> tuple[Descriptor, dict[str, mx.array]]:
    """The drafter that proposes only tokens that are often said: most of its time goes into the output table.

    `counts` [vocabulary]: how often the target said each. `size`: so many tokens; None: as many as hold SHARE of all.
    """
    order = np.argsort(-counts, kind="stable")
    if size is None:
        share = np.cumsum(counts[order]) / max(counts.sum(), 1)
        size = int(np.searchsorted(share, SHARE)) + 1
    size = min(-(-size // STEP) * STEP, d.vocabulary)
    if size == d.vocabulary:
        return d, dict(weights)
    ids = most_said(counts, size)
    out = dict(weights) | {D2T: offsets(ids)}
    if W2 in out:
        out[W2] = out[W2][ids]
    return replace(d, draft_vocabulary=size), out


def most_said(counts: Any, size: int) -> mx.array:
    """The `size` tokens that were said most, ascending; `counts` [vocabulary], NumPy's."""
    return mx.array(np.sort(np.argsort(-counts, kind="stable")[:size]).astype(np.int32))


def export(folder: Path, d: Descriptor, parameters: Mapping[str, mx.array], metadata: Mapping[str, Any]) -> None:
    """Write config.json and model.safetensors, in bfloat16. Raises InvalidRequest when the folder holds other files.

    An older drafter stands there until the new one is whole.
    """
    check_free(folder)
    weights = {
        name: tensor.astype(mx.bfloat16) if mx.issubdtype(tensor.dtype, mx.floating) else tensor
        for name, tensor in parameters.items()
    }
    mx.eval(weights)
    with atomic_folder(folder) as partial:
        save(partial / "model.safetensors", weights, {"format": "mlx"})
        (partial / "config.json").write_text(json.dumps(config_of(d, metadata), indent=2) + "\n")


def check_free(folder: Path) -> None:
    """Raises InvalidRequest for a folder with files that a drafter must not replace; another drafter's it may."""
    ours = ("config.json", "model.safetensors", ".DS_Store")  # the last is what the Finder leaves everywhere
    if not folder.exists():
        above = next(parent for parent in folder.absolute().parents if parent.exists())
        if not above.is_dir() or not os.access(above, os.W_OK):
            raise InvalidRequest(f"{folder} cannot be made in {above}; choose another --output", folder=str(folder))
        return
    if not folder.is_dir():
        raise InvalidRequest(f"{folder} is a file; choose another --output", folder=str(folder))
    if extra := sorted(path.name for path in folder.iterdir() if path.name not in ours):
        raise InvalidRequest(f"{folder} holds other files ({extra[0]}); choose another --output", folder=str(folder))
