"""The run: steps until the time or the number is reached, figures as they come, checkpoints, and going on."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import mlx.core as mx

from slipstream.errors import EngineFaulted
from slipstream.models.host import floats, number
from slipstream.train.batches import DECAY, Batch, Batches, Position
from slipstream.train.checkpoint import Checkpoints
from slipstream.train.corpus import Conversation
from slipstream.train.design import Design
from slipstream.train.loss import CE_WEIGHT, CONFIDENCE_WEIGHT, L1_WEIGHT
from slipstream.train.optimiser import Kind, Schedule, Tree, start
from slipstream.train.step import Step, Trainee, Weighting

NEW = "new"  # a run that begins from fresh weights


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that decides the result, beside the target and the conversations."""

    design: Design = field(default_factory=Design)
    texts: int = 64
    anchors: int = 64
    longest: int = 640
    rate: float = 1e-3
    warmup: int = 200
    optimiser: Kind = "adamw"
    clip: float = 1.0
    ema: float = 0.998
    decay: float = DECAY
    ce: float = CE_WEIGHT
    l1: float = L1_WEIGHT
    confidence: float = CONFIDENCE_WEIGHT
    steps: int | None = None  # None: as many as the time allows
    seconds: float | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Figure:
    """Progress: means since the last one."""

    step: int
    progress: float  # 0 to 1
    seconds: float  # of training, over all sittings
    rate: float
    loss: float
    ce: float
    l1: float
    confidence: float
    norm: float
    accept: tuple[float, ...]  # by position: chance that a draft is kept, the ones before it given
    agrees: tuple[float, ...]  # by position: the likeliest draft is the target's choice
    chance: float  # tokens per round expected at temperature 1, the target's own included
    same: float  # and greedily
    tokens_per_second: float  # of texts that the target read


@dataclass(frozen=True, slots=True)
class Paused:
    """It stands still, with what was learned saved; or goes on after that."""

    stands: bool


class Control:
    """Pause and stop, from any thread."""

    def __init__(self, say: Callable[[Paused], None] = lambda _: None) -> None:
        """`say` hears, on the thread that works, when a pause takes effect and when it ends."""
        self._say = say
        self._go = threading.Event()
        self._go.set()
        self._stopped = False

    def pause(self) -> None:
        self._go.clear()

    def resume(self) -> None:
        self._go.set()

    def stop(self) -> None:
        """After the step that is being made. What was learned is kept."""
        self._stopped = True
        self._go.set()

    @property
    def is_paused(self) -> bool:
        return not self._go.is_set()

    @property
    def is_stopped(self) -> bool:
        return self._stopped

    def wait(self) -> float:
        """Until there is no pause. Seconds that it took."""
        began = time.monotonic()
        if self.is_paused:
            self._say(Paused(stands=True))
            self._go.wait()
            self._say(Paused(stands=False))
        return time.monotonic() - began


@dataclass(slots=True)
class Outcome:
    parameters: Tree
    average: Tree
    steps: int
    seconds: float
    is_finished: bool


