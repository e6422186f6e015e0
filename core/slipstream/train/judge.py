"""What a drafter is worth on texts that its target wrote: rounds walked through from the drafts at every position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import mlx.core as mx
import numpy as np

from slipstream.train.batches import LENGTH_STEP, lay_out
from slipstream.train.corpus import Conversation
from slipstream.train.step import Trainee, Weighting, arrays_of

ALL = "all"


@dataclass(frozen=True, slots=True)
class Worth:
    """Tokens committed after the first of each answer, and the rounds they took."""

    tokens: int
    rounds: int

    @property
    def per_round(self) -> float:
        return self.tokens / max(self.rounds, 1)


@dataclass(slots=True)
class Judgement:
    """By kind of question and over all: greedy rounds. By block: confidences and how many drafts were right."""

    by_kind: dict[str, Worth]
    chance: float  # tokens per round expected at temperature 1, blocks begun at every position
    confidence: Any  # [blocks, predictions] before the sigmoid, NumPy's; None without a confidence head
    prefix: Any  # [blocks]: drafts right before the first wrong one
    possible: Any  # [blocks]: drafts that could be right before the answer's end

    @property
    def per_round(self) -> float:
        return self.by_kind[ALL].per_round

    @property
    def rounds(self) -> int:
        return self.by_kind[ALL].rounds

    @property
    def everywhere(self) -> float:
        """Greedy tokens per round if rounds began at every position: what training's own figure compares with.

        Rounds begin where a draft was wrong, which are harder places than most.
        """
        return 1 + float(self.prefix.mean()) if len(self.prefix) else 1.0


@dataclass(slots=True)
class _Walk:
    """One answer: how many drafts are right from each anchor on."""

    right: list[int] = field(default_factory=list[int])

    def rounds(self) -> Worth:
        at, rounds = 0, 0
        while at < len(self.right):
            at += 1 + self.right[at]
            rounds += 1
        return Worth(len(self.right), rounds)


def judge(
    trainee: Trainee,
    parameters: Mapping[str, mx.array],
    conversations: Sequence[Conversation],
    *,
    texts: int = 32,
    anchors: int = 64,
    longest: int = 640,
) -> Judgement:
    """For greedy answers: where a text was drawn, the likeliest draft is often not what it says."""
    d = trainee.descriptor
    walks = [_Walk() for _ in conversations]
    confidences: list[Any] = []
    prefixes: list[Any] = []
    possibles: list[Any] = []
    chances: list[Any] = []
    # A piece is one text and up to `anchors` of its anchors.
    pieces: list[tuple[int, Any]] = []
    for index, one in enumerate(conversations):
        places = np.arange(one.start, min(len(one.ids), longest) - 1, dtype=np.int32)
        pieces += [(index, places[at : at + anchors]) for at in range(0, len(places), anchors)]
    order = sorted(range(len(pieces)), key=lambda number: len(conversations[pieces[number][0]].ids))
    found_by_piece: dict[int, Any] = {}
    for at in range(0, len(order), texts):
        chosen = order[at : at + texts]
        tokens = [np.array(conversations[pieces[number][0]].ids[:longest], dtype=np.int32) for number in chosen]
        length = -(-max(len(one) for one in tokens) // LENGTH_STEP) * LENGTH_STEP
        places = np.zeros((len(chosen), anchors), dtype=np.int32)
        kept = np.zeros(places.shape, dtype=bool)
        for row, number in enumerate(chosen):
            places[row, : len(pieces[number][1])] = pieces[number][1]
            kept[row, : len(pieces[number][1])] = True
        batch = lay_out(tokens, places, kept, d.proposals, length)
        right, accept, confidence = _figures(trainee, dict(parameters), arrays_of(batch))
        valid = batch.weights > 0
        prefix = np.cumprod(np.array(right) & valid, axis=-1).sum(-1)
        chance = np.cumprod(np.array(accept) * valid, axis=-1).sum(-1)
        for row, number in enumerate(chosen):
            found_by_piece[number] = prefix[row][kept[row]]
        blocks = kept & valid[..., 0]
        chances.append(chance[blocks])
        prefixes.append(prefix[blocks])
        possibles.append(valid.sum(-1)[blocks])
        if d.confidence:
            confidences.append(np.array(confidence)[blocks])
    for number, (index, _) in enumerate(pieces):
        walks[index].right += [int(count) for count in found_by_piece[number]]
    by_kind = {ALL: Worth(0, 0)}
    for one, walk in zip(conversations, walks, strict=True):
        made = walk.rounds()
        for kind in (one.kind, ALL):
            before = by_kind.get(kind, Worth(0, 0))
            by_kind[kind] = Worth(before.tokens + made.tokens, before.rounds + made.rounds)
    return Judgement(
        dict(sorted(by_kind.items())),
        1 + float(np.concatenate(chances).mean()) if chances else 1.0,
        np.concatenate(confidences) if confidences else None,
        np.concatenate(prefixes) if prefixes else np.zeros(0, dtype=int),
        np.concatenate(possibles) if possibles else np.zeros(0, dtype=int),
    )


def _figures(
    trainee: Trainee, parameters: dict[str, mx.array], arrays: dict[str, mx.array]
) -> tuple[mx.array, mx.array, mx.array]:
    found = trainee.figures(parameters, arrays, Weighting())
    confidence = mx.zeros((1,)) if found.confidence is None else found.confidence
    return found.right, found.accept, confidence
