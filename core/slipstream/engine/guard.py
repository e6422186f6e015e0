"""The memory guard: refuses what would make the system swap, and gives back what can go before it refuses."""

from __future__ import annotations

import logging
from collections.abc import Callable
from weakref import WeakKeyDictionary

from slipstream.errors import WontFit
from slipstream.models import buffers
from slipstream.models.cache import TargetCache
from slipstream.models.target import Target
from slipstream.store import memory, shape
from slipstream.store.candidate import Candidate
from slipstream.store.memory import Limit
from slipstream.store.sizes import words

logger = logging.getLogger(__name__)

LEAST_ANSWER = 256  # tokens that must have room after a prompt


class Guard:
    """Asked by the engine, on its thread, before a request starts and now and then while it runs.

    `sheds`: what gives memory back when asked, such as a cache of prompts; the cheapest loss first.
    """

    def __init__(
        self,
        config: Candidate,
        target: Target,
        limit: Limit,
        *,
        kv_bits: int = 0,
        headroom: Callable[[Limit], int] = memory.headroom,
    ) -> None:
        self.sheds: list[Callable[[], None]] = [buffers.give_back]
        self._shape = shape.of_config(config.config)
        self._element_bytes = target.dtype.size
        self._kv_bits = kv_bits
        self._limit = limit
        self._headroom = headroom
        # Rows that were promised to the caches of requests under way, which grow into them.
        self._promised: WeakKeyDictionary[TargetCache, int] = WeakKeyDictionary()

    def admit(self, prompt: int, max_tokens: int, cache: TargetCache) -> None:
        """Room for a prompt of so many tokens and the beginning of its answer, beside what others still grow into.

        It stays promised to the request's empty `cache` for as long as that lives. Raises WontFit, after everything
        that can be given back was.
        """
        if self._shape is None:
            return
        rows = prompt + min(max_tokens, LEAST_ANSWER)
        needed = self._bytes(rows)
        needed += memory.working_bytes(self._shape, rows, self._element_bytes, on_gpu=self._limit.on_gpu)
        others = sum(
            self._bytes(promised) - self._bytes(min(promised, other.length))
            for other, promised in self._promised.items()
        )
        if self.relieve(needed + others):
            self._promised[cache] = rows
            return
        room = max(0, self._headroom(self._limit) - others)
        raise WontFit(
            f"a prompt of {prompt:,} tokens needs {words(needed)} of memory and {words(room)} are left; "
            "shorten it, use --kv-bits 8, or choose a smaller model",
            needed=needed,
            free=room,
            prompt_tokens=prompt,
        )

    def _bytes(self, rows: int) -> int:
        assert self._shape is not None
        return self._shape.cache_bytes(rows, self._element_bytes, self._kv_bits)

    def relieve(self, needed: int = 0) -> bool:
        """Give memory back until so many bytes are free, if need be. Returns whether they are."""
        for shed in self.sheds:
            if self._headroom(self._limit) >= needed:
                return True
            logger.info("memory is short (%s needed); giving back what can go", words(needed))
            shed()
        return self._headroom(self._limit) >= needed
