"""A model that says what a script tells it to, for tests of everything around a model.

Its only layer keeps the ids that it has read, as numbers, in an ordinary key/value cache of mlx-lm. What follows is a
function of those ids alone, so the round, drafters, rewinding and prefix caches treat it as any other target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from slipstream.models.host import ints
from slipstream.models.target import Target

CERTAIN = 30.0  # the logit of the scripted token; the others have 0

Next = Callable[[Sequence[int], int], list[int]]
"""next(ids, count) -> the token that follows each of the last `count` ids, given all before it."""


def scripted_target(following: Next, vocabulary: int, context: int) -> Target:
    config = {"model_type": "scripted", "max_position_embeddings": context}
    return Target(_Model(following, vocabulary), config)


class _Memory(nn.Module):
    """The layer: ids [1, n, 1] in, all ids so far [1, m] out."""

    def __call__(self, ids: mx.array, cache: Any) -> mx.array:  # Any: mlx-lm's cache of one layer
        row = ids[:, None]  # [1, head, n, 1]
        return row[:, 0, :, 0] if cache is None else cache.update_and_fetch(row, row)[0][:, 0, :, 0]


class _Body(nn.Module):
    def __init__(self, following: Next) -> None:
        super().__init__()
        self.layers = [_Memory()]
        self._following = following

    def embed_tokens(self, tokens: mx.array) -> mx.array:
        return tokens[..., None].astype(mx.float32)  # exact up to 2**24, far beyond any vocabulary

    def __call__(self, tokens: mx.array, cache: Any = None) -> mx.array:
        """The next id at each of the tokens [1, n], as a hidden state [1, n, 1]."""
        known = self.layers[0](self.embed_tokens(tokens), cache[0] if cache else None)
        following = self._following(ints(known[0].astype(mx.int32)), tokens.shape[1])
        return mx.array(following, dtype=mx.float32)[None, :, None]


class _Model(nn.Module):
    """Laid out like a plain family of mlx-lm."""

    def __init__(self, following: Next, vocabulary: int) -> None:
        super().__init__()
        self.args = SimpleNamespace(hidden_size=1)
        self.model = _Body(following)
        self._vocabulary = vocabulary

    @property
    def layers(self) -> Sequence[nn.Module]:
        return self.model.layers

    def lm_head(self, hidden: mx.array) -> mx.array:
        return (hidden == mx.arange(self._vocabulary, dtype=mx.float32)).astype(mx.float32) * CERTAIN

    def __call__(self, tokens: mx.array, cache: Any = None) -> mx.array:
        return self.lm_head(self.model(tokens, cache))
