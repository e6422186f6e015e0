"""Does a drafter understand its target? Measured when a pair is first loaded, on a short text, without generating.

A wrong convention (tap numbering, first slot, rotation, norms) never fails: it only drafts badly. So the drafts along a
text are compared with what the target says there, and a drafter that is hardly ever right is reported.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import mlx.core as mx

from slipstream.drafters.descriptor import Descriptor
from slipstream.drafters.protocol import Drafter
from slipstream.models.host import ints
from slipstream.models.target import Target
from slipstream.store.paths import cache_dir

logger = logging.getLogger(__name__)

# Plain enough that a target agrees with most of it, which is what drafts can be measured against.
TEXT = (
    "The seven days of the week are Monday, Tuesday, Wednesday, Thursday, Friday, Saturday and Sunday. The first ten "
    "numbers are one, two, three, four, five, six, seven, eight, nine and ten. Counting on in figures: 11, 12, 13, 14, "
    "15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30."
)
FIRST_ANCHOR, ANCHOR_STEP = 16, 8
ENOUGH = 12  # drafts that could have been right, from which on the share says something
SUSPICIOUS = 0.15  # of the drafts that could have been right; published drafters reach 0.4 and more


@dataclass(frozen=True, slots=True)
class Understanding:
    """Drafts that were right before the first wrong one, of those that could have been."""

    right: int
    possible: int

    @property
    def share(self) -> float:
        return self.right / max(self.possible, 1)

    @property
    def is_suspicious(self) -> bool:
        return self.possible >= ENOUGH and self.share < SUSPICIOUS


def measure(target: Target, drafter: Drafter, ids: Sequence[int]) -> Understanding:
    """Draft from several places of a text. A draft could have been right as far as the target agrees with the text."""
    forward = target.forward(mx.array(list(ids), dtype=mx.int32), target.make_cache(), drafter.taps, rows=len(ids))
    assert forward.logits is not None
    truth = ints(mx.argmax(forward.logits, axis=-1))  # what follows each token
    state, right, possible = drafter.begin(), 0, 0
    for anchor in range(FIRST_ANCHOR, len(ids) - 1, ANCHOR_STEP):
        rows = slice(state.length, anchor)
        drafter.observe(state, ids[rows], {tap: stream[rows] for tap, stream in forward.taps.items()})
        proposal = drafter.propose(state, ids[anchor], drafter.block, lambda logits, _: mx.argmax(logits, axis=-1))
        is_right = True
        for draft, at in zip(ints(proposal.tokens), range(anchor, len(ids) - 1), strict=False):
            is_right = is_right and draft == truth[at]
            right, possible = right + is_right, possible + 1
            if truth[at] != ids[at + 1]:
                break
    return Understanding(right, possible)


Remake = Callable[[Descriptor], Drafter]
"""The same drafter read in another way."""


def check(
    target: Target,
    drafter: Drafter,
    ids: Sequence[int],
    name: str,
    better_reading: Callable[[Understanding], str] = lambda _: "",
) -> Understanding:
    """Measure a drafter that was just loaded, and warn when it understands its target hardly at all.

    `better_reading`: asked then which other convention does much better, in words.
    """
    found = measure(target, drafter, ids)
    logger.debug("%s: %d of %d drafts right on a known text", name, found.right, found.possible)
    if found.is_suspicious:
        better = better_reading(found)
        logger.warning(
            "%s is right in only %d of %d drafts on a known text: it seems to be made for another model or precision, "
            "or to follow another convention%s; the text stays right, but expect no speed from it",
            name,
            found.right,
            found.possible,
            f" ({better})" if better else "",
        )
    return found


def better_reading(
    target: Target, descriptor: Descriptor, remake: Remake, ids: Sequence[int], found: Understanding
) -> str:
    """Which other convention does much better, if one does. Tried are those that no tensor shows."""
    d = descriptor
    others = {
        f"with logits_start {1 - d.first}": replace(d, first=1 - d.first),
        "with each tap one layer later": replace(d, taps=tuple(tap + 1 for tap in d.taps)),
        "with each tap one layer earlier": replace(d, taps=tuple(tap - 1 for tap in d.taps)),
    }
    for words, other in others.items():
        if not -1 <= min(other.taps) <= max(other.taps) < target.layer_count or not other.proposals:
            continue
        again = measure(target, remake(other), ids)
        if again.possible >= ENOUGH and again.share > 2 * max(found.share, SUSPICIOUS):
            return f"{words} it would be right in {again.right} of {again.possible}"
    return ""


def has_passed(target: Path, drafter: Path) -> bool:
    """Whether this pair, as it is on disk, was found in order before."""
    return mark(target, drafter).exists()


def remember(target: Path, drafter: Path) -> None:
    passed = mark(target, drafter)
    with suppress(OSError):  # then it is measured again
        passed.parent.mkdir(parents=True, exist_ok=True)
        passed.touch()


def mark(target: Path, drafter: Path) -> Path:
    """The file that stands for a pair as it is on disk."""
    said = hashlib.sha256()
    for path in (target, drafter):
        for file in sorted([path] if path.is_file() else path.glob("*")):
            facts = file.stat()
            said.update(f"{file.resolve()} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    return cache_dir() / "self-tests" / said.hexdigest()[:32]
