"""How much of a prompt the tree of kept prompts has the state of, and why it is not more. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from slipstream.events import Miss, Shortfall
from slipstream.store.pieces import Found, Piece
from slipstream.store.prefixes import Cut, Node, walk


def find(root: Node, prompt: Sequence[int], needs: Mapping[str, bool], cut: Cut, *, was_other: bool) -> Found:
    """The longest beginning of a prompt whose state is all there; its last token is always computed.

    `needs`: parts of the state, and whether each has something that can only be kept whole. `was_other`: this model
    kept prompts before, in another state of it.
    """
    limit = len(prompt) - 1
    path = walk(root, prompt)
    matched = sum(count for _, count in path)
    whole = [part for part, fixed in needs.items() if fixed]
    pieces: list[Piece] = []
    shortfall: Shortfall | None = None
    checkpoint = 0  # pieces up to the last place where everything that can only be kept whole was kept
    for node, count in path:
        stop = min(node.start + count, limit)
        if stop == node.start:
            break
        if lacking := [part for part in needs if part not in node.slabs or not node.slabs[part].is_there]:
            shortfall = Shortfall(_why(node, lacking), node.start)
            break
        pieces.append(_piece(node, stop, needs, cut))
        if stop == node.end and all(node.slabs[part].has_fixed(stop) for part in whole):
            checkpoint = len(pieces)
    if shortfall is None and matched < limit:
        shortfall = _difference(*(path[-1] if path else (root, 0)), matched, was_other)
    if whole:
        if checkpoint < len(pieces):
            shortfall = Shortfall(Miss.CHECKPOINT, pieces[-1].stop)
        pieces = pieces[:checkpoint]
    found = Found(prompt, needs, pieces[-1].stop if pieces else 0, matched, shortfall, pieces)
    for part in whole if pieces else ():
        slab = pieces[-1].node.slabs[part]
        if slab.fixed is not None:
            found.fixed[part] = slab.fixed
        elif slab.record is not None:
            found.fixed[part] = slab.record
    return found


def _piece(node: Node, stop: int, needs: Iterable[str], cut: Cut) -> Piece:
    """A node's state up to a position: rows that are in memory, files of the others."""
    piece = Piece(node.start, stop, node, (node.start, node.end), {}, {})
    for part in needs:
        slab = node.slabs[part]
        if slab.rows is not None:
            piece.rows[part] = slab.rows if stop == node.end else cut(slab.rows, 0, stop - node.start)
        elif slab.record is not None:
            piece.records[part] = slab.record
    return piece


def _why(node: Node, lacking: Sequence[str]) -> Miss:
    """Why parts of a node's state are not there."""
    others = [slab for part, slab in node.slabs.items() if part not in lacking]
    return Miss.PART if any(slab.is_there for slab in others) else Miss.EVICTED


def _difference(last: Node, count: int, matched: int, was_other: bool) -> Shortfall | None:
    """Why nothing kept goes on as the prompt does, which passed `count` tokens of the last node on its way."""
    if count < len(last.tokens) or last.children:
        return Shortfall(Miss.DIFFERS, matched)
    if last.parent is not None:
        return None  # all of a kept prompt was found, and this one goes on
    return Shortfall(Miss.IDENTITY if was_other else Miss.NEW, 0)
