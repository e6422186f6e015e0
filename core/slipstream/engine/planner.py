"""Who drafts this round, and how many tokens. Any answer gives the same text; a good one gives it sooner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import mlx.core as mx

from slipstream.drafters.lookup import Lookup
from slipstream.drafters.none import NoDrafter
from slipstream.drafters.protocol import Describes, Drafter, DraftsTogether, Draw, KeepsRows, Proposal, Wish
from slipstream.engine.costs import PLAIN
from slipstream.engine.policy import Policy
from slipstream.engine.share import Offer
from slipstream.errors import InvalidRequest
from slipstream.models.host import ints
from slipstream.types import Mode, Options

CPU_DRAFTS = 7  # of a network, in its own mode: each further row would cost a processor some 6 % of a pass


def usual(options: Options) -> Options:
    """The same with as many drafts as are worth checking, where a request leaves that open: a GPU checks a block."""
    is_open = options.max_draft is None and options.mode in (Mode.DSPARK, Mode.DFLASH, Mode.MTP)
    return replace(options, max_draft=CPU_DRAFTS) if is_open and mx.default_device() != mx.gpu else options


def plan(loaded: Mapping[Mode, Drafter], options: Options, *, can_rewind: bool) -> tuple[Drafter, ...]:
    """The drafters a request uses, in order of precedence. Raises InvalidRequest for one that is not loaded.

    `can_rewind`: whether the target's cache can take rejected drafts back; if not, nothing is drafted in auto.
    """
    if options.max_draft == 0 or options.mode is Mode.BASELINE or (options.mode is Mode.AUTO and not can_rewind):
        return (NoDrafter(),)
    if options.mode is Mode.LOOKUP:
        return (Lookup(),)
    if options.mode is Mode.AUTO:
        networks = [loaded[mode] for mode in (Mode.DSPARK, Mode.DFLASH, Mode.MTP) if mode in loaded][:1]
        # Beside a network a copy must be surer, hence the longer match.
        return (Lookup(4, 5), *networks) if networks else (Lookup(),)
    if options.mode not in loaded:
        have = ", ".join(loaded) or "none"
        raise InvalidRequest(
            f"no {options.mode} drafter is loaded (loaded: {have}); give one with --drafter or use --mode auto"
        )
    return (loaded[options.mode],)


class Drafters:
    """A request's drafters with their states. Every one of them sees every committed token.

    With a policy each round's drafter and length are what it expects most of; without one, the first drafter with
    something to say drafts as much as it can.
    """

    def __init__(self, drafters: Sequence[Drafter], policy: Policy | None = None) -> None:
        self.policy = policy
        self._states: list[tuple[Drafter, Any]] = [(drafter, drafter.begin()) for drafter in drafters]
        self.taps = tuple(sorted({tap for drafter in drafters for tap in drafter.taps}))
        self.may_draft = any(drafter.block for drafter in drafters)
        self._passed_over: tuple[str, list[int]] | None = None  # a copy that this round does not take

    @property
    def states(self) -> list[tuple[Drafter, Any]]:
        return list(self._states)

    def restore(self, tokens: Sequence[int], buffers: Mapping[Mode, Mapping[str, mx.array]]) -> None:
        """Begin after `tokens`, with what was kept by each drafter that reads more than text."""
        assert not any(self.lengths)
        for index, (drafter, state) in enumerate(self._states):
            if isinstance(drafter, KeepsRows) and drafter.mode in buffers:
                self._states[index] = (drafter, drafter.restore(buffers[drafter.mode], len(tokens)))
            else:
                assert not drafter.taps
                drafter.observe(state, tokens, {})

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(state.length for _, state in self._states)

    def observe(self, tokens: Sequence[int], taps: Mapping[int, mx.array]) -> None:
        observe([Seen(self, tokens, taps)])

    @property
    def bytes(self) -> int:
        """Of what the drafters remember of this request, where they keep rows."""
        return sum(
            sum(array.nbytes for array in drafter.buffers(state).values())
            for drafter, state in self._states
            if drafter.taps and isinstance(drafter, KeepsRows)
        )

    def describe(self, most: int) -> None:
        """Prepare rounds that draft up to `most` tokens."""
        for drafter, state in self._states:
            if isinstance(drafter, Describes):
                drafter.describe(state, most)

    @property
    def most(self) -> int:
        """Drafts that any network of them makes."""
        return max((drafter.block for drafter, _ in self._states if drafter.taps), default=0)

    def arrays(self) -> list[Any]:
        return [array for drafter, state in self._states for array in drafter.arrays(state)]

    def plan(self, last: int, limit: int, draw: Draw, *, is_greedy: bool = False) -> tuple[str, Proposal | Wish]:
        """Who drafts: what a copy proposes, or what a network is to be asked for, see `draft`."""
        if limit > 0:
            wish = Asking(last, limit, draw, is_greedy)
            made = self._first(wish) if self.policy is None else self._best(self.policy, wish)
            if made is not None:
                return made
        return PLAIN, nothing()

    def candidates(self, policy: Policy, last: int, limit: int, draw: Draw, *, is_greedy: bool) -> list[Candidate]:
        """All who could draft in a round that is shared, best known first. Copies are made, networks only asked."""
        found: list[Candidate] = []
        if limit <= 0:
            return found
        asking = Asking(last, limit, draw, is_greedy)
        for drafter, state in self._states:
            source = drafter.mode.value
            if drafter.taps:
                most = min(limit, drafter.block)
                found.append(Candidate(source, Offer(policy.hopes(source, most), True), asking.wish(drafter, state)))
            elif len(proposal := asking.now(drafter, state)):
                found.append(Candidate(source, Offer(policy.survival(source, len(proposal)), False), proposal))
        return found

    def _first(self, asking: Asking) -> tuple[str, Proposal | Wish] | None:
        for drafter, state in self._states:
            if drafter.taps:
                return drafter.mode.value, asking.wish(drafter, state)
            proposal = asking.now(drafter, state)
            if len(proposal):
                return drafter.mode.value, proposal
        return None

    def _best(self, policy: Policy, asking: Asking) -> tuple[str, Proposal | Wish] | None:
        networks = [(drafter, state) for drafter, state in self._states if drafter.taps]
        most = {drafter.mode.value: min(asking.limit, drafter.block) for drafter, _ in networks}
        for drafter, state in self._states:
            if drafter.taps or not len(proposal := asking.now(drafter, state)):
                continue
            source = drafter.mode.value
            if count := policy.copies(source, len(proposal), most):
                return source, proposal.first(count)
            self._passed_over = source, ints(proposal.tokens)
        for drafter, state in networks:
            source = drafter.mode.value
            if length := policy.length(source, most[source]):
                return source, asking.wish(drafter, state, length)
        return None

    def committed(self, tokens: Sequence[int]) -> None:
        """What a round brought: tells what a copy that was not taken would have been worth."""
        if self._passed_over is None or self.policy is None:
            return
        (source, drafts), self._passed_over = self._passed_over, None
        agreed = 0
        for draft_, token in zip(drafts, tokens, strict=False):
            if draft_ != token:
                break
            agreed += 1
        self.policy.notice(source, agreed, missed=agreed < min(len(drafts), len(tokens)))


@dataclass(frozen=True, slots=True)
class Candidate:
    """Somebody who could draft in this round."""

    source: str
    offer: Offer
    planned: Proposal | Wish

    def taken(self, count: int) -> Proposal | Wish:
        """The first `count` of it."""
        return self.planned.first(count) if isinstance(self.planned, Proposal) else replace(self.planned, limit=count)


def nothing() -> Proposal:
    return Proposal(mx.array([], dtype=mx.int32))


@dataclass(frozen=True, slots=True)
class Asking:
    """What a round asks of whoever drafts."""

    last: int
    limit: int
    draw: Draw
    is_greedy: bool

    def now(self, drafter: Drafter, state: Any) -> Proposal:
        return drafter.propose(state, self.last, self.limit, self.draw)

    def wish(self, drafter: Drafter, state: Any, limit: int | None = None) -> Wish:
        return Wish(drafter, state, self.last, self.limit if limit is None else limit, self.draw, self.is_greedy)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a round committed of one request, for its drafters."""

    drafters: Drafters
    tokens: Sequence[int]
    taps: Mapping[int, mx.array]  # layer -> [tokens, hidden]


