"""How a model's MTP heads are to be read, decided by how often their guesses are the target's own choice.

Publishers store norms as they are or as what is added to 1, one group this way and another that, and nothing in a file
says which; nor whether the heads read the stream before or behind the final norm. A wrong reading never fails.
"""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import mlx.core as mx

from slipstream.drafters.mtp import Mtp
from slipstream.drafters.mtp_weights import NORMS, Reading
from slipstream.engine.self_test import FIRST_ANCHOR, Understanding, mark
from slipstream.models.host import number
from slipstream.models.target import Target
from slipstream.store.atomic import write_text

logger = logging.getLogger(__name__)

CLEARLY = 0.1  # of all guesses, by which another reading must be better than the likeliest one


def choose(target: Target, drafter: Mtp, ids: Sequence[int]) -> Understanding:
    """Read the heads in the way that is right most often on a text; the likeliest way, where others are as good."""
    forward = target.forward(mx.array(list(ids), dtype=mx.int32), target.make_cache(), drafter.taps, rows=len(ids))
    assert forward.logits is not None
    truth = mx.argmax(forward.logits, axis=-1)[FIRST_ANCHOR:]  # what follows each token
    stream = forward.taps[drafter.taps[0]]

    def right() -> Understanding:
        guessed = drafter.guesses(ids, stream)[FIRST_ANCHOR - 1 :]
        return Understanding(int(number(mx.sum(guessed == truth))), len(ids) - FIRST_ANCHOR)

    likeliest = drafter.reading
    best, found = likeliest, right()
    for reading in _readings():
        drafter.read_as(reading)
        other = right()
        if other.share > found.share + (CLEARLY if best == likeliest else 0.0):
            best, found = reading, other
    drafter.read_as(best)
    logger.debug("MTP heads read as %s: %d of %d guesses right", best, found.right, found.possible)
    return found


def _readings() -> list[Reading]:
    groups = [frozenset(some) for count in range(len(NORMS) + 1) for some in itertools.combinations(NORMS, count)]
    return [Reading(normed, offset) for normed in (True, False) for offset in groups]


def remembered(target: Path, heads: Path) -> Reading | None:
    """How this pair, as it is on disk, was found to be read."""
    try:
        said = json.loads(_note(target, heads).read_text(encoding="utf-8"))
        return Reading(bool(said["normed"]), frozenset(NORMS.keys() & set(said["offset"])))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remember(target: Path, heads: Path, reading: Reading) -> None:
    with suppress(OSError):  # then it is measured again
        note = _note(target, heads)
        note.parent.mkdir(parents=True, exist_ok=True)
        write_text(note, json.dumps({"normed": reading.normed, "offset": sorted(reading.offset)}))


def _note(target: Path, heads: Path) -> Path:
    return mark(target, heads).with_suffix(".json")
