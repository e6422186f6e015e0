"""Lookup: when the text repeats something said before, propose what came next then. No network (drafters.md §7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import mlx.core as mx

from slipstream.drafters.protocol import Draw, Proposal
from slipstream.types import Mode

BASE_DRAFT = 6  # tokens proposed after an ordinary match
LONG_MATCH = 8  # from this length of match on, the proposal grows with it
MAX_DRAFT = 32
MAX_MATCH = 64  # how far back a match is measured
REPROBE_ROUNDS = 8  # after long drafts failed, try one again so often


class LookupState:
    """The committed text and where each of its n-grams ended."""

    def __init__(self, shortest: int, longest: int) -> None:
        self.text: list[int] = []
        self.sizes = range(longest, shortest - 1, -1)
        # n-gram -> its two latest end positions (one past its last token)
        self.ends: dict[tuple[int, ...], tuple[int, int]] = {}
        self.long_failures = 0
        self.rounds_since_long = 0
        self.drafted = 0  # in the round that is under way

    @property
    def length(self) -> int:
        return len(self.text)

    def add(self, token: int) -> None:
        self.text.append(token)
        end = len(self.text)
        for size in self.sizes:
            if size <= end:
                gram = tuple(self.text[end - size :])
                self.ends[gram] = (end, self.ends.get(gram, (-1, -1))[0])

    def find(self, last: int) -> tuple[int, int]:
        """Where the text before went on after what is now at its end, and how long the match is. (0, 0): nowhere."""
        text = self.text
        for size in self.sizes:
            if size > len(text) + 1:
                continue
            gram = (*text[len(text) - size + 1 :], last) if size > 1 else (last,)
            for end in self.ends.get(gram, ()):
                if end > 0:  # in a run of one token it may end where the text does: what follows is the last token
                    return end, size + self._further(end - size, len(text) - size)
        return 0, 0

    def following(self, start: int, last: int, count: int) -> list[int]:
        """`count` tokens from text[start] on. Behind `last` the copy goes on with itself.

        So what repeats with a short period, a run of one token above all, is proposed as far as wanted.
        """
        period = len(self.text) + 1 - start
        copied = [*self.text[start : start + count], last]
        return [copied[index % period] for index in range(max(count, 0))]

    def _further(self, left: int, right: int) -> int:
        """How many tokens before text[left] and before text[right + 1] agree, going back."""
        count = 0
        while count < MAX_MATCH and left - 1 - count >= 0 and self.text[left - 1 - count] == self.text[right - count]:
            count += 1
        return count


class Lookup:
    """Proposes the continuation of the latest earlier occurrence of the last few tokens.

    `shortest` and `longest` bound the n-gram looked for: shorter when alone, longer beside a drafter, which it must
    beat. Matches of eight tokens or more earn longer proposals, until two in a row were mostly wrong.
    """

    mode = Mode.LOOKUP
    taps: tuple[int, ...] = ()
    block = MAX_DRAFT

    def __init__(self, shortest: int = 3, longest: int = 4) -> None:
        self._shortest, self._longest = shortest, longest

    def begin(self) -> LookupState:
        return LookupState(self._shortest, self._longest)

    def observe(self, state: LookupState, tokens: Sequence[int], taps: Mapping[int, mx.array]) -> None:
        del taps  # it reads text alone
        if state.drafted > BASE_DRAFT:
            # A round's committed rows are the anchor and the accepted drafts.
            failed = (len(tokens) - 1) * 2 < state.drafted
            state.long_failures = state.long_failures + 1 if failed else 0
            state.rounds_since_long = 0
        state.drafted = 0
        for token in tokens:
            state.add(token)

    def arrays(self, state: LookupState) -> list[mx.array]:
        del state
        return []

    def propose(self, state: LookupState, last: int, limit: int, draw: Draw) -> Proposal:
        del draw  # a copy is certain or it is nothing
        start, match = state.find(last)
        cap = BASE_DRAFT
        if match >= LONG_MATCH:
            state.rounds_since_long += 1
            if state.long_failures < 2 or state.rounds_since_long % REPROBE_ROUNDS == 0:
                cap = min(MAX_DRAFT, 2 * match)
        tokens = state.following(start, last, min(cap, limit)) if match else []
        state.drafted = len(tokens)
        return Proposal(mx.array(tokens, dtype=mx.int32))
