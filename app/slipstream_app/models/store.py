"""The store as the Models screen asks it. Knows the built-in pair; the catalogue, downloads and fit join it here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from slipstream.errors import InvalidRequest
from slipstream.store.paths import resources_dir
from slipstream_app.bridge.pair import BUILT_IN
from slipstream_app.models.pairs import DownloadState, FitWord, Missing, PairFit, PairRow, RemovalPlan, Shelf


class BuiltInStore:
    def __init__(self, notify: Callable[[DownloadState], None]) -> None:
        self._notify = notify

    def pairs(self) -> Sequence[PairRow]:
        drafters = resources_dir() / "demo"
        size = sum(file.stat().st_size for file in drafters.rglob("*.safetensors"))
        return (PairRow("built in", BUILT_IN, Shelf.ON_MAC, "4-bit", size, 8192, folder=drafters),)

    def unfinished(self) -> Sequence[DownloadState]:
        return ()

    def fit(self, row: PairRow, context: int, kv_bits: int) -> PairFit:
        return PairFit(FitWord.UNKNOWN)

    def look_up(self, row: PairRow) -> None:
        del row

    def plan_removal(self, row: PairRow) -> RemovalPlan:
        raise InvalidRequest(f"{row.title} is part of Slipstream and stays; choose another pair")

    def remove(self, plan: RemovalPlan) -> str:
        raise InvalidRequest(f"{plan.title} is part of Slipstream and stays; choose another pair")

    def add_folder(self, folder: Path) -> None:
        raise InvalidRequest(f"{folder} cannot be indexed yet; start with: slipstream serve --model {folder}")

    def start(self, missing: Missing) -> None:
        raise InvalidRequest(f"{missing.repo} cannot be downloaded here yet; use: hf download {missing.repo}")

    def pause(self, repo: str) -> None:
        del repo

    def close(self) -> None:
        pass


def open_store(notify: Callable[[DownloadState], None]) -> BuiltInStore:
    return BuiltInStore(notify)