def train(
    trainee: Trainee,
    parameters: Tree,
    conversations: Sequence[Conversation],
    recipe: Recipe,
    folder: Path,
    *,
    say: Callable[[Figure], None] = lambda _: None,
    control: Control | None = None,
    every: int = 20,
    save_every_s: float = 60.0,
    group: Any = None,
    begins_from: str = NEW,
) -> Outcome:
    """Train from `parameters` on, or go on with what `folder` holds.

    Raises InvalidRequest when that was begun with other settings.

    Progress, and with it the learning rate, is by steps if the recipe names their number, else by time. With a `group`
    of processes each takes its part of every batch; they step together, as the first one's clock and control say.
    """
    control = control or Control()
    checkpoints = Checkpoints(folder)
    settings = asdict(recipe) | {"begins_from": begins_from}
    d = trainee.descriptor
    state, average = start(parameters, recipe.optimiser), dict(parameters)
    done, spent, position = 0, 0.0, Position()
    if (found := checkpoints.load()) is not None:
        checkpoints.check(settings, found.state)
        parameters, state, average = found.parameters, found.optimiser, found.average
        done, spent = int(found.state["step"]), float(found.state["seconds"])
        position = Position(**found.state["position"])
    mx.eval(parameters, state, average)
    rank, ranks = (0, 1) if group is None else (group.rank(), group.size())
    batches = Batches(
        conversations,
        texts=recipe.texts,
        anchors=recipe.anchors,
        predictions=d.proposals,
        longest=recipe.longest,
        seed=recipe.seed,
        rank=rank,
        ranks=ranks,
        decay=recipe.decay,
    )
    weighting = Weighting(recipe.ce, recipe.l1, recipe.confidence)
    step = Step(
        trainee,
        recipe.optimiser,
        weighting,
        clip=recipe.clip,
        ema=recipe.ema,
        ramp=2 * recipe.warmup if begins_from == NEW else 0,
        group=group,
    )
    schedule = Schedule(recipe.rate, recipe.warmup)
    began, saved, waiting = time.monotonic() - spent, time.monotonic(), _Means(d.proposals)

    def progress() -> float:
        by_steps = done / recipe.steps if recipe.steps else 0.0
        by_time = (time.monotonic() - began) / recipe.seconds if recipe.seconds else 0.0
        return max(by_steps, by_time)

    def save() -> None:
        if rank == 0:
            at = {"step": done, "seconds": time.monotonic() - began, "position": asdict(position), "recipe": settings}
            checkpoints.save({"parameters": parameters, "optimiser": state, "average": average}, at)

    with ThreadPoolExecutor(1) as ahead:
        for batch, behind in _prefetched(batches.after(position), ahead):
            if control.is_paused:
                mx.eval(parameters, state, average)
                save()
                began += control.wait()
            share, is_stopped = _agreed(progress(), control.is_stopped, group)
            if share >= 1.0 or is_stopped:
                break
            rate = schedule.at(done, share)
            parameters, state, average, found_now = step.run(parameters, state, average, batch, rate, done + 1)
            mx.async_eval(parameters, state, average, found_now)
            done, position = done + 1, behind
            waiting.add(found_now, batch)
            if done % every == 0 or done == 1:
                figure = waiting.figure(done, progress(), time.monotonic() - began, rate)
                if not figure.loss < float("inf"):
                    raise EngineFaulted(f"the loss is {figure.loss} at step {done}; start again with a lower --rate")
                say(figure)
            if time.monotonic() - saved > save_every_s:
                save()
                saved = time.monotonic()
    mx.eval(parameters, state, average)
    save()
    return Outcome(
        parameters, average, done, time.monotonic() - began, is_finished=_agreed(progress(), False, group)[0] >= 1.0
    )


def _agreed(share: float, is_stopped: bool, group: Any) -> tuple[float, bool]:
    """What the first process says of its clock and of being stopped: were they to differ, one would wait for ever."""
    if group is None or group.size() == 1:
        return share, is_stopped
    mine = [share, float(is_stopped)] if group.rank() == 0 else [0.0, 0.0]
    said = floats(mx.distributed.all_sum(mx.array(mine), group=group))
    return said[0], said[1] > 0


def _prefetched(
    batches: Iterator[tuple[Batch, Position]], ahead: ThreadPoolExecutor
) -> Iterator[tuple[Batch, Position]]:
    """The next batch is laid out while the device works at this one."""
    coming = ahead.submit(next, batches)
    while True:
        now = coming.result()
        coming = ahead.submit(next, batches)
        yield now


class _Means:
    """Figures of the steps since the last report. The device is waited for: only a few steps may be unfinished."""

    def __init__(self, predictions: int) -> None:
        self._predictions = predictions
        self._found: deque[Mapping[str, mx.array]] = deque()
        self._tokens, self._since = 0, time.monotonic()

    def add(self, found: Mapping[str, mx.array], batch: Batch) -> None:
        self._found.append(found)
        self._tokens += int(batch.tokens.size)
        if len(self._found) > 2:
            mx.eval(self._found[-3]["loss"])  # else Python would run far ahead of the device

    def figure(self, step: int, progress: float, seconds: float, rate: float) -> Figure:
        found, count = list(self._found), len(self._found)
        self._found.clear()

        def total(name: str) -> mx.array:
            return sum((one[name] for one in found), mx.zeros_like(found[0][name]))

        weights, blocks = number(total("weights")), number(total("blocks"))
        valid = total("valid")
        made = Figure(
            step=step,
            progress=min(progress, 1.0),
            seconds=seconds,
            rate=rate,
            loss=number(total("loss")) / count,
            ce=number(total("ce")) / weights,
            l1=number(total("l1")) / weights,
            confidence=number(total("bce")) / weights,
            norm=number(total("norm")) / count,
            accept=tuple(floats(total("accept") / mx.maximum(valid, 1))),
            agrees=tuple(floats(total("agrees") / mx.maximum(valid, 1))),
            chance=1 + number(total("chance")) / blocks,
            same=1 + number(total("same")) / blocks,
            tokens_per_second=self._tokens / max(time.monotonic() - self._since, 1e-9),
        )
        self._tokens, self._since = 0, time.monotonic()
        return made
