"""Who drafts this round, and how many tokens. Any answer gives the same text; a good one gives it sooner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mlx.core as mx

from slipstream.drafters.lookup import Lookup
from slipstream.drafters.none import NoDrafter
from slipstream.drafters.protocol import Drafter, Draw, KeepsRows, Proposal
from slipstream.engine.costs import PLAIN
from slipstream.engine.policy import Policy
from slipstream.errors import InvalidRequest
from slipstream.types import Mode, Options


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

    def observe(self, tokens: Sequence[int], taps: Mapping[int, Any]) -> None:
        for drafter, state in self._states:
            drafter.observe(state, tokens, taps)

    def arrays(self) -> list[Any]:
        return [array for drafter, state in self._states for array in drafter.arrays(state)]

    def propose(self, last: int, limit: int, draw: Draw) -> tuple[str, Proposal]:
        """Who drafts, and what."""
        if limit > 0:
            made = self._first(last, limit, draw) if self.policy is None else self._best(self.policy, last, limit, draw)
            if made is not None:
                return made
        return PLAIN, Proposal(mx.zeros((0,), dtype=mx.int32))

    def _first(self, last: int, limit: int, draw: Draw) -> tuple[str, Proposal] | None:
        for drafter, state in self._states:
            proposal = drafter.propose(state, last, limit, draw)
            if len(proposal):
                return drafter.mode.value, proposal
        return None

    def _best(self, policy: Policy, last: int, limit: int, draw: Draw) -> tuple[str, Proposal] | None:
        copied: tuple[str, Proposal] | None = None
        networks: list[tuple[Drafter, Any]] = []
        for drafter, state in self._states:
            if drafter.taps:
                networks.append((drafter, state))
                continue
            proposal = drafter.propose(state, last, limit, draw)
            if len(proposal):
                copied = drafter.mode.value, proposal
        if copied is not None:
            source, proposal = copied
            length, value = policy.best(source, len(proposal))
            others = [policy.best(drafter.mode.value, min(limit, drafter.block))[1] for drafter, _ in networks]
            if value >= max([policy.value(PLAIN, 0, ()), *others]):
                return source, proposal.first(length)
        for drafter, state in networks:
            length = policy.length(drafter.mode.value, min(limit, drafter.block))
            if length:
                return drafter.mode.value, drafter.propose(state, last, length, draw)
        return None
