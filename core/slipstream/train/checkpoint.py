"""A run's state on disk: written whole or not at all, and read back to the bit."""

from __future__ import annotations

import json
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlx.core as mx

from slipstream.errors import InvalidRequest, ModelIncomplete, reason
from slipstream.store.atomic import alone, atomic_folder, recover
from slipstream.train.optimiser import Tree
from slipstream.train.saving import save

STATE = "state.json"
LOCK = ".lock"
PARTS = ("parameters", "optimiser", "average")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    parameters: Tree
    optimiser: Tree
    average: Tree
    state: dict[str, Any]  # step, place in the data, time spent, and the recipe


@contextmanager
def claimed(folder: Path) -> Generator[None]:
    """A run's folder is this process's alone until the block ends. Raises InvalidRequest when it is another's.

    Two runs in one folder would go on from each other's weights.
    """
    with alone(folder / LOCK) as is_free:
        if not is_free:
            raise InvalidRequest(
                f"another training is at work in {folder}; wait for its end, stop it, or give another --run folder",
                folder=str(folder),
            )
        yield


class Checkpoints:
    """A folder with the newest checkpoint of one run. The one before it stays until the new one is whole."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, trees: Mapping[str, Tree], state: Mapping[str, Any]) -> None:
        final = self.folder / f"step-{int(state['step']):07d}"
        with atomic_folder(final) as partial:
            for part in PARTS:
                save(partial / f"{part}.safetensors", trees[part])
            (partial / STATE).write_text(json.dumps(state, indent=1))
        for pattern in ("step-*", ".step-*"):  # the last: what a run that was killed left half made
            for path in self.folder.glob(pattern):
                if path != final:
                    shutil.rmtree(path, ignore_errors=True)

    def load(self) -> Checkpoint | None:
        """The newest whole one. Raises ModelIncomplete when its files are damaged."""
        recover(self.folder)
        found = self._all()
        if not found:
            return None
        try:
            trees = [mx.load(str(found[-1] / f"{part}.safetensors")) for part in PARTS]
            state = json.loads((found[-1] / STATE).read_text())
        except (OSError, RuntimeError, ValueError) as error:
            raise ModelIncomplete(
                f"{found[-1]} is damaged ({reason(error)}); delete it, and the fit begins anew"
            ) from error
        parameters, optimiser, average = (dict(tree) for tree in trees if isinstance(tree, dict))
        mx.eval(parameters, optimiser, average)
        return Checkpoint(parameters, optimiser, average, state)

    def check(self, recipe: Mapping[str, Any], found: Mapping[str, Any]) -> None:
        """Raises InvalidRequest when the run was begun with other settings."""
        mine, theirs = json.loads(json.dumps(recipe)), found["recipe"]
        if parts := sorted(key for key in mine.keys() | theirs.keys() if mine.get(key) != theirs.get(key)):
            raise InvalidRequest(
                f"{self.folder} is a run with another {', '.join(parts)}; give the same, or another --run folder",
                folder=str(self.folder),
            )

    def _all(self) -> list[Path]:
        return sorted(self.folder.glob("step-*")) if self.folder.is_dir() else []
