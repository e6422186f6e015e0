"""What to load, and whether there is room for it."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from pathlib import Path

from slipstream.engine.load import Precision
from slipstream.errors import WontFit
from slipstream.store import files, heads, memory

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pair:
    """What to load: a target folder, its drafters' folders, and how."""

    target: Path
    drafters: tuple[Path, ...] = ()
    name: str = ""
    precision: Precision = field(default_factory=Precision)
    kv_bits: int = 0
    trust_code: bool = False  # run the Python that the target's folder brings, if its config asks for it
    guard_memory: bool = True  # refuse what this machine has no room for
    max_batch: int = 1  # requests that share a round
    own_heads: bool = False  # the target's MTP heads too, where it has any that can be read and there is room for them


def with_own_heads(pair: Pair) -> Pair:
    """With its target's MTP heads among the drafters, where they are asked for, there, and have room."""
    if not pair.own_heads or not heads.has(pair.target):
        return pair
    whole = replace(pair, drafters=(*pair.drafters, pair.target))
    if pair.guard_memory:
        try:
            check_room(whole)
        except WontFit as error:
            logger.warning("the MTP heads of %s are left out: %s", pair.target.name, error.message)
            return pair
    return whole


def check_room(pair: Pair) -> memory.Limit:
    """What this machine can give. Raises WontFit when it is too little for the pair with a short context."""
    drafters = [path for path in pair.drafters if not path.is_file()]  # a GGUF is small, and read as it is
    for folder in (pair.target, *drafters):
        files.check(folder)
    limit = memory.limit()
    half = pair.precision.dtype in ("float16", "bfloat16")
    found = memory.fit(
        pair.target,
        tuple(drafters),
        context=memory.LEAST_CONTEXT,
        kv_bits=pair.kv_bits,
        cpu_bytes=2 if half else 4,
        against=limit,
    )
    found.check(pair.name or pair.target.name)
    return limit
