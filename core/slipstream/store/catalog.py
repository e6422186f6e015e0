"""Known targets and the drafters made for them, from `resources/catalog.toml`. What is not known is absent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

KINDS = ("dspark", "dflash", "dflash2", "mtp")
PACKAGINGS = ("deepspec", "speculators", "specforge", "lfm2", "flat", "ornith", "zlab", "gguf", "in target")
_TASKS = ("maths", "code", "chat")


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Tokens per target pass, the target's own token included, by task, and where the figures are from."""

    tokens_per_round: Mapping[str, float]  # "maths", "code", "chat"
    measured: str  # by whom, with what

    @property
    def typical(self) -> float:
        """The middle figure: what to expect of mixed use."""
        figures = sorted(self.tokens_per_round.values())
        return figures[len(figures) // 2] if len(figures) % 2 else sum(figures[len(figures) // 2 - 1 :][:2]) / 2


@dataclass(frozen=True, slots=True)
class DrafterEntry:
    """A published drafter."""

    repo: str  # exact id on the hub
    kind: str  # one of KINDS
    source: str  # where these facts are from
    packaging: str | None = None  # one of PACKAGINGS
    file: str | None = None  # of a repo that holds several: the one to use
    bytes: int | None = None
    licence: str | None = None
    block: int | None = None
    taps: tuple[int, ...] = ()  # 0-based target layers
    acceptance: Acceptance | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class TargetEntry:
    """A target as published; every quantised copy of it matches."""

    name: str
    family: str
    repo: str  # exact id of the original
    source: str
    also: tuple[str, ...] = ()  # other names of the same weights: matched by their last part
    quants: Mapping[str, str] | None = None  # "4-bit" -> exact repo id that loads in MLX
    licence: str | None = None
    parameters: int | None = None
    bytes: Mapping[str, int] | None = None  # "4-bit" -> size of its files
    context: int | None = None
    layers: int | None = None
    hidden_size: int | None = None
    drafters: tuple[DrafterEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class Catalog:
    targets: tuple[TargetEntry, ...]

    def find(self, name: str, base_models: Sequence[str] = ()) -> TargetEntry | None:
        """The entry whose target `name` is, in any precision and from any publisher.

        `name`: a repo id, folder or file name. `base_models`: what the model's card says it was made from.
        """
        for candidate in (name, *base_models):
            stem = stem_of(candidate)
            for target in self.targets:
                if stem in {stem_of(known) for known in (target.repo, *target.also, *(target.quants or {}).values())}:
                    return target
        return None

    def drafter(self, repo: str) -> tuple[TargetEntry, DrafterEntry] | None:
        """A known drafter and its target."""
        return next(((t, d) for t in self.targets for d in t.drafters if d.repo.lower() == repo.lower()), None)

    def search(self, query: str) -> list[TargetEntry]:
        """Targets in whose names, or whose drafters' names, every word of the query occurs."""
        words = query.lower().split()

        def text(target: TargetEntry) -> str:
            return " ".join((target.name, target.family, target.repo, *(d.repo for d in target.drafters))).lower()

        return [target for target in self.targets if all(word in text(target) for word in words)]


def load(file: Path | None = None) -> Catalog:
    """The catalogue in `file`, or the one that comes with Slipstream. Raises InvalidRequest, naming the line."""
    raise NotImplementedError


def stem_of(name: str) -> str:
    """A model's name without publisher, precision and format, for comparison."""
    raise NotImplementedError
