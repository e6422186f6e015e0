"""What the window asks the engine's thread to load. Names and numbers only, so that a restart can ask again."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slipstream.engine.costs import Costs
from slipstream.events import Event, Report
from slipstream.jobs import Job
from slipstream.service import Engine

if TYPE_CHECKING:
    from slipstream.engine.held import Ledger
    from slipstream.store.reuse import CacheDesk

SAFE_CONTEXT = 4096  # tokens, in safe mode


@dataclass(frozen=True, slots=True)
class PairChoice:
    """A target and its drafters, by folder or name. Without a target: the built-in pair."""

    title: str
    target: str | None = None
    drafters: tuple[str, ...] | None = None  # None: the pair's own; (): none
    kv_bits: int = field(default=0, compare=False)  # how, not what
    max_batch: int = field(default=1, compare=False)  # so is this
    context: int | None = None  # at most so many tokens; None: as the model says

    @property
    def safe(self) -> PairChoice:
        """The same target without a drafter and with a short context."""
        return replace(self, drafters=(), context=SAFE_CONTEXT)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> PairChoice:
        """Raises TypeError for what is none."""
        choice = cls(**stored)
        return choice if choice.drafters is None else replace(choice, drafters=tuple(choice.drafters))

    @property
    def is_safe(self) -> bool:
        return self.drafters == () and self.context == SAFE_CONTEXT


BUILT_IN = PairChoice("SmolLM2 135M + DSpark")


def made_choice(title: str, model: str | None, drafter: Path, kind: str = "DSpark") -> PairChoice:
    """A model with a drafter that was made here. `title`: the model's."""
    return PairChoice(f"{title} + own {kind}", model, (str(drafter),))


def open_choice(choice: PairChoice, report: Report | None = None, desk: CacheDesk | None = None) -> Engine:
    """Load a pair. On the engine's thread, which is the first to import MLX. Raises SlipstreamError.

    `report`: told of each piece that was read. `desk`: where others find the engine's prefix cache.
    """
    import argparse

    from slipstream.commands.options import add_batch, add_pair, cache_limits, open_pair
    from slipstream.models.backend import prepare
    from slipstream.types import Mode

    prepare()
    _import_engine()
    parser = argparse.ArgumentParser()
    add_pair(parser)
    add_batch(parser)
    words = ["--kv-bits", str(choice.kv_bits), "--max-batch", str(choice.max_batch)]
    if choice.target is not None:
        words += ["--model", choice.target]
    if choice.drafters is not None:
        for name in choice.drafters or ("none",):
            words += ["--drafter", name]
    engine = open_pair(parser.parse_args(words), (Mode.DSPARK, Mode.DFLASH, Mode.MTP), cache_limits(), desk, report)
    return engine if choice.context is None else _Shortened(engine, choice.context)


@cache
def _import_engine() -> None:
    """Once, before there is a model: what is imported stays for good, and looking through it for garbage stops every
    thread for a tenth of a second. A model must not be among it, as it could not be freed again.
    """
    import slipstream.engine.engine  # pyright: ignore[reportUnusedImport] # noqa: F401

    gc.freeze()


def costs_of(engine: Engine) -> Costs | None:
    """What an engine learned of this machine; None where it learns nothing."""
    costs = getattr(engine, "costs", None)
    return costs if isinstance(costs, Costs) else None


def ledger_of(engine: Engine) -> Ledger | None:
    """What an engine counts of its memory; None where it counts nothing."""
    return getattr(engine, "ledger", None)


class _Shortened:
    """An engine that takes fewer tokens than its model could."""

    def __init__(self, engine: Engine, context: int) -> None:
        self._engine = engine
        self.info = replace(engine.info, context=min(context, engine.info.context))
        self.costs = costs_of(engine)
        self.ledger = ledger_of(engine)
        self.rest = engine.rest
        self.close = engine.close

    def run(self, job: Job) -> Iterator[Event]:
        return self._engine.run(job)
