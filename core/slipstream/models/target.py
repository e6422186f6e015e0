"""The target: an mlx-lm model whose forward also hands out the hidden states that drafters read ("taps")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from slipstream.errors import UnsupportedModel
from slipstream.models.cache import TargetCache
from slipstream.models.families import family
from slipstream.models.host import number

EMBEDDING_TAP = -1  # the input of the first layer, after the embedding scale


@dataclass(slots=True)
class Forward:
    """What one pass computed. Lazy: nothing has run until somebody evaluates it."""

    logits: mx.array | None  # [rows asked for, vocabulary]
    taps: dict[int, mx.array]  # layer -> [tokens, hidden]: the residual stream at that layer's output


class Target:
    """Wraps a loaded mlx-lm model. Owned by the engine thread.

    Raises UnsupportedModel when the model's parts, put together here, do not give the model's own logits.
    """

    def __init__(self, model: nn.Module, config: dict[str, Any]) -> None:
        self.model = model
        self.model_type = str(config.get("model_type", ""))
        shape = family(self.model_type)
        try:
            root: Any = attrgetter(shape.root)(model) if shape.root else model
            self._body: Any = attrgetter(shape.body)(root)
            self._embed: Any = attrgetter(shape.embed)(self._body)
            layers: list[nn.Module] = attrgetter(shape.layers)(self._body)
        except AttributeError as error:
            raise UnsupportedModel(
                f"architecture {self.model_type!r} is not laid out as expected ({error}); choose another model"
            ) from error
        self._head: Any = getattr(root, shape.head, None)
        self._shape = shape
        self._args: Any = root.args
        self._recorder = _Recorder()
        for index, layer in enumerate(layers):
            _tap(layer, index, self._recorder)

        self.layer_count = len(layers)
        self.hidden_size = int(self._args.hidden_size)
        self.embed_scale = float(shape.embed_scale(self._args))
        text_config: dict[str, Any] = config.get("text_config") or config
        self.context = int(text_config.get("max_position_embeddings") or 4096)
        self.vocabulary = self.head_rows(mx.zeros((1, self.hidden_size), dtype=self.dtype)).shape[-1]
        self._probe()

    @property
    def dtype(self) -> mx.Dtype:
        """The type that hidden states have."""
        return self._embed(mx.array([[0]])).dtype

    def make_cache(self, kv_bits: int = 0) -> TargetCache:
        return TargetCache(self.model, kv_bits)

    def forward(
        self, tokens: mx.array, cache: TargetCache, taps: Sequence[int] = (), rows: int | None = None
    ) -> Forward:
        """Run `tokens` [n] after what the cache holds, and add them to it.

        `rows`: logits of the last so many tokens only; None for all, 0 for none (the head is not run).
        """
        count = tokens.shape[0]
        with self._recorder.recording(taps) as recorded:
            hidden = self._body(tokens[None], cache=cache.layers)
        cache.advance(count)
        out = {layer: rows_[0] for layer, rows_ in recorded.items()}
        if EMBEDDING_TAP in taps:
            out[EMBEDDING_TAP] = self.embed_rows(tokens) * self.embed_scale
        wanted = count if rows is None else min(rows, count)
        logits = self._logits(hidden[0, count - wanted :]) if wanted else None
        return Forward(logits, out)

    def embed_rows(self, tokens: mx.array) -> mx.array:
        """Raw embedding rows [n, hidden], without the model's embedding scale."""
        return self._embed(tokens)

    def head_rows(self, hidden: mx.array) -> mx.array:
        """The raw output projection of [n, hidden], without the model's own scale or softcap."""
        return self._embed.as_linear(hidden) if self._head is None else self._head(hidden)

    def _logits(self, hidden: mx.array) -> mx.array:
        hidden = self._shape.before_head(hidden, self._args)
        return self._shape.after_head(self.head_rows(hidden), self._args)

    def _probe(self) -> None:
        """Compare with the model's own forward on a few tokens, once at load."""
        tokens = mx.arange(1, 6) % self.vocabulary
        own = self.model(tokens[None], cache=self.make_cache().layers)[0].astype(mx.float32)
        ours = self.forward(tokens, self.make_cache(), taps=(self.layer_count - 1,)).logits
        assert ours is not None
        difference = number(mx.max(mx.abs(own - ours.astype(mx.float32))))
        scale = number(mx.max(mx.abs(own)))
        if not difference <= 1e-2 * max(scale, 1.0):  # also refuses NaN
            raise UnsupportedModel(
                f"architecture {self.model_type!r}: logits differ from the model's own by {difference:.3g}, so "
                "nothing could be verified; choose another model and report this one",
                difference=difference,
            )


class _Recorder:
    """Where tapped layers leave their outputs during one forward."""

    def __init__(self) -> None:
        self.wanted: frozenset[int] = frozenset()
        self.rows: dict[int, mx.array] = {}

    def recording(self, taps: Sequence[int]) -> _Recorder:
        self.wanted = frozenset(taps)
        return self

    def __enter__(self) -> dict[int, mx.array]:
        self.rows = {}
        return self.rows

    def __exit__(self, *_: object) -> None:
        # The arrays must not outlive the round: they would pin its whole graph.
        self.wanted, self.rows = frozenset(), {}


def _tap(layer: nn.Module, index: int, recorder: _Recorder) -> None:
    """Make one layer record its output. The class changes, not the module: weights and paths stay as they are."""
    plain: Any = type(layer)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        out = plain.__call__(self, *args, **kwargs)
        if index in recorder.wanted:
            recorder.rows[index] = out[0] if isinstance(out, tuple) else out
        return out

    layer.__class__ = type(f"Tapped{plain.__name__}", (plain,), {"__call__": call})
