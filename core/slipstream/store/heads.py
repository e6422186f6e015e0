"""Which tensors of a folder are native MTP heads, by name alone. Reads headers, no weights.

Published layouts: among a model's own shards (`mtp.…`, as Qwen publishes them, or under a prefix that a conversion
put before it), in a file or a folder `mtp` beside them, or as a repository of their own with bare names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from slipstream.store import files
from slipstream.store.files import Tensor

# A tensor that these heads have, and nothing else does.
MARK = "pre_fc_norm_hidden.weight"
_PREFIXED = re.compile(r"(?:^|\.)mtp\.(.+)")
_BARE = ("fc.", "norm.", "pre_fc_norm_", "layers.")


@dataclass(frozen=True, slots=True)
class Part:
    """One tensor of the heads, where it is stored."""

    file: Path
    name: str  # in that file
    tensor: Tensor


def find(folder: Path) -> Mapping[str, Part]:
    """The heads' tensors by their names within the heads; none when the folder has none.

    Raises ModelIncomplete for a file that is cut short.
    """
    found: dict[str, Part] = {}
    for file in sorted([*folder.glob("*.safetensors"), *(folder / "mtp").glob("*.safetensors")]):
        stored = files.tensors(file)
        bare = MARK in stored
        for name, tensor in stored.items():
            if match := _PREFIXED.search(name):
                found[match[1]] = Part(file, name, tensor)
            elif bare and name.startswith(_BARE):
                found[name] = Part(file, name, tensor)
    return found if MARK in found else {}


def has(folder: Path) -> bool:
    """Whether there are any. False for what cannot be read."""
    try:
        return bool(find(folder))
    except (OSError, files.ModelIncomplete):
        return False
