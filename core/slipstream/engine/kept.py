"""One request and the prefix cache: what it begins from, and what it leaves for the next."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import mlx.core as mx
import numpy as np

from slipstream.drafters.protocol import KeepsRows
from slipstream.engine.planner import Drafters
from slipstream.events import Miss, Shortfall
from slipstream.models import kept
from slipstream.models.cache import TargetCache
from slipstream.store.pieces import Found, Source
from slipstream.store.prompt_file import Stored
from slipstream.store.reuse import PromptCache
from slipstream.store.shelf import CHECKPOINT_EVERY
from slipstream.types import Mode

logger = logging.getLogger(__name__)

TARGET = "target"
TAIL = 24  # tokens at the end of a prompt in which the template begins the answer's turn

_NAMES = {
    mx.float32: "F32",
    mx.float16: "F16",
    mx.bfloat16: "BF16",
    mx.uint32: "U32",
    mx.int32: "I32",
    mx.uint8: "U8",
    mx.int8: "I8",
    mx.uint16: "U16",
    mx.int16: "I16",
    mx.int64: "I64",
    mx.bool_: "BOOL",
}
_TYPES = {name: dtype for dtype, name in _NAMES.items()}


class MlxArrays:
    """Rows are MLX arrays whose third axis is tokens."""

    def cut(self, rows: Mapping[str, mx.array], start: int, stop: int) -> Mapping[str, mx.array]:
        return kept.cut(rows, start, stop)

    def freeze(self, arrays: Mapping[str, mx.array]) -> Mapping[str, Stored]:
        return {
            name: Stored(_NAMES[array.dtype], tuple(array.shape), memoryview(array))  # pyright: ignore[reportArgumentType]
            for name, array in arrays.items()
        }

    def thaw(self, arrays: Mapping[str, Stored]) -> Mapping[str, mx.array]:
        made = {
            name: mx.array(np.frombuffer(stored.data, dtype=np.uint8)).view(_TYPES[stored.dtype]).reshape(stored.shape)
            for name, stored in arrays.items()
        }
        mx.eval(list(made.values()))
        return made


@dataclass(slots=True)
class _TargetSource:
    cache: TargetCache
    checkpoints: dict[int, kept.Arrays] = field(default_factory=dict[int, kept.Arrays])

    @property
    def row_bytes(self) -> int:
        return kept.row_bytes(self.cache)

    def rows(self, start: int, stop: int) -> kept.Arrays:
        return kept.rows(self.cache, start, stop)


@dataclass(slots=True)
class _DrafterSource:
    drafter: KeepsRows
    state: Any  # the drafter's own
    checkpoints: dict[int, kept.Arrays] = field(default_factory=dict[int, kept.Arrays])

    @property
    def row_bytes(self) -> int:
        return kept.bytes_per_row(self.drafter.buffers(self.state))

    def rows(self, start: int, stop: int) -> kept.Arrays:
        return kept.cut(self.drafter.buffers(self.state), start, stop)


class Keeper:
    """`find`, `fetch` to its end and `restore` before the prefill; `note` at each of `stops` in it; `keep` behind it.

    `prompts`: None when nothing is kept. `names`: of the parts in the cache, for each drafter that has any state.
    `marks`: tokens with which turns begin and end.
    """

    def __init__(
        self,
        prompts: PromptCache | None,
        prompt: Sequence[int],
        cache: TargetCache,
        drafters: Drafters,
        names: Mapping[Mode, str],
        marks: Callable[[], Collection[int]],
    ) -> None:
        self._drafting = [
            (names[drafter.mode], drafter.mode, drafter)
            for drafter, _ in drafters.states
            if drafter.taps and isinstance(drafter, KeepsRows)
        ]
        is_kept = len(self._drafting) == sum(bool(drafter.taps) for drafter, _ in drafters.states)
        self._prompts = prompts if is_kept else None
        self._prompt = prompt
        self._cache = cache
        self._drafters = drafters
        self._marks = marks
        self._has_fixed = kept.has_fixed(cache)
        self._checkpoints: dict[int, kept.Arrays] = {}
        self._found: Found | None = None
        self.stops: tuple[int, ...] = ()

    @property
    def reused(self) -> int:
        return 0 if self._found is None else self._found.tokens

    @property
    def shortfall(self) -> Shortfall | None:
        return Shortfall(Miss.OFF, 0) if self._found is None else self._found.shortfall

    def find(self) -> None:
        if self._prompts is None:
            return
        needs = {TARGET: self._has_fixed, **{name: False for name, _, _ in self._drafting}}
        self._found = self._prompts.find(self._prompt, needs)

    def fetch(self) -> Iterator[None]:
        """Read what is on disk, a file at each step."""
        if self._prompts is not None and self._found is not None:
            yield from self._prompts.fetch(self._found)

    def restore(self) -> None:
        """Put what was found into the caches, and decide where to stop in the prefill."""
        found = self._found
        if found is None:
            return
        if found.tokens:
            buffers = {mode: kept.join(found.rows_of(name), found.tokens) for name, mode, _ in self._drafting}
            kept.restore(self._cache, found.rows_of(TARGET), found.fixed_of(TARGET), found.tokens)
            self._drafters.restore(self._prompt[: found.tokens], buffers)
            mx.eval(self._drafters.arrays())
        if self._has_fixed:
            self.stops = tuple(self._boundaries(found))
        self._log(found)
        found.pieces.clear()  # their arrays are copied, and need not outlive an eviction

    def note(self, done: int) -> None:
        """After so many tokens of the prompt."""
        if done in self.stops:
            self._checkpoints[done] = kept.fixed(self._cache)

    def keep(self, tokens: Sequence[int]) -> None:
        """For the next prompt that begins with these tokens. The caches hold them, and perhaps more."""
        if self._prompts is None:
            return
        count = min(len(tokens), self._cache.length)
        if self._has_fixed and self._cache.length > count and not self._cache.fixed_kinds:
            self._cache.rewind(count)  # what was said behind the end is not part of any prompt
        checkpoints = dict(self._checkpoints)
        if self._has_fixed and self._cache.length == count:
            checkpoints[count] = kept.fixed(self._cache)
        sources: dict[str, Source] = {TARGET: _TargetSource(self._cache, checkpoints)}
        states = {drafter.mode: state for drafter, state in self._drafters.states}
        for name, mode, drafter in self._drafting:
            sources[name] = _DrafterSource(drafter, states[mode])
        if count:
            self._prompts.keep(tokens[:count], sources)
        self._checkpoints.clear()

    def tick(self) -> None:
        if self._prompts is not None:
            self._prompts.tick()

    def _boundaries(self, found: Found) -> Iterator[int]:
        """Where later prompts are likely to part from this one: a state that cannot be cut is kept there.

        The end of the system prompt, the last turn's end before the template begins the answer, where this prompt
        parted from another one, and every few thousand tokens.
        """
        prompt, last = self._prompt, len(self._prompt) - 1
        marks = self._marks()
        tail = next((at for at in range(max(0, last - TAIL), last + 1) if prompt[at] in marks), None)
        wanted = {found.matched, *range(CHECKPOINT_EVERY, last, CHECKPOINT_EVERY)}
        if tail is not None:
            wanted |= {tail, prompt.index(prompt[tail])}
        yield from sorted(at for at in wanted if found.tokens < at < last)

    def _log(self, found: Found) -> None:
        reason = (
            "" if found.shortfall is None else f" ({_SENTENCES[found.shortfall.reason]} {found.shortfall.position})"
        )
        logger.info("reused %d of %d prompt tokens%s", found.tokens, len(found.prompt), reason)


_SENTENCES = {
    Miss.OFF: "prompts are not kept; from token",
    Miss.NEW: "nothing was kept yet; from token",
    Miss.IDENTITY: "what is kept is another model's or version's; from token",
    Miss.DIFFERS: "differs at token",
    Miss.EVICTED: "gave way to other prompts from token",
    Miss.PART: "kept without this drafter's context from token",
    Miss.CHECKPOINT: "no checkpoint at token",
    Miss.DAMAGED: "a damaged file from token",
}
