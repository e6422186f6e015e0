"""Making a drafter from beginning to end: conversations, training, judgement, export. One call, and what it says."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np

from slipstream import __version__
from slipstream.drafters.descriptor import Descriptor
from slipstream.errors import InvalidRequest, UnsupportedModel
from slipstream.models.target import Target
from slipstream.models.tokeniser import Tokeniser
from slipstream.train.calibrate import temperatures
from slipstream.train.corpus import HELD_OUT_SHARE, About, Conversation, Corpus
from slipstream.train.design import TargetShape
from slipstream.train.export import export, most_said
from slipstream.train.judge import Judgement, judge
from slipstream.train.loop import Control, Figure, Outcome, Paused, Recipe, train
from slipstream.train.loss import PART_ROWS
from slipstream.train.network import fresh
from slipstream.train.questions import Given, Turns, bundled_prompts
from slipstream.train.sampler import Ask, Sampler
from slipstream.train.step import D2T, FC, Precision, Trainee, channel_scale
from slipstream.train.writing import Amount, Writer, Written
from slipstream.types import Chat

HELD_OUT = 64  # conversations that judge, at least, as long as that is no more than a tenth
HELD_OUT_MOST = 256  # conversations that a judgement looks at
USUAL_SIZE = 0.05  # of trained weights
COUNTS = "counts.npy"
DRAFT_IDS = "draft_ids.npy"
ANSWER = 160  # tokens of an answer to a prompt that only judges


@dataclass(frozen=True, slots=True)
class Judged:
    """Greedy tokens per round, by kind; `what` says over which texts and weights."""

    what: str
    by_kind: dict[str, float]
    everywhere: float  # were rounds to begin at every position, which compares with a Figure's `same`
    chance: float  # likewise, expected at temperature 1


Report = Written | Figure | Judged | Paused


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be made, and where it lies meanwhile."""

    recipe: Recipe
    amount: Amount
    data: Path
    run: Path
    output: Path
    precision: Precision = field(default_factory=Precision)
    part: int = PART_ROWS
    data_seconds: float | None = None
    judge_by: tuple[Given, ...] = ()  # prompts that are never trained on
    every: int = 20
    save_every_s: float = 60.0