def observe(seen: Sequence[Seen]) -> None:
    """Hand each request's drafters what was committed: each network runs once, where it can."""
    networks: dict[int, tuple[DraftsTogether, list[tuple[Any, Seen]]]] = {}
    for each in seen:
        for drafter, state in each.drafters.states:
            if drafter.taps and (together := _together(drafter)) is not None:
                networks.setdefault(id(drafter), (together, []))[1].append((state, each))
            else:
                drafter.observe(state, each.tokens, each.taps)
    for drafter, shared in networks.values():
        drafter.observe_together(
            [state for state, _ in shared], [each.tokens for _, each in shared], [each.taps for _, each in shared]
        )


def _together(drafter: Drafter) -> DraftsTogether | None:
    """The drafter, if it can. By its class, which Python remembers: `isinstance` looks a protocol up each time."""
    return cast(DraftsTogether, drafter) if issubclass(type(drafter), DraftsTogether) else None


def draft(wishes: Sequence[Wish]) -> list[Proposal]:
    """What networks propose to several requests: each network runs once, where it can."""
    made: dict[int, Proposal] = {}
    for drafter in {id(wish.drafter): wish.drafter for wish in wishes}.values():
        rows = [row for row, wish in enumerate(wishes) if wish.drafter is drafter]
        asked = [wishes[row] for row in rows]
        if (together := _together(drafter)) is not None:
            proposals = together.propose_together(asked)
        else:
            proposals = [drafter.propose(wish.state, wish.last, wish.limit, wish.draw) for wish in asked]
        made |= dict(zip(rows, proposals, strict=True))
    return [made[row] for row in range(len(wishes))]
