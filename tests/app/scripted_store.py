"""A store with pairs of every kind, for the screen's own tests: it answers what it is told to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from slipstream.errors import SlipstreamError
from slipstream.store.candidate import Candidate
from slipstream.store.local import Place
from slipstream.types import Mode
from slipstream_app.bridge.pair import BUILT_IN, PairChoice
from slipstream_app.models.pairs import (
    DownloadState,
    Fetch,
    FitWord,
    Half,
    Missing,
    PairFit,
    PairRow,
    RemovalPlan,
    Shelf,
)

GB = 10**9

LIMIT = 36 * GB
DRAFTER = Missing("publisher/gemma-dspark", int(1.4 * GB))
BUILT_IN_HALVES = (
    Half("SmolLM2", Path("/app"), (("SmolLM2-135M.gguf", 98 * 10**6),), "apache-2.0"),
    Half("SmolLM2-135M-DSpark", Path("/app/dspark"), (("model.safetensors", 25 * 10**6),), "apache-2.0"),
)
QWEN_HALVES = (
    Half(
        "mlx-community/Qwen3.8-27B-4bit",
        Path("/models/qwen"),
        (
            ("config.json", 2100),
            ("model-00001-of-00003.safetensors", int(5.3 * GB)),
            ("model-00002-of-00003.safetensors", int(5.3 * GB)),
            ("model-00003-of-00003.safetensors", int(4.9 * GB)),
            ("tokenizer.json", 11 * 10**6),
        ),
        "apache-2.0",
    ),
    Half("z-lab/dflash", Path("/models/dflash"), (("config.json", 900), ("model.safetensors", int(1.7 * GB)))),
)
ROWS = (
    PairRow(
        "built in",
        BUILT_IN,
        Shelf.ON_MAC,
        "4-bit",
        123 * 10**6,
        8192,
        place=Place.BUILT_IN,
        halves=BUILT_IN_HALVES,
        modes=(Mode.DSPARK, Mode.DFLASH),
    ),
    PairRow(
        "qwen",
        PairChoice("Qwen3.8 27B + DFlash 2", "mlx-community/Qwen3.8-27B-4bit", ("z-lab/dflash",)),
        Shelf.ON_MAC,
        "4-bit",
        int(17.2 * GB),
        262_144,
        place=Place.FOLDER,
        folder=Path("/models/qwen"),
        halves=QWEN_HALVES,
        modes=(Mode.DFLASH,),
        is_removable=True,
    ),
    PairRow(
        "qwen own",
        PairChoice("Qwen3.8 27B + MTP", "mlx-community/Qwen3.8-27B-4bit"),
        Shelf.ON_MAC,
        "4-bit",
        int(15.5 * GB),
        262_144,
        place=Place.FOLDER,
        folder=Path("/models/qwen"),
        halves=QWEN_HALVES[:1],
        modes=(Mode.MTP,),
    ),
    PairRow(
        "gemma",
        PairChoice("Gemma-4 12B + DSpark", "mlx-community/gemma-4-12b-8bit"),
        Shelf.ON_MAC,
        "8-bit",
        int(14.9 * GB),
        131_072,
        (DRAFTER,),
    ),
    PairRow(
        "wrong",
        PairChoice("Llama 3 8B + DSpark", "llama", ("other",)),
        Shelf.ON_MAC,
        "4-bit",
        5 * GB,
        8192,
        problem="the drafter was trained for hidden size 4096, this model has 5120; choose its own drafter",
    ),
    PairRow(
        "glm",
        PairChoice("GLM 5.3 Flash", "zai/GLM-5.3-Flash-4bit"),
        Shelf.SUGGESTED,
        "4-bit",
        178 * GB,
        131_072,
        (Missing("zai/GLM-5.3-Flash-4bit", 178 * GB),),
    ),
    PairRow(
        "small",
        PairChoice("Qwen3 4B + DSpark", "mlx-community/Qwen3-4B-4bit"),
        Shelf.SUGGESTED,
        "4-bit",
        None,
        40_960,
        (Missing("mlx-community/Qwen3-4B-4bit", None), Missing("deepseek-ai/dspark_qwen3_4b_block7", int(2.79 * GB))),
    ),
)


class ScriptedStore:
    def __init__(self, notify: Callable[[DownloadState], None]) -> None:
        self.notify = notify
        self.rows: Sequence[PairRow] = ROWS
        self.left: Sequence[DownloadState] = ()
        self.asked: list[tuple[str, object]] = []
        self.refuses: SlipstreamError | None = None
        self.numbers = Candidate({}, 1000, 1000, 2)

    def _ask(self, what: str, about: object) -> None:
        self.asked.append((what, about))
        if self.refuses is not None:
            raise self.refuses

    def pairs(self) -> Sequence[PairRow]:
        return self.rows

    def unfinished(self) -> Sequence[DownloadState]:
        return self.left

    def fit(self, row: PairRow, context: int, kv_bits: int) -> PairFit:
        row = next((one for one in self.rows if one.key == row.key), row)
        if row.bytes is None:
            return PairFit(FitWord.UNKNOWN)
        cache = context * 150_000
        total = row.bytes + cache + GB
        word = FitWord.TOO_LARGE if total > LIMIT else FitWord.TIGHT if total > 0.9 * LIMIT else FitWord.FITS
        longest = max(0, (LIMIT - row.bytes - GB) // 150_000)
        return PairFit(word, row.bytes - row.bytes // 10, row.bytes // 10, cache, GB, LIMIT, "GPU working set", longest)

    def look_up(self, row: PairRow) -> None:
        self._ask("look up", row.key)
        self.rows = tuple(replace(one, bytes=2 * GB) if one.key == row.key else one for one in self.rows)

    def plan_removal(self, row: PairRow) -> RemovalPlan:
        self._ask("plan", row.key)
        files = ((Path("/models/qwen/model.safetensors"), 17 * GB), (Path("/models/qwen/config.json"), 700))
        return RemovalPlan(row.title, files, shared_with="LM Studio")

    def remove(self, plan: RemovalPlan) -> str:
        self._ask("remove", plan.title)
        self.rows = tuple(row for row in self.rows if row.title != plan.title)
        return "in the Bin"

    def target_numbers(self, row: PairRow) -> Candidate:
        self._ask("numbers", row.key)
        return self.numbers

    def add_folder(self, folder: Path) -> None:
        self._ask("add", folder)

    def save_token(self, token: str) -> None:
        self._ask("token", token)

    def start(self, missing: Missing) -> None:
        self._ask("start", missing)
        self.notify(DownloadState(missing.repo, Fetch.WAITING))

    def discard(self, repo: str) -> None:
        self._ask("discard", repo)

    def pause(self, repo: str) -> None:
        self._ask("pause", repo)
        self.notify(DownloadState(repo, Fetch.PAUSED, 3 * 10**8, 10**9))

    def close(self) -> None:
        self.asked.append(("close", None))
