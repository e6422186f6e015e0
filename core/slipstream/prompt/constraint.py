"""One request's grammar while it decodes: which tokens may come next, and which must. On the engine thread."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import mlx.core as mx
import numpy as np
from llguidance import LLMatcher
from llguidance.hf import from_tokenizer

from slipstream.errors import InvalidRequest
from slipstream.prompt.grammar import source
from slipstream.prompt.schema import LIMITS
from slipstream.types import Grammar

_WORD = 32  # bits of an integer of llguidance's masks


class Vocabulary:
    """A model's tokens as bytes, in the form that makes masks fast. Takes a second; made once for each model.

    `tokenizer`: the Hugging Face one. `width`: of the model's logits, which may be more than there are tokens; the
    rest is never allowed. Raises InvalidRequest when the tokenizer is not of the fast kind.
    """

    def __init__(self, tokenizer: Any, width: int, end_ids: Iterable[int]) -> None:
        size = max(width, *(id_ + 1 for id_ in tokenizer.get_vocab().values()))
        try:
            self.tokens = from_tokenizer(tokenizer, n_vocab=size, eos_token=[end for end in end_ids if end < width])
        except ValueError as error:
            raise InvalidRequest(f"this model's tokenizer cannot be held to a grammar: {error}") from error
        self.width = width
        self.size = size
        self._tokenizer = tokenizer

    def spell(self, text: str) -> list[str | int]:
        """Text and special tokens by turns, as this tokenizer reads it. Ordinary tokens stay text."""
        pieces: list[str | int] = []
        for token in self._tokenizer.encode(text, add_special_tokens=False):
            if self.tokens.is_special_token(token):
                pieces.append(token)
                continue
            said = self._tokenizer.decode([token])
            if pieces and isinstance(pieces[-1], str):
                pieces[-1] += said
            else:
                pieces.append(said)
        # Where the pieces do not join to the text, the tokenizer changes it, and bytes are safer than tokens.
        joined = "".join(self._tokenizer.decode([piece]) if isinstance(piece, int) else piece for piece in pieces)
        return pieces if joined == text else [text]


class Constraint:
    """Where an answer stands in its grammar. Raises InvalidRequest for a grammar that is wrong or too complex.

    End tokens are legal where the answer may end, and nowhere else.
    """

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._matcher = LLMatcher(vocabulary.tokens, source(grammar, vocabulary.spell), log_level=0, limits=LIMITS)
        self._check()
        self.masks([])  # some grammars compile and have no answer, such as a schema that refers to itself and no more

    @property
    def is_finished(self) -> bool:
        """Nothing can follow: the grammar is complete and allows no more, or an end token came."""
        return self._matcher.is_stopped()

    def legal_prefix(self, drafts: Sequence[int]) -> int:
        """How many drafts the grammar allows, up to one that finishes it. Does not advance."""
        count = 0
        while count < len(drafts) and not self.is_finished and self._matcher.try_consume_tokens([drafts[count]]):
            count += 1
        self._rewind(count)
        return count

    def masks(self, drafts: Sequence[int]) -> mx.array:
        """Which tokens may come before each of the legal drafts and after the last. Does not advance.

        After a draft that finishes the grammar everything may come: nobody is going to look.
        """
        words = -(-self._vocabulary.size // _WORD)
        bits = np.full((len(drafts) + 1, words), -1, dtype=np.int32)
        for row in range(len(bits)):
            if not self.is_finished:
                self._matcher.unsafe_compute_mask_ptr(bits[row].ctypes.data, bits[row].nbytes)
            if row < len(drafts):
                self._consume(drafts[row])
        self._rewind(len(drafts))
        if not bits.any(axis=1).all():
            raise InvalidRequest("the grammar allows no token that this model has; make it less strict")
        # Unpacked here and not on the device: 0.2 ms a million bits, and the device is busy with the forward pass.
        allowed = np.unpackbits(bits.view(np.uint8), axis=1, count=self._vocabulary.width, bitorder="little")
        return mx.array(cast(Any, allowed.view(np.bool_)))  # [drafts + 1, width]

    def forced(self) -> list[int]:
        """Tokens that come next if the model writes the only text that is legal in its usual tokens."""
        return [] if self.is_finished else self._matcher.compute_ff_tokens()

    def commit(self, tokens: Sequence[int]) -> int:
        """Advance. Returns how many of the tokens are part of the answer: what follows its end is not."""
        for index, token in enumerate(tokens):
            if self.is_finished:
                return index
            self._consume(token)
        return len(tokens)

    def _consume(self, token: int) -> None:
        self._matcher.consume_token(token)
        self._check()

    def _rewind(self, count: int) -> None:
        self._matcher.rollback(count)
        self._check()

    def _check(self) -> None:
        if self._matcher.is_error():
            raise InvalidRequest(f"the grammar cannot be followed: {self._matcher.get_error()}; make it simpler")