class Maker:
    """Makes a drafter for a loaded target. On the thread that owns it. Raises UnsupportedModel when none can be."""

    def __init__(self, target: Target, tokeniser: Tokeniser, config: dict[str, Any], name: str) -> None:
        if not target.has_taps:
            raise UnsupportedModel(
                f"no drafter can be made for {target.model_type!r}: its hidden states are not known; use --mode lookup"
            )
        self.target, self.tokeniser, self.name = target, tokeniser, name
        self.shape = TargetShape.of(
            config,
            layers=target.layer_count,
            hidden=target.hidden_size,
            vocabulary=target.vocabulary,
            context=target.context,
        )

    def write(
        self, plan: Plan, given: Sequence[Given], say: Callable[[Report], None], control: Control, part: int, parts: int
    ) -> int:
        """Conversations, as many as are missing. How many shards there are then."""
        corpus = Corpus(plan.data)
        settings = {key: value for key, value in asdict(plan.amount).items() if key not in ("shards", "width")}
        corpus.open(About(self.name, settings | {"prompts": len(given)}))
        began = time.monotonic()

        def is_over(next_s: float) -> bool:
            nonlocal began
            began += control.wait()
            late = plan.data_seconds is not None and time.monotonic() - began + next_s > plan.data_seconds
            return control.is_stopped or (late and bool(corpus.shards()))

        control.wait()
        writer = Writer(self.target, self.tokeniser, given, plan.amount)
        return writer.write(corpus, say, part=part, parts=parts, until=is_over)

    def fit(
        self,
        plan: Plan,
        say: Callable[[Report], None],
        control: Control,
        *,
        start: dict[str, mx.array] | None = None,
        begins_from: str = "new",
        used: Sequence[Conversation] = (),
        group: Any = None,
    ) -> tuple[Outcome, Judgement] | None:
        """Train on the conversations there are, judge, and export. None when it was stopped before the end.

        `used`: the user's own, to be learned from instead. None also when those held out of them got no better.
        `group`: processes that share the work; the first one judges, exports and says things.
        """
        is_first = group is None or group.rank() == 0
        recipe = plan.recipe
        d = recipe.design.descriptor(self.shape)
        conversations = list(used) or list(Corpus(plan.data).read())
        share = min(max(HELD_OUT_SHARE, HELD_OUT / max(len(conversations), 1)), 0.1)
        learned = [one for one in conversations if one.place >= share]
        if len(learned) < 2:
            raise InvalidRequest(f"{plan.data} has no conversations to learn from; make some first")
        held_out = [one for one in conversations if one.place < share and (used or one.temperature == 0)]
        held_out = held_out[:HELD_OUT_MOST]
        if used and not held_out:
            raise InvalidRequest(f"{len(used)} answers are too few to hold any out; give more", option="answers")
        # How often each token is said: which of them a smaller draft vocabulary would need.
        said = np.bincount(np.concatenate([one.ids[one.start :] for one in learned]), minlength=self.shape.vocabulary)
        if is_first:
            plan.data.parent.mkdir(parents=True, exist_ok=True)
            np.save(plan.data.parent / COUNTS, said.astype(np.int32))
        texts = [
            self.tokeniser.encode(Chat(({"role": "user", "content": one.text},))) for one in bundled_prompts()[::4]
        ]
        scale = channel_scale(self.target, d.taps, texts)
        trainee = Trainee(d, self.target, plan.precision, plan.part, scale, _draft_ids(plan.run, d, said, start))
        if start is None:
            parameters = fresh(d, len(d.taps) * self.target.hidden_size, recipe.seed, self.target.final_norm)
        else:
            parameters = trainee.learned(start)
            # The norm behind it undoes any size; this one suits the steps.
            size = mx.sqrt(mx.mean(mx.square(parameters[FC])))
            parameters[FC] = parameters[FC] * (USUAL_SIZE / size)
        before = judge(trainee, parameters, held_out, longest=recipe.longest) if used else None
        outcome = train(
            trainee,
            parameters,
            learned,
            recipe,
            plan.run,
            say=say if is_first else lambda _: None,
            control=control,
            every=plan.every,
            save_every_s=plan.save_every_s,
            group=group,
            begins_from=begins_from,
        )
        if not (outcome.is_finished and is_first):
            return None
        mx.clear_cache()
        judged = {
            "average": judge(trainee, outcome.average, held_out, longest=recipe.longest),
            "last": judge(trainee, outcome.parameters, held_out, longest=recipe.longest),
        }
        for what, found in judged.items():
            say(_said(f"held out, {what} weights", found))
        better = max(judged, key=lambda what: judged[what].per_round)
        best, found = {"average": outcome.average, "last": outcome.parameters}[better], judged[better]
        if before is not None:
            say(_said("held out, before", before))
            if found.per_round <= before.per_round:
                return None
        if d.confidence and len(found.prefix):
            d = replace(d, confidence_temperatures=temperatures(found.confidence, found.prefix, found.possible))
        if plan.judge_by:
            unseen = judge(trainee, best, self.answers(plan.judge_by), longest=recipe.longest)
            say(_said("prompts never trained on", unseen))
        metadata = {
            "version": __version__,
            "target": self.name,
            "from": begins_from,
            "recipe": {key: value for key, value in asdict(recipe).items() if key != "design"},
            "conversations": len(learned),
            "steps": outcome.steps,
            "seconds": round(outcome.seconds),
            "weights": better,
            "tokens_per_round": {kind: round(worth.per_round, 3) for kind, worth in found.by_kind.items()},
        }
        export(plan.output, d, trainee.published(best), metadata)
        return outcome, found

    def answers(self, given: Sequence[Given], limit: int = ANSWER) -> list[Conversation]:
        """Greedy answers to prompts that judge."""
        prompts = Turns(self.tokeniser).render_all([one.text for one in given])
        asks = [Ask(ids, 0.0, limit) for ids in prompts]
        written = Sampler(self.target, 0).sample(asks, self.tokeniser.end_ids, 1024)
        return [
            Conversation((*ids, *answer), len(ids), one.kind, 0.0)
            for one, ids, answer in zip(given, prompts, written, strict=True)
            if len(answer) >= 2
        ]


def _draft_ids(run: Path, d: Descriptor, said: Any, start: Mapping[str, mx.array] | None) -> mx.array | None:
    """Which tokens can be drafted; None: all. A run that goes on keeps those it began with."""
    if not d.is_reduced:
        return None
    if start is not None:
        return (start[D2T].astype(mx.int32) + mx.arange(d.draft_vocabulary)).astype(mx.int32)
    kept = run / DRAFT_IDS
    if kept.exists():
        return mx.array(np.load(kept))
    ids = most_said(said, d.draft_vocabulary)  # the same for every process of a group
    run.mkdir(parents=True, exist_ok=True)
    partial = run / f".{os.getpid()}-{DRAFT_IDS}"
    np.save(partial, np.array(ids))
    partial.replace(kept)
    return ids


def _said(what: str, found: Judgement) -> Judged:
    return Judged(
        what, {kind: round(worth.per_round, 3) for kind, worth in found.by_kind.items()}, found.everywhere, found.chance
    )
