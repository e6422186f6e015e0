"""Which conversations and which anchors each step learns from. On the host, and the same for the same seed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from slipstream.train.corpus import Conversation

LENGTH_STEP = 128  # texts are padded to a multiple of it: few shapes
DECAY = 4.0  # weight of prediction k is exp(-k / DECAY)
GROUP = 32  # batches whose conversations are sorted by length among themselves


@dataclass(frozen=True, slots=True)
class Batch:
    """Arrays of one process's part. `total`: sum of weights over the whole batch, all processes'."""

    tokens: Any  # [texts, length]; NumPy's arrays, int32 but for the weights
    anchors: Any  # [texts, anchors]
    before: Any  # [texts, anchors, predictions]: the token before each prediction
    labels: Any  # [texts, anchors, predictions]
    rows: Any  # [texts, anchors, predictions]: where in the flattened texts the target predicts the label
    weights: Any  # [texts, anchors, predictions], float32; 0 where nothing is to be predicted
    total: float

    @property
    def shape(self) -> tuple[int, int, int]:
        return (*self.tokens.shape, self.anchors.shape[1])


@dataclass(frozen=True, slots=True)
class Position:
    """Where in the order of all batches a run is: an epoch and a batch in it."""

    epoch: int = 0
    batch: int = 0


class Batches:
    def __init__(
        self,
        conversations: Sequence[Conversation],
        *,
        texts: int,
        anchors: int,
        predictions: int,
        longest: int,
        seed: int,
        rank: int = 0,
        ranks: int = 1,
        decay: float = DECAY,
    ) -> None:
        """`texts` in a batch, of all processes together; this one gets every `ranks`th from `rank` on."""
        usable = [one for one in conversations if len(one.ids[:longest]) - one.start >= 2]
        self._ids = [np.array(one.ids[:longest], dtype=np.int32) for one in usable]
        self._starts = [one.start for one in usable]
        self._texts, self._anchors, self._predictions = texts, anchors, predictions
        self._seed, self._rank, self._ranks, self._decay = seed, rank, ranks, decay

    def __len__(self) -> int:
        """Batches of an epoch."""
        return math.ceil(len(self._ids) / self._texts)

    @property
    def answered(self) -> int:
        """Tokens that can be learned from."""
        return sum(len(ids) - start for ids, start in zip(self._ids, self._starts, strict=True))

    def after(self, position: Position) -> Iterator[tuple[Batch, Position]]:
        """Batches without end from there on, each with the position behind it."""
        epoch, skip = position.epoch, position.batch
        while True:
            order = self._order(epoch)
            for number in range(skip, len(order)):
                behind = Position(epoch, number + 1) if number + 1 < len(order) else Position(epoch + 1, 0)
                rng = np.random.default_rng((self._seed, epoch, number))
                yield self.batch(order[number], rng), behind
            epoch, skip = epoch + 1, 0

    def _order(self, epoch: int) -> list[Any]:
        """Indices of each batch. Every batch is full: the last takes some conversations from the front again."""
        rng = np.random.default_rng((self._seed, epoch))
        order = rng.permutation(len(self._ids))
        order = np.resize(order, len(self) * self._texts)
        out: list[Any] = []
        for at in range(0, len(order), GROUP * self._texts):
            group = order[at : at + GROUP * self._texts]
            group = group[np.argsort([len(self._ids[index]) for index in group], kind="stable")]
            out += list(group.reshape(-1, self._texts))
        return [out[index] for index in rng.permutation(len(out))]

    def batch(self, chosen: Any, rng: Any) -> Batch:
        length = -(-max(len(self._ids[index]) for index in chosen) // LENGTH_STEP) * LENGTH_STEP
        texts = [self._ids[index] for index in chosen]
        anchors = np.zeros((len(texts), self._anchors), dtype=np.int32)
        kept = np.zeros(anchors.shape, dtype=bool)
        for row, index in enumerate(chosen):
            possible = np.arange(self._starts[index], len(texts[row]) - 1)
            few = min(len(possible), self._anchors)
            anchors[row, :few] = np.sort(rng.choice(possible, few, replace=False))
            kept[row, :few] = True
        return lay_out(
            texts, anchors, kept, self._predictions, length, decay=self._decay, rank=self._rank, ranks=self._ranks
        )


def lay_out(
    texts: Sequence[Any],
    anchors: Any,
    kept: Any,
    predictions: int,
    length: int,
    *,
    decay: float = DECAY,
    rank: int = 0,
    ranks: int = 1,
) -> Batch:
    """A batch of texts [n] with their anchors [n, anchors], of which only those that are `kept` count."""
    tokens = np.zeros((len(texts), length), dtype=np.int32)
    ends = np.array([len(text) for text in texts])[:, None, None]
    for row, text in enumerate(texts):
        tokens[row, : len(text)] = text
    ahead = anchors[..., None] + np.arange(1, predictions + 1)
    valid = (ahead < ends) & kept[..., None]
    ahead = np.minimum(ahead, length - 1)
    texts_index = np.arange(len(texts))[:, None, None]
    labels = tokens[texts_index, ahead]
    weights = np.where(valid, np.exp(-np.arange(predictions) / decay), 0.0).astype(np.float32)
    mine = slice(rank, None, ranks)
    own = np.arange(len(range(len(texts))[mine]))[:, None, None]
    return Batch(
        tokens=tokens[mine],
        anchors=anchors[mine],
        before=np.concatenate([tokens[texts_index, anchors[..., None]], labels[..., :-1]], axis=-1)[mine],
        labels=labels[mine],
        rows=(own * length + ahead[mine] - 1).astype(np.int32),
        weights=weights[mine],
        total=float(weights.sum()),
    )
