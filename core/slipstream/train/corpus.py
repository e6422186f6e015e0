"""Conversations on disk: shards that are written whole or not at all, and what is in them. Knows no MLX arrays."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from slipstream.errors import InvalidRequest, ModelIncomplete
from slipstream.store.atomic import write_bytes, write_text

HELD_OUT_SHARE = 0.02  # of the questions, that are never trained on
ABOUT = "corpus.json"


@dataclass(frozen=True, slots=True)
class Conversation:
    """Ids of prompt and answer. The answer begins at `start`; every token from there on was the target's choice."""

    ids: tuple[int, ...]
    start: int
    kind: str  # where the question came from
    temperature: float

    @property
    def place(self) -> float:
        """From 0 to 1, by the question alone: those below some share are held out, with all answers to them."""
        question = np.array(self.ids[: self.start], dtype=np.int32).tobytes()
        return int.from_bytes(hashlib.sha256(question).digest()[:4], "big") / 2**32

    @property
    def answered(self) -> int:
        """Tokens that can be learned from."""
        return len(self.ids) - self.start


@dataclass(frozen=True, slots=True)
class About:
    """What all shards of a folder have in common; shards of other models or settings must not be mixed in."""

    target: str
    settings: dict[str, Any]


class Corpus:
    """A folder of shards. Several processes may write different shards of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self, about: About) -> None:
        """Start it, or go on with it. Raises InvalidRequest when it was made for something else."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / ABOUT
        mine = json.loads(json.dumps(asdict(about)))
        if not path.exists():
            write_text(path, json.dumps(mine, indent=2))
        elif (theirs := json.loads(path.read_text())) != mine:
            what = "other settings" if mine.get("target") == theirs.get("target") else "another model"
            raise InvalidRequest(
                f"{self.folder} holds conversations made with {what}; choose another --work folder, or delete it",
                folder=str(self.folder),
            )

    def rows(self) -> int | None:
        """Conversations asked for in each shard; None: it was not begun."""
        path = self.folder / ABOUT
        return int(json.loads(path.read_text())["settings"]["rows"]) if path.exists() else None

    def path(self, shard: int) -> Path:
        return self.folder / f"shard-{shard:05d}.npz"

    def has(self, shard: int) -> bool:
        return self.path(shard).exists()

    def shards(self) -> list[Path]:
        return sorted(self.folder.glob("shard-*.npz"))

    def write(self, shard: int, conversations: Sequence[Conversation]) -> None:
        """Atomic: a shard is there whole, or not."""
        kinds = sorted({conversation.kind for conversation in conversations})
        packed = io.BytesIO()
        np.savez(
            packed,
            ids=np.array([token for one in conversations for token in one.ids], dtype=np.int32),
            lengths=np.array([len(one.ids) for one in conversations], dtype=np.int32),
            starts=np.array([one.start for one in conversations], dtype=np.int32),
            temperatures=np.array([one.temperature for one in conversations], dtype=np.float32),
            kinds=np.array([kinds.index(one.kind) for one in conversations], dtype=np.int32),
            names=np.array(kinds or [""]),
        )
        write_bytes(self.path(shard), packed.getvalue())

    def read(self, limit: int | None = None) -> Iterator[Conversation]:
        """Every conversation once, in a fixed order. Raises ModelIncomplete when a shard is damaged."""
        seen: set[bytes] = set()
        for path in self.shards()[:limit]:
            try:
                with np.load(path) as arrays:
                    ids, lengths, starts = arrays["ids"], arrays["lengths"], arrays["starts"]
                    temperatures, kinds, names = arrays["temperatures"], arrays["kinds"], arrays["names"]
            except (OSError, ValueError, KeyError) as error:
                raise ModelIncomplete(f"{path} is damaged ({error}); delete it, it will be made anew") from error
            ends = np.cumsum(lengths)
            for index, end in enumerate(ends):
                tokens = ids[end - lengths[index] : end]
                mark = hashlib.sha256(tokens.tobytes()).digest()[:12]
                if mark in seen:
                    continue
                seen.add(mark)
                yield Conversation(
                    tuple(tokens.tolist()),
                    int(starts[index]),
                    str(names[kinds[index]]),
                    round(float(temperatures[index]), 3),
                )
